package grammar_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/grammar"
)

// hostile returns comments of the maximum size that are designed to take long.
func hostile() map[string]string {
	const size = 65536
	fill := func(piece string) string { return strings.Repeat(piece, size/len(piece)) }
	all := map[string]string{}
	for name, piece := range map[string]string{
		"brackets": "[", "images": "![", "links": "[a](", "references": "[a][", "definitions": "[a]: b\n", "backticks": "`", "growing runs": "` `` ``` ",
		"stars": "*a_ ", "emphasis": "**a *a ", "strikes": "~~a ", "comments": "<!--", "tags": "<a ", "attributes": `<a b="`, "closing": "</a>", "opening": "<b>",
		"angles": "<", "instructions": "<?", "CDATA": "<![CDATA[", "dollars": "$a", "double dollars": "$$", "quotes": ">", "spaced quotes": "> ", "lists": "- ",
		"numbers": "1. ", "quoted lists": "> - ", "deep lists": "-\t", "lines of lists": "- a\n", "footnotes": "[^a]: b\n", "footnote uses": "[^a]", "entities": "&#", "backslashes": "\\",
		"pipes": "|", "tables": "|a|b|\n|-|-|\n", "tabs": "\t", "blanks": " ", "lines": "\n", "slashes": "/", "slash lines": "a\n/", "headings": "#\n", "fences": "```\n",
		"underlines": "a\n-\n", "emails": "<a@b> ", "parentheses": "[a](b(", "quoted paragraphs": "> a\nb\n", "mails": "From: a\n", "dashes": "--- a", "items in items": "* * * * * * * * * *\n",
	} {
		all[name] = fill(piece) + "\n\n/cancel"
		all[name+", then"] = "/lgt\\\n" + fill(piece)
		all[name+" on one line"] = "/override " + fill(piece)
	}
	nested := ""
	for depth := range 350 {
		nested += strings.Repeat(" ", depth) + "- a\n"
	}
	all["nested list"] = nested + "\n/cancel"
	wide := ""
	for depth := range 250 {
		wide += strings.Repeat(">", depth) + "a\n\n"
	}
	all["nested quotes"] = wide + "\n/cancel"
	runs := ""
	for n := 1; len(runs) < size; n++ {
		runs += strings.Repeat("`", n) + " "
	}
	all["runs of every length"] = runs + "\n\n/cancel"
	return all
}

// TestHostileComments checks that no comment uses a disproportionate amount of memory. The memory
// bounds the time, which BenchmarkHostile measures.
func TestHostileComments(t *testing.T) {
	for name, body := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = grammar.Parse(body)
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 200<<20 {
			t.Errorf("%s: a comment of %d KiB took %d MiB", name, len(body)>>10, spent>>20)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, body := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = grammar.Parse(body)
			}
		})
	}
}
