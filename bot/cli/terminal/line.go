package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A Line shows a run on one line of a terminal, which it repaints: the finished gates, a bar of the
// current gate, and the time left.
//
//	scale ✓ build ✓ correctness ▓▓▓▓▓░░░ round 4/6 · 9 s left
//
// If the line does not fit, the least important parts are left out.
type Line struct {
	Out io.Writer
	// Width returns the columns of the terminal. It is called for every repaint, because people
	// resize windows.
	Width  func() int
	Colour bool
	Now    func() time.Time

	mu       sync.Mutex
	drawn    bool
	latest   runners.Event
	standing runners.Standing // of the last event that had one
	began    time.Time        // when the current gate began
	left     time.Duration
	leftAt   time.Time // when left was reported
}

// Report paints the event over the last one.
func (l *Line) Report(e runners.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Now()
	if e.Standing != nil {
		l.standing = *e.Standing
	}
	if e.Gate != l.latest.Gate || !l.drawn || e.Total == 0 && e.Text != l.latest.Text {
		l.began, l.left = now, 0
	}
	// A backend repeats the round's time left for every shape; the first report starts the
	// countdown.
	if left := e.Left.Duration(); left > 0 && (e.Done != l.latest.Done || e.Total != l.latest.Total || l.left == 0) {
		l.left, l.leftAt = left, now
	}
	l.latest, l.drawn = e, true
	l.paint(now)
}

// Tick repaints the line as time passes. It does not repaint a cleared line.
func (l *Line) Tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		l.paint(l.Now())
	}
}

// Clear removes the line, so that something else can be printed.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		fmt.Fprint(l.Out, repaint)
		l.drawn = false
	}
}

func (l *Line) paint(now time.Time) {
	width := max(l.Width()-1, 1) // a full line would make some terminals wrap
	p := l.parts(now)
	text := p.text
	for _, leaveOut := range []func(){
		func() { p.text = "" },
		func() { p.text, p.detail = text, "" },
		func() { p.text = "" },
		func() { p.kernel = "" },
		func() { p.gates = p.counted },
		func() { p.gates = "" },
	} {
		if ansi.StringWidth(p.String()) <= width {
			break
		}
		leaveOut()
	}
	fmt.Fprint(l.Out, repaint+ansi.Truncate(p.String(), width, "…"))
}

// parts are the pieces of a line.
type parts struct {
	kernel  string
	gates   string // the finished gates: ✓ build ✓ correctness
	counted string // the same, shorter: ✓ 2 gates
	now     string // the current gate: a bar and its unit, or its name
	text    string // the current step
	detail  string // the interval so far
	left    string
}

func (p parts) String() string {
	var said []string
	for _, s := range []string{p.kernel, p.gates, p.now} {
		if s != "" {
			said = append(said, s)
		}
	}
	line := strings.Join(said, " ")
	for _, s := range []string{p.text, p.detail, p.left} {
		if s != "" {
			line += " · " + s
		}
	}
	return line
}

func (l *Line) parts(now time.Time) parts {
	e := l.latest
	p := parts{kernel: visible(l.standing.Kernel), now: visible(string(e.Gate)), text: visible(e.Text), detail: visible(e.Detail)}
	p.gates, p.counted = l.finished()
	elapsed, left := now.Sub(l.began), l.left-now.Sub(l.leftAt)
	if e.Total > 0 {
		unit := strings.TrimSuffix(visible(e.Unit), "s")
		// Rounds and cases belong to one gate each.
		if unit != "round" && unit != "case" && unit+"s" != p.now {
			unit = strings.TrimSpace(p.now + " " + unit)
		}
		p.now = fmt.Sprintf("%s %s %d/%d", bar(e.Done, e.Total), unit, min(e.Done+1, e.Total), e.Total)
		if l.left == 0 && e.Done > 0 {
			left = elapsed * time.Duration(e.Total-e.Done) / time.Duration(e.Done)
		}
	}
	switch {
	case left >= time.Second:
		p.left = span(left) + " left"
	case e.Total == 0 && elapsed >= 2*time.Second:
		p.left = span(elapsed)
	}
	return p
}

// finished names the gates that the run has finished, and counts them.
func (l *Line) finished() (names, counted string) {
	var all []string
	passed := 0
	for _, g := range l.standing.Gates {
		if g.Gate == l.latest.Gate {
			continue // it is still running
		}
		mark := "!" // it does not decide: a required gate that fails ends the run
		switch g.Status {
		case gates.Passed:
			mark = l.coloured("✓", "32")
			passed++
		case gates.Failed:
			mark = l.coloured("✗", "31")
		default:
			mark = l.coloured(mark, "33")
		}
		all = append(all, mark+" "+visible(g.Gate.Title(l.standing.Kind)))
	}
	if len(all) > 0 {
		counted = fmt.Sprintf("%s %d/%d gates", l.coloured("✓", "32"), passed, len(all))
	}
	return strings.Join(all, " "), counted
}

func (l *Line) coloured(s, colour string) string {
	if !l.Colour {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[39m"
}

// barCells is the width of a bar.
const barCells = 8

func bar(done, total int) string {
	full := min(max(barCells*done/total, 0), barCells)
	return strings.Repeat("▓", full) + strings.Repeat("░", barCells-full)
}

// span formats a time without unnecessary precision.
func span(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
}

// visible removes characters that would break or repaint the line.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
