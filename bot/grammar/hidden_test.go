package grammar_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/grammar"
)

var reason = grammar.Override{Reason: "z"}

// hidden are comments in which GitHub shows the command as a quotation, as something other than
// plain text, or not at all. Similar comments with a plain command are next to them.
var hidden = []comment{
	{"link definition", "Thanks!\n\n[x]:\n/override \"looks fine\"\n", nil},
	{"link definition in angles", "[x]: <\n/override y\n>", reason0("y")},
	{"title of a link definition", "[x]: y '\n/override z\n'", nil},
	{"title of a link", "[x](y '\n/override z\n')", nil},
	{"text of a link", "[x\n/override z\n](y)", nil},
	{"text of an image", "![x\n/override z\n](y)", nil},
	{"brackets that are no link", "[x\n/override z\n]", reason},
	{"fold", "<details><summary>log</summary>\n\n/override hidden in a fold\n\n</details>", nil},
	{"fold that was closed", "<details><summary>log</summary>\n\nlog\n\n</details>\n\n/override z", reason},
	{"fold that a paragraph opens", "see <details>\n\n/override z\n\n</details>", nil},
	{"fold that a heading opens", "# see <details>\n\n/override z\n\n</details>", nil},
	{"fold that a quote opens", "> <details>\n\n/override z\n\n</details>", nil},
	{"fold that a table opens", "| a |\n| - |\n| <details> |\n\n/override z\n\n</details>", nil},
	{"fold with a paragraph in it", "<details><p>log</details>\n\n/override z", reason},
	{"fold that a table cell keeps open", "<details><table><tr><td></details>\n\n/override z", nil},
	{"fold that is closed in an attribute", "<details><a title=\"x> </details>\n\n/override z", nil},
	{"fold that is closed in a comment", "<details><!-- </details> -->\n\n/override z", nil},
	{"fold after a comment that ends early", "<!--> <details> -->\n\n/override z\n\n</details>", nil},
	{"fold after a comment that ends oddly", "<!-- --!> <details> -->\n\n/override z\n\n</details>", nil},
	{"tag that is not closed", "<div title=\"\n\n/override z\n\n\">", nil},
	{"hidden attribute", "<p hidden>\n/override z\n</p>", nil},
	{"div", "<div>\n/override z\n</div>", nil},
	{"div, with blank lines", "<div hidden>\n\n/override z\n\n</div>", nil},
	{"processing instruction", "<?php\n/override z\n?>", nil},
	{"CDATA", "<![CDATA[\n/override z\n]]>", nil},
	{"declaration", "<!X\n/override z\n>", nil},
	{"table of HTML", "<table><tr><td>\n/override z\n</td></tr></table>", nil},
	{"table", "/override z | a\n--- | ---\n", nil},
	{"row of a table", "a | b\n--- | ---\n/override z | c\n", nil},
	{"kbd", "<kbd>\n/override z\n</kbd>", nil},
	{"kbd in a paragraph", "press <kbd>\n/override z\n</kbd>", nil},
	{"an image above", "<img width=\"10\" alt=\"a > b\" src=\"x\">\n\n/override z", reason},
	{"less than", "a < b, 1 <2\n/override z", reason},
	{"math", "$$\n/override z\n$$", nil},
	{"math in a line", "see $x\n/override z\n+y$", nil},
	{"prices", "it costs $5\n/override z\nand not $6", reason},
	{"dollars in code", "`$x`\n/override z\n`$y`", reason},
	{"footnote", "[^1]: note\n/override z", nil},
	{"footnote that is used", "x[^1]\n\n[^1]: note\n/override z", nil},
	{"lazy quote", "> he said\n/override z", nil},
	{"quote in a list", "- > x\n/override z", nil},
	{"list in a quote", "> - x\n/override z", nil},
	{"lazy line of a list", "- x\n/override z", reason},
	{"fence in a quote closes", "> ```\n/override z", reason},
	{"fence of a suggestion", "```suggestion\n/override z\n```", nil},
	{"hard blank", "\u00a0/override z", reason},
	{"fullwidth slash", "\uff0foverride z", nil},
	{"division slash", "\u2215override z", nil},
	{"zero width inside", "/over\u200bride z", nil},
	{"right to left", "\u202e/override z", nil},
	{"upper case", "/OVERRIDE z", reason},
	{"entity", "&#47;override z", nil},
	{"escaped", "\\/override z", nil},
	{"heading", "# /override z", nil},
	{"heading that is underlined", "/override z\n===", nil},
	{"emphasis", "**a\n/override z**", nil},
	{"struck out", "~~a\n/override z~~", nil},
	{"behind a comment", "<!-- x -->/override z", nil},
	{"comment never closed", "<!--\n/override z", nil},
	{"German mail", "ok\n\nAm Mo., 1. Jan. 2026 um 10:00 Uhr schrieb Eve <e@x>:\n\n/override z", nil},
	{"French mail", "ok\n\nLe lun. 1 janv. 2026, Eve a écrit :\n/override z", nil},
	{"Outlook's mail", "ok\n\n________________________________\nFrom: Eve\nSent: Monday\n/override z", nil},
	{"Outlook's mail in German", "ok\n\n-----Ursprüngliche Nachricht-----\nVon: Eve\n\n/override z", nil},
	{"vertical tab", "text\v/override z", nil},
	{"U+2028", "text\u2028/override z", nil},
	{"U+0085", "text\u0085/override z", nil},
	{"form feed", "text\f/override z", nil},
	{"too many quotes to count", strings.Repeat("> ", 30) + "x\n\n/override z", nil},
	{"more marks than anybody writes", strings.Repeat("*a_ ", 5000) + "\n\n/override z", nil},
	{"marks in code", "```\n" + strings.Repeat("*a_ ", 5000) + "\n```\n\n/override z", reason},
	{"longer than a comment", strings.Repeat("ü", 65536) + "\n\n/override z", nil},
}

func reason0(text string) grammar.Command { return grammar.Override{Reason: text} }

// TestLookAlikes checks that a text that looks like a command to a person, but is none, is answered
// and never executed.
func TestLookAlikes(t *testing.T) {
	for name, body := range map[string]string{"Cyrillic o": "/\u043everride z", "soft hyphen": "/over\u00adride z"} {
		if r, ok := grammar.Parse(body); !ok || r.Command != nil || r.Mistake.Command != "override" {
			t.Errorf("%s: %v, %v", name, r, ok)
		}
	}
}
