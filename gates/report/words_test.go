package report

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"text", Escape(" a|b\n@octocat --> "), "a&#124;b @&#8203;octocat --&gt;"},
		{"prose", EscapeProse("run `a|b` | now"), "run <code>a&#124;b</code> &#124; now"},
		{"code", EscapeCode(" /rebench\nvs=self "), "`/rebench vs=self`"},
		{"awkward code", EscapeCode("`-->"), "<code>\\`--&gt;</code>"},
		{"summary", EscapeSummary("<b>#1 gh-2 @x\n"), "&lt;b&gt;#&#8203;1 gh-&#8203;2 @&#8203;x"},
		{"plain", Plain("\ta\u202eb\x00\n"), "ab"},
		{"clip", Clip("one two three", 9), "one two…"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

// The times of a verdict on wrong outputs are shown if they were measured, without marks: nobody judged them.
func TestUnjudgedTimesAreShown(t *testing.T) {
	v := wrong()
	v.Comparisons = nil
	if text := Markdown(v, Options{}); strings.Contains(text, "not judged") {
		t.Errorf("times that nobody measured:\n%s", text)
	}
	v.Unjudged = passing().Comparisons
	for i := range v.Unjudged {
		v.Unjudged[i].Goal, v.Unjudged[i].Status = "", gates.NotRun
	}
	for form, text := range map[string]string{"Markdown": Markdown(v, Options{}), "a terminal": Terminal(v, TerminalOptions{Width: 80})} {
		for _, want := range []string{"Measured, and not judged: the verdict hangs on wrong outputs.", "1.20\u00a0ms", "+16.1\u00a0%"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", form, want, text)
			}
		}
	}
}

// Two runs that were not timed say why.
func TestCompareSaysWhyNothingIsThere(t *testing.T) {
	text := CompareRuns(Result{Verdict: wrong(), Evidence: &gates.Evidence{Kernel: "a"}}, Result{Verdict: overBudget(), Evidence: &gates.Evidence{Kernel: "a"}}, TerminalOptions{})
	if !strings.Contains(text, "A ended with DEFER (correctness): the output is wrong in 10 of 12 cases") || !strings.Contains(text, "B ended with DEFER (resources): over budget: ") {
		t.Error(text)
	}
}
