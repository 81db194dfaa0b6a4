package report

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"

	"github.com/kernelgate/kernelgate/gates"
)

// Whatever a verdict holds, every form is written, without the traces that
// figures and formats leave when they go wrong.
func TestAnyVerdictIsShown(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		v := arbitrary(rng)
		for name, got := range map[string]string{
			"OneLine":  OneLine(v),
			"Markdown": Markdown(v, Options{}),
			"Terminal": Terminal(v, TerminalOptions{Width: 60, Details: true}),
			"unbound":  Terminal(v, TerminalOptions{Details: true}),
		} {
			for _, trace := range []string{"NaN", "%!", "+Inf", "-Inf", "−Inf", "<nil>"} {
				if strings.Contains(got, trace) {
					t.Fatalf("%s has %q:\n%s", name, trace, got)
				}
			}
			if !utf8.ValidString(got) {
				t.Fatalf("%s is not UTF-8: %q", name, got)
			}
		}
		if s := OneLine(v); s == "" || strings.ContainsFunc(s, unicode.IsControl) || utf8.RuneCountInString(s) > oneLineRunes {
			t.Fatalf("OneLine is not one short line: %q", s)
		}
		checkInert(t, Markdown(v, Options{}))
	}
}

func TestEmptyVerdict(t *testing.T) {
	if got, want := OneLine(&gates.Verdict{}), "NO VERDICT"; got != want {
		t.Errorf("OneLine = %q, want %q", got, want)
	}
	if got, want := Markdown(&gates.Verdict{}, Options{}), "### ⚠️ NO VERDICT\n"; got != want {
		t.Errorf("Markdown = %q, want %q", got, want)
	}
	if got, want := Terminal(&gates.Verdict{}, TerminalOptions{Width: 80}), "⚠ NO VERDICT\n"; got != want {
		t.Errorf("Terminal = %q, want %q", got, want)
	}
}

func TestTerminalKeepsWithinWidth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	all := []*gates.Verdict{}
	for _, v := range verdicts() {
		all = append(all, v)
	}
	for range 15 {
		all = append(all, arbitrary(rng))
	}
	for _, v := range all {
		// Listings are not broken, so that they can be copied.
		v.Provenance.Command = ""
		v.ToPass = slices.DeleteFunc(slices.Clone(v.ToPass), func(step string) bool { _, _, command := Command(step); return command })
		for i := range v.Builds {
			v.Builds[i].Diagnostics = nil
		}
		if m := v.MachineCode; m != nil {
			for i := range m.Changes {
				m.Changes[i].Diff = ""
			}
		}
		for _, width := range []int{40, 80, 160} {
			for _, colour := range []bool{false, true} {
				for s := range strings.SplitSeq(Terminal(v, TerminalOptions{Width: width, Colour: colour, Details: true}), "\n") {
					if got := lipgloss.Width(s); got > width {
						t.Fatalf("a line of %d cells at width %d:\n%q", got, width, s)
					}
				}
			}
		}
	}
}

// The only control sequences in a terminal's text are our own colours.
func TestTerminalIsInert(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	own := strings.NewReplacer("\x1b[1m", "", "\x1b[22m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[39m", "", "\n", "")
	for range 60 {
		v := arbitrary(rng)
		for _, colour := range []bool{false, true} {
			got := Terminal(v, TerminalOptions{Width: 100, Colour: colour, Details: true})
			if !colour && strings.Contains(got, "\x1b") {
				t.Fatalf("a control sequence without colour: %q", got)
			}
			if rest := own.Replace(got); strings.ContainsFunc(rest, unicode.IsControl) {
				t.Fatalf("control characters: %q", rest)
			}
		}
	}
}

func TestColourChangesNothingElse(t *testing.T) {
	own := strings.NewReplacer("\x1b[1m", "", "\x1b[22m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[39m", "")
	for name, v := range verdicts() {
		for _, width := range []int{40, 80, 120} {
			bare := Terminal(v, TerminalOptions{Width: width, Details: true})
			if got := own.Replace(Terminal(v, TerminalOptions{Width: width, Details: true, Colour: true})); got != bare {
				t.Errorf("%s at width %d differs with colour", name, width)
			}
		}
	}
}

// Every cell and sentence of the document is in both forms.
func TestFormsAgree(t *testing.T) {
	for name, v := range verdicts() {
		md, txt := Markdown(v, Options{}), Terminal(v, TerminalOptions{Details: true})
		var visit func(bl block)
		see := func(l line) {
			if !strings.Contains(md, markdownLine(l)) {
				t.Errorf("%s: %q is not in Markdown", name, plainText(l))
			}
			for _, in := range l { // marks differ
				if !strings.Contains(txt, strings.TrimSpace(in.text)) {
					t.Errorf("%s: %q is not on a terminal", name, in.text)
				}
			}
		}
		visit = func(bl block) {
			switch bl := bl.(type) {
			case paragraph:
				see(bl.text)
			case bullets:
				for _, l := range bl.items {
					see(l)
				}
			case table:
				for _, row := range bl.rows {
					for _, l := range row {
						see(l)
					}
				}
			case details:
				for _, inner := range bl.blocks {
					visit(inner)
				}
			}
		}
		for _, s := range build(v, Links{}).sections {
			for _, bl := range s.blocks {
				visit(bl)
			}
		}
	}
}
