package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/runners"
)

// Built is how the stage ended in which a job is compiled and not measured.
type Built struct {
	By     string `json:"by,omitempty"`     // "" where nobody did: a runner that measures has begun
	Builds string `json:"builds,omitempty"` // name in Bundles of what was compiled, which is its SHA-256 in hex; "" where nothing came of it
	Lost   bool   `json:"lost,omitempty"`   // the runner was not heard any more
}

// Compiles tells whether the lease is one to compile the job alone.
func (l *Lease) Compiles() bool { return l.Build != "" && l.Label == l.Build && l.Built == nil }

// labelFor is the label under which a runner gets the job: to compile it, where nobody has. Runners that compile never measure.
func (e *entry) labelFor(labels []string, built *Built) string {
	if built == nil && e.Build != "" && slices.Contains(labels, e.Build) {
		return e.Build
	}
	i := slices.IndexFunc(e.Labels, func(l string) bool { return slices.Contains(labels, l) && !runners.IsBuildLabel(l) })
	if i < 0 {
		return ""
	}
	return e.Labels[i]
}

// HandOn ends the stage in which the job is compiled: from now on it is for those who measure. Builds is what was compiled, by its
// name in Bundles; "" is nothing.
func (l *Lease) HandOn(ctx context.Context, builds string) error {
	if err := l.end(ctx, leaseRecord{State: released, Losses: l.Losses, Built: &Built{By: l.holder, Builds: builds}}); err != nil {
		return fmt.Errorf("hand job %s on: %w", l.ID, err)
	}
	l.of.line.change(func(q *scheduler.Queue) {
		now := time.Now()
		q.Built(l.ID)
		if use, ok := q.Release(l.ID, now, now); ok {
			use.Whole = true
			q.Learn(use)
		}
	})
	return nil
}
