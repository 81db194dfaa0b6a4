package scheduler

import (
	"testing"
	"time"
)

// The leases of one UTC day add up; those of another day, of a machine without a GPU and of another repository do not count.
func TestGPUTimeOfADay(t *testing.T) {
	const minute = time.Minute
	type use struct {
		repo, label string
		ago, took   time.Duration
	}
	for _, c := range []struct {
		name  string
		limit Limit
		uses  []use
		held  bool
	}{
		{"nothing used", Limit{GPUTime: time.Hour}, nil, false},
		{"one lease within", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 0, 59 * minute}}, false},
		{"one lease at the limit", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 0, 60 * minute}}, true},
		{"two that reach it together", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 2 * time.Hour, 40 * minute}, {"r", "l4", 0, 30 * minute}}, true},
		{"whatever the case of the name", Limit{GPUTime: time.Hour}, []use{{"R", "l4", 0, 60 * minute}}, true},
		{"on the day before", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 24 * time.Hour, 90 * minute}}, false},
		{"on the day before and today", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 24 * time.Hour, 40 * minute}, {"r", "l4", 0, 40 * minute}}, false},
		{"noted late, after today's", Limit{GPUTime: time.Hour}, []use{{"r", "l4", 0, 60 * minute}, {"r", "l4", 24 * time.Hour, minute}}, true},
		{"without a GPU", Limit{GPUTime: time.Hour}, []use{{"r", "cpu", 0, 90 * minute}}, false},
		{"of another repository", Limit{GPUTime: time.Hour}, []use{{"other", "l4", 0, 90 * minute}}, false},
		{"without a limit", Limit{Jobs: 5}, []use{{"r", "l4", 0, 90 * minute}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, Limits{"r": c.limit})
			for _, u := range c.uses {
				d.Book(Use{Repo: u.repo, Label: u.label, Ended: d.now.Add(-u.ago), Took: u.took})
			}
			d.put(PullRequest, "r", "a")
			if got := d.take(); (got == "") != c.held {
				t.Errorf("%q was handed out, want it held: %v", got, c.held)
			}
		})
	}
}
