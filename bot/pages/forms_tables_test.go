package pages_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var (
	markup    = strings.NewReplacer("\u00a0", " ", "**", "", "`", "", `\[`, "[", `\]`, "]", `\|`, "|", `\_`, "_", `\*`, "*", "\u200b", "")
	tables    = regexp.MustCompile(`(?s)<table[^>]*>(.*?)</table>`)
	matrices  = regexp.MustCompile(`(?s)<table class="matrix">.*?</table>`) // the figure behind a shape's name is that of one kind of input
	rowStarts = regexp.MustCompile(`<tr[^>]*>`)
	cells     = regexp.MustCompile(`<t[hd][^>]*>`)
	rules     = regexp.MustCompile(`─+`)
)

// withoutTags replaces each tag by another text.
func withoutTags(text, instead string) string {
	var b strings.Builder
	for {
		before, rest, _ := strings.Cut(text, "<")
		b.WriteString(before)
		_, after, found := strings.Cut(rest, ">")
		if !found {
			return b.String()
		}
		text = after
		b.WriteString(instead)
	}
}

// markdownText returns Markdown as a reader sees it, except for tables.
func markdownText(text string) string {
	return html.UnescapeString(markup.Replace(withoutTags(text, "")))
}

// markdownTables returns the tables, which have a line of dashes below their heads.
func markdownTables(text string) []grid {
	split := func(line string) []string {
		line = strings.Trim(strings.TrimSpace(line), "|")
		return strings.Split(line, "|")
	}
	var list []grid
	lines := strings.Split(markdownText(text), "\n")
	for i := 1; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "| --") {
			continue
		}
		g := grid{}
		for _, title := range split(lines[i-1]) {
			g.head = append(g.head, strings.TrimSpace(title))
		}
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
			g.rows = append(g.rows, split(lines[i]))
		}
		list = append(list, g)
	}
	return list
}

// htmlText returns a page without its markup.
func htmlText(text string) string {
	return strings.ReplaceAll(html.UnescapeString(withoutTags(text, " ")), "\u00a0", " ")
}

// htmlTables returns the tables of a page. Rows and cells may lack end tags.
func htmlTables(page string) []grid {
	var list []grid
	for _, m := range tables.FindAllStringSubmatch(page, -1) {
		var g grid
		for _, row := range rowStarts.Split(m[1], -1)[1:] {
			var texts []string
			for _, cell := range cells.Split(row, -1)[1:] {
				texts = append(texts, strings.Join(strings.Fields(htmlText(cell)), " "))
			}
			if g.head == nil {
				g.head = texts
			} else {
				g.rows = append(g.rows, texts)
			}
		}
		list = append(list, g)
	}
	return list
}

// terminalTables returns aligned tables. A ruled line below the head marks their columns. Titles
// may span several lines.
func terminalTables(text string) []grid {
	var list []grid
	lines := strings.Split(strings.ReplaceAll(text, "\u00a0", " "), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "──") {
			continue
		}
		var from, to []int
		for _, at := range rules.FindAllStringIndex(line, -1) {
			from, to = append(from, utf8.RuneCountInString(line[:at[0]])), append(to, utf8.RuneCountInString(line[:at[1]]))
		}
		cut := func(line string) []string {
			runes := []rune(line)
			var texts []string
			for c := range from {
				texts = append(texts, strings.TrimSpace(string(runes[min(from[c], len(runes)):min(to[c], len(runes))])))
			}
			return texts
		}
		g := grid{head: make([]string, len(from))}
		top := i
		for top > 0 && strings.TrimSpace(lines[top-1]) != "" {
			top--
		}
		for _, titles := range lines[top:i] {
			for c, title := range cut(titles) {
				g.head[c] = strings.TrimSpace(g.head[c] + " " + title)
			}
		}
		for _, row := range lines[i+1:] {
			if strings.TrimSpace(row) == "" {
				break
			}
			g.rows = append(g.rows, cut(row))
		}
		list = append(list, g)
	}
	return list
}

