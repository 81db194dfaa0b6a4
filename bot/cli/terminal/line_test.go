package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A clock is a clock for lines, which tests set.
type clock struct{ now time.Time }

func (c *clock) after(seconds float64) {
	c.now = c.now.Add(time.Duration(seconds * float64(time.Second)))
}

func newLine(out *strings.Builder, width int, colour bool) (*Line, *clock) {
	c := &clock{time.Unix(0, 0)}
	return &Line{Out: out, Width: func() int { return width }, Colour: colour, Now: func() time.Time { return c.now }}, c
}

// frames returns what the terminal showed, one frame after the other.
func frames(painted string) []string { return strings.Split(painted, repaint)[1:] }

func done(names ...gates.Gate) []gates.GateResult {
	var all []gates.GateResult
	for _, n := range names {
		all = append(all, gates.GateResult{Gate: n, Status: gates.Passed})
	}
	return all
}

// TestLine shows a run as its author sees it, second by second.
func TestLine(t *testing.T) {
	var b strings.Builder
	l, clock := newLine(&b, 80, false)
	built, right := &runners.Standing{Kernel: "scale", Kind: "gpu", Gates: nil}, &runners.Standing{Kernel: "scale", Kind: "gpu", Gates: done("build", "ptxas")}
	timed := &runners.Standing{Kernel: "scale", Kind: "gpu", Gates: done("build", "ptxas", "correctness")}
	l.Report(runners.Event{Gate: "build", Text: "compiling the candidate", Standing: built})
	clock.after(3)
	l.Tick()
	l.Report(runners.Event{Gate: "correctness", Text: "small, seed 0", Total: 12, Unit: "cases", Standing: right})
	clock.after(4)
	l.Report(runners.Event{Gate: "correctness", Text: "small, seed 1", Done: 4, Total: 12, Unit: "cases", Standing: right})
	l.Report(runners.Event{Gate: "performance", Text: "measuring", Total: 6, Unit: "rounds", Standing: timed})
	clock.after(3)
	round := runners.Event{Gate: "performance", Text: "measuring", Done: 3, Total: 6, Unit: "rounds", Left: 9, Standing: timed}
	l.Report(round)
	clock.after(2)
	l.Tick()
	round.Text = "measuring mission" // the round's time left is as old as the round
	l.Report(round)
	clock.after(60)
	l.Tick()
	l.Report(runners.Event{Gate: "rivals", Text: "timing flash", Done: 1, Total: 2, Unit: "rivals"})
	l.Clear()
	clock.after(5)
	l.Tick()
	want := []string{
		"scale build · compiling the candidate",
		"scale build · compiling the candidate · 3 s",
		"scale ✓ build ✓ ptxas ░░░░░░░░ case 1/12 · small, seed 0",
		"scale ✓ build ✓ ptxas ▓▓░░░░░░ case 5/12 · small, seed 1 · 8 s left",
		"scale ✓ build ✓ ptxas ✓ correctness ░░░░░░░░ round 1/6 · measuring",
		"scale ✓ build ✓ ptxas ✓ correctness ▓▓▓▓░░░░ round 4/6 · measuring · 9 s left",
		"scale ✓ build ✓ ptxas ✓ correctness ▓▓▓▓░░░░ round 4/6 · measuring · 7 s left",
		"scale ✓ build ✓ ptxas ✓ correctness ▓▓▓▓░░░░ round 4/6 · 7 s left",
		"scale ✓ build ✓ ptxas ✓ correctness ▓▓▓▓░░░░ round 4/6 · measuring mission",
		"scale ✓ build ✓ ptxas ✓ correctness ▓▓▓▓░░░░ rival 2/2 · timing flash",
		"",
	}
	if got := frames(b.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLineFits checks that the output is one line at any width, and that the most important parts
// stay longest.
func TestLineFits(t *testing.T) {
	all := []gates.Gate{"build", "ptxas", "correctness", "sanitize"}
	e := runners.Event{Gate: "performance", Text: "measuring mission", Done: 3, Total: 6, Unit: "rounds", Detail: "mission +16.1 % [+14.0 %, +18.0 %] so far", Left: 9,
		Standing: &runners.Standing{Kernel: "sdpa_fp8", Kind: "gpu", Gates: done(all...)}}
	for width, want := range map[int]string{
		160: "sdpa_fp8 ✓ build ✓ ptxas ✓ correctness ✓ sanitize ▓▓▓▓░░░░ round 4/6 · measuring mission · mission +16.1 % [+14.0 %, +18.0 %] so far · 9 s left",
		130: "sdpa_fp8 ✓ build ✓ ptxas ✓ correctness ✓ sanitize ▓▓▓▓░░░░ round 4/6 · mission +16.1 % [+14.0 %, +18.0 %] so far · 9 s left",
		110: "sdpa_fp8 ✓ build ✓ ptxas ✓ correctness ✓ sanitize ▓▓▓▓░░░░ round 4/6 · measuring mission · 9 s left",
		80:  "sdpa_fp8 ✓ build ✓ ptxas ✓ correctness ✓ sanitize ▓▓▓▓░░░░ round 4/6 · 9 s left",
		79:  "✓ build ✓ ptxas ✓ correctness ✓ sanitize ▓▓▓▓░░░░ round 4/6 · 9 s left",
		50:  "✓ 4/4 gates ▓▓▓▓░░░░ round 4/6 · 9 s left",
		40:  "▓▓▓▓░░░░ round 4/6 · 9 s left",
		20:  "▓▓▓▓░░░░ round 4/6…",
		1:   "…",
		0:   "…",
	} {
		var b strings.Builder
		l, _ := newLine(&b, width, false)
		l.Report(e)
		if got := frames(b.String())[0]; got != want {
			t.Errorf("%d columns show\n%s\nwant\n%s", width, got, want)
		}
	}
	hostile := e
	hostile.Text, hostile.Standing = "a\nb\rc\x1b[2J漢字", &runners.Standing{Kernel: "k\n\x1b]0;t\x07", Kind: "gpu", Gates: done(all...)}
	for _, e := range append([]runners.Event{
		{Gate: "build", Text: "compiling the baseline"},
		{Gate: "correctness", Text: "small, seed 0, normal inputs", Done: 0, Total: 12, Unit: "cases"},
		{Gate: "performance", Text: "measuring mission", Done: 0, Total: 6, Unit: "rounds"},
		{Gate: "performance", Text: "measuring", Done: 3, Total: 6, Unit: "rounds", Detail: "mission +16.1 % [+14.0 %, +18.0 %] so far", Left: 4.2},
	}, e, hostile) {
		for width := range 170 {
			var b strings.Builder
			l, _ := newLine(&b, width, true)
			l.Report(e)
			frame := frames(b.String())[0]
			if n := ansi.StringWidth(frame); n >= max(width, 2) || strings.ContainsAny(frame, "\n\r") {
				t.Fatalf("%d of %d columns were painted: %q", n, width, frame)
			}
		}
	}
}

// TestLineOnCPU checks that the line on a CPU does not say ptxas.
func TestLineOnCPU(t *testing.T) {
	var b strings.Builder
	l, _ := newLine(&b, 80, false)
	l.Report(runners.Event{Gate: "performance", Total: 6, Unit: "rounds", Standing: &runners.Standing{Kernel: "scale", Kind: "cpu", Gates: done("build", "ptxas")}})
	if got, want := frames(b.String())[0], "scale ✓ build ✓ resources ░░░░░░░░ round 1/6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLineColours(t *testing.T) {
	var b strings.Builder
	l, _ := newLine(&b, 80, true)
	standing := &runners.Standing{Kernel: "scale", Kind: "gpu", Gates: append(done("build"), gates.GateResult{Gate: "ptxas", Status: gates.Failed}, gates.GateResult{Gate: "sanitize", Status: gates.Informs})}
	l.Report(runners.Event{Gate: "performance", Total: 6, Unit: "rounds", Standing: standing})
	want := "scale \x1b[32m✓\x1b[39m build \x1b[31m✗\x1b[39m ptxas \x1b[33m!\x1b[39m sanitize ░░░░░░░░ round 1/6"
	if got := frames(b.String())[0]; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
