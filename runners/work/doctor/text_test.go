package doctor

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTextWraps checks that no line is wider than the terminal, except for a word that people copy
// whole, and that no width loses a word.
func TestTextWraps(t *testing.T) {
	for _, tt := range hosts {
		host := fit()
		tt.change(&host)
		findings := Run(t.Context(), host, nil)
		plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		want := plain(Text(findings, Form{Width: 1000}))
		for width := narrow; width <= 200; width++ {
			text := Text(findings, Form{Width: width})
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for _, line := range lines[:len(lines)-1] {
				if utf8.RuneCountInString(line) <= width {
					continue
				}
				// A word that is too long for any line stands alone after the indentation.
				if behind := strings.TrimLeft(line, " "); strings.Contains(behind, " ") && behind != line {
					t.Errorf("%s: %d columns show %q", tt.name, width, line)
				}
			}
			if got := plain(text); got != want {
				t.Errorf("%s: %d columns show other words:\n%s", tt.name, width, text)
			}
		}
		if last := Summary(findings); utf8.RuneCountInString(last) > 78 || !strings.HasSuffix(want, last) {
			t.Errorf("%s: the last line is not %q", tt.name, last)
		}
	}
}

func TestTextColours(t *testing.T) {
	got := Text([]Finding{{Name: "git", Status: OK, Detail: "2.39.5"}, {Name: gpuName, Status: Missing, Detail: "broken", Remedy: "repair it"}}, Form{Width: 80, Colour: true})
	want := "\x1b[32m✓\x1b[39m git         2.39.5\n\x1b[31m✗\x1b[39m NVIDIA GPU  broken\n    repair it\n\n" +
		"\x1b[31m✗\x1b[39m doctor: 1 ok, 0 warnings, 1 failure: can run cpu kernels\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