// withoutTables leaves out the tables of a terminal: in a row, the word behind a shape's name may be its role.
func withoutTables(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "──") {
			continue
		}
		for k := i; k >= 0 && strings.TrimSpace(lines[k]) != ""; k-- {
			lines[k] = ""
		}
		for k := i + 1; k < len(lines) && strings.TrimSpace(lines[k]) != ""; k++ {
			lines[k] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// TestFormsAreRead checks that the readers find the five numbers in every form that a table or a
// sentence may have.
func TestFormsAreRead(t *testing.T) {
	r := readerOf(truth{"mission": nil, "mission_causal": nil})
	want := []mention{{"mission", before, "57.63 µs"}, {"mission", after, "9.01 µs"}, {"mission", speedup, "6.4×"}, {"mission", lower, "6.3×"}, {"mission", upper, "6.5×"}}
	bare := []mention{{"mission", before, "57.63"}, {"mission", after, "9.01"}, {"mission", speedup, "6.4×"}, {"mission", lower, "6.3×"}, {"mission", upper, "6.5×"}}
	for name, c := range map[string]struct{ got, want []mention }{
		"Markdown": {r.tables(markdownTables("| shape | baseline | candidate | speedup [interval] | required |\n| --- | --: | --: | --- | --- |\n" +
			"| **`mission`** | 57.63 µs | 9.01 µs | **6.4×** \\[6.3×, 6.5×] | ≥ +10 % |\n| `other` | 1 µs | 1 µs | 0 % | – |\n")), want},
		"HTML": {r.tables(htmlTables(`<table><thead><tr><th>shape<th>baseline<th>candidate<th>speedup<th>interval</thead><tbody>` +
			`<tr><th scope="row"><strong>mission</strong> <span>S=2</span><td>57.63 µs<td>9.01&nbsp;µs<td>6.4×<td>[6.3×, 6.5×]</table>`)), want},
		"a terminal": {r.tables(terminalTables("  shape    baseline  candidate  speedup\n                                [interval]\n  ───────  ────────  ─────────  ─────────────────\n  mission     57.63       9.01  6.4× [6.3×, 6.5×]\n")), bare},
		"sides":      {r.tables(markdownTables("| shape | side | p50 |\n| --- | --- | --: |\n| `mission` | baseline | 57.63 |\n| `mission` | candidate | 9.01 |\n")), []mention{{"mission", before, "57.63"}, {"mission", median, "9.01"}}},
		"a sentence": {r.text("PASS · k is 6.4× faster on mission: 57.63 → 9.01 µs, 6.4× [6.3×, 6.5×], and mission_causals 1 → 2 µs"), want},
		"a row":      {r.text("✓ ┆ ● mission 2.9 % slower [−3.6 %, −2.2 %] ┆ goal ≥ −2 %"), []mention{{"mission", speedup, "2.9 % slower"}, {"mission", lower, "−3.6 %"}, {"mission", upper, "−2.2 %"}, {"mission", speedup, "2.9 % slower"}}},
		"a loss":     {r.text("✗ mission 28.0 → 49.0 µs, 1.75× slower [1.72×, 1.79×]"), []mention{{"mission", before, "28.0 µs"}, {"mission", after, "49.0 µs"}, {"mission", speedup, "1.75× slower"}, {"mission", lower, "1.79× slower"}, {"mission", upper, "1.72× slower"}}},
		"two units":  {r.text("too slow on mission: 4.25 ms → 720 µs (+2.9 %, goal +10 %)"), []mention{{"mission", before, "4.25 ms"}, {"mission", after, "720 µs"}, {"mission", speedup, "+2.9 %"}}},
		"a heading":  {r.text("slower on mission: 34.68 → 35.72 µs (2.9 % slower, limit 2 % slower)"), []mention{{"mission", before, "34.68 µs"}, {"mission", after, "35.72 µs"}, {"mission", speedup, "2.9 % slower"}}},
		"a goal":     {r.text("To pass: win back the time on mission (asked speedup >= -2% on mission)"), nil},
	} {
		if diff := cmp.Diff(c.want, c.got, cmp.AllowUnexported(mention{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// A shape may have the name of a role.
	terminal := "  shape   role    latency\n  ──────  ──────  ───────\n  small   target  −52.2 %\n  target  target  −70.0 %\n\n✓ target +44.6 % [+43.2 %, +46.0 %]\n"
	if diff := cmp.Diff([]mention{{"target", speedup, "+44.6 %"}, {"target", lower, "+43.2 %"}, {"target", upper, "+46.0 %"}, {"target", speedup, "+44.6 %"}},
		readerOf(truth{"small": nil, "target": nil}).terminal(terminal), cmp.AllowUnexported(mention{})); diff != "" {
		t.Errorf("a role (-want +got):\n%s", diff)
	}
	for text, want := range map[string]float64{"−2.9 %": -0.029, "2.9 % slower": -0.029, "1.25× slower": -0.2, "6.4×": 5.4, "1.39 ms": 1390, "34.68": 34.68, "1.2e7 µs": 1.2e7, "0 %": 0, "+1000 %": 10} {
		if got, half, ok := (mention{text: text}).read(); !ok || got-want > 1e-9 || want-got > 1e-9 || half <= 0 {
			t.Errorf("%s is read as %v ± %v", text, got, half)
		}
	}
}
