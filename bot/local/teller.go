package local

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

// Live shows the runner's progress. Clear removes it before something else is printed.
type Live interface {
	runners.Progress
	Clear()
}

// A Teller prints what happens to a terminal. The runner's progress arrives concurrently, but never
// in the middle of a line.
type Teller struct {
	mu    sync.Mutex
	out   io.Writer
	live  Live
	now   func() time.Time
	begun time.Time
}

// NewTeller returns a Teller whose clock starts now.
func NewTeller(out io.Writer, live Live, now func() time.Time) *Teller {
	return &Teller{out: out, live: live, now: now, begun: now()}
}

// Say prints a text.
func (t *Teller) Say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Clear()
	fmt.Fprintf(t.out, format, args...)
}

// Note prints an event with its time.
func (t *Teller) Note(format string, args ...any) {
	t.Say("%6.1f s  %s\n", t.now().Sub(t.begun).Seconds(), fmt.Sprintf(format, args...))
}

// Report shows the runner's progress.
func (t *Teller) Report(e runners.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Report(e)
}

// indent indents a report, to separate it from the text around it.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}
