package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A teller writes the story. The runner's progress comes from elsewhere at any
// time, and never into the middle of a line.
type teller struct {
	mu    sync.Mutex
	out   io.Writer
	live  Live
	now   func() time.Time
	begun time.Time
}

// say prints text as it is.
func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Clear()
	fmt.Fprintf(t.out, format, args...)
}

// note prints what happened and when.
func (t *teller) note(format string, args ...any) {
	t.say("%6.1f s  %s\n", t.now().Sub(t.begun).Seconds(), fmt.Sprintf(format, args...))
}

// chapter begins something new.
func (t *teller) chapter(format string, args ...any) {
	t.say("\n─── %s ───\n\n", fmt.Sprintf(format, args...))
}

// Report shows what the runner is at.
func (t *teller) Report(e runners.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.Report(e)
}

// indent sets a report apart from the story.
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

func outcome(o gates.Outcome, r gates.Reason) string {
	if r == "" {
		return string(o)
	}
	return fmt.Sprintf("%s (%s)", o, r)
}

// summary is one stage in one line, at the end.
func summary(s stage, v *gates.Verdict) (line string, expected bool) {
	got, want := outcome(v.Outcome, v.Reason), outcome(s.outcome, s.reason)
	if got != want {
		return fmt.Sprintf("✗ %-8s %-20s expected %s", s.name, got, want), false
	}
	line = fmt.Sprintf("✓ %-8s %-20s", s.name, got)
	for _, c := range v.Comparisons {
		if c.Role == gates.RoleTarget && c.Baseline != nil && c.Candidate != nil {
			line += fmt.Sprintf(" %s: %.0f µs → %.0f µs", c.Shape, c.Baseline.P50, c.Candidate.P50)
			break
		}
	}
	return strings.TrimRight(line, " "), true
}

// A follower is the runner's stderr: whole lines go to the log, and what it says
// of its progress to whoever looks.
type follower struct {
	log  io.Writer
	live runners.Progress
	rest []byte
}

func (f *follower) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		i := bytes.IndexByte(f.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := f.rest[:i+1]
		if e, ok := progressIn(line); ok {
			f.live.Report(e)
		}
		if _, err := f.log.Write(line); err != nil {
			return 0, err
		}
		f.rest = f.rest[i+1:]
	}
}

// progressIn reads a line of the runner's JSON log. Progress bears a kernel's name
// and no job's: everything else that the runner logs bears the job too.
func progressIn(line []byte) (runners.Event, bool) {
	var record struct{ Level, Msg, Kernel, Job string }
	if json.Unmarshal(line, &record) != nil || record.Level != "INFO" || record.Kernel == "" || record.Job != "" {
		return runners.Event{}, false
	}
	gate, text, ok := strings.Cut(record.Msg, ": ")
	return runners.Event{Gate: gates.Gate(gate), Text: text}, ok
}
