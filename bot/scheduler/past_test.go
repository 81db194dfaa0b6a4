package scheduler_test

import (
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// How long a job waited is counted by its class, once, when a runner first has it: not when it was handed out before this
// process began, nor when it is handed out again.
func TestWaited(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	q := scheduler.New(nil)
	for id, class := range map[string]scheduler.Class{"a": scheduler.PullRequest, "b": scheduler.Sweep, "c": scheduler.Sweep} {
		q.Add(scheduler.Job{ID: id, Class: class, Labels: []string{"cpu"}, Queued: start})
	}
	first, until := start.Add(4*time.Second), start.Add(time.Minute)
	q.Lease("a", "gpu1", []string{"cpu"}, 0, first, until)
	q.Lease("b", "gpu2", []string{"cpu"}, 0, start.Add(time.Hour), start.Add(2*time.Hour))
	q.Resume("c", "gpu3", "cpu", 0, start, first, until)
	q.Lease("a", "gpu4", []string{"cpu"}, 1, until, until.Add(time.Minute)) // gpu1 was lost
	all := q.Waited()
	if a, b := all[scheduler.PullRequest], all[scheduler.Sweep]; len(all) != 2 || a.Count != 1 || a.Sum != 4 || a.Within[0] != 0 || a.Within[1] != 1 || b.Count != 1 || b.Sum != 3600 {
		t.Errorf("%+v", all)
	}
}
