package local

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

// Live shows what the runner is at. It can be taken away before something else is
// printed.
type Live interface {
	runners.Progress
	Clear()
}

// A Teller writes what happens to a terminal. The runner's progress comes from elsewhere
// at any time, and never into the middle of a line.
type Teller struct {
	mu    sync.Mutex
	out   io.Writer
	live  Live
	now   func() time.Time
	begun time.Time
}

// NewTeller returns one whose clock starts now.
func NewTeller(out io.Writer, live Live, now func() time.Time) *Teller {
	return &Teller{out: out, live: live, now: now, begun: now()}
}

// Say prints text as it is.
func (t *Teller) Say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Clear()
	fmt.Fprintf(t.out, format, args...)
}

// Note prints what happened and when.
func (t *Teller) Note(format string, args ...any) {
	t.Say("%6.1f s  %s\n", t.now().Sub(t.begun).Seconds(), fmt.Sprintf(format, args...))
}

// Report shows what the runner is at.
func (t *Teller) Report(e runners.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Report(e)
}

// indent sets a report apart from the text around it.
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
