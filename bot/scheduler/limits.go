package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

// A Limit is what a repository may use; zero is no limit.
type Limit struct {
	Jobs    int           // at runners at once
	GPUTime time.Duration // a day, by UTC; time on runners without a GPU is free
}

// Limits are by repository, in lower case; "*" is for those that are not named.
type Limits map[string]Limit

// Of is what a repository may use.
func (l Limits) Of(repo string) Limit {
	if own, ok := l[strings.ToLower(repo)]; ok {
		return own
	}
	return l["*"]
}

// free tells whether time under that label is no GPU's.
func free(label string) bool { return label == runners.CPULabel || runners.IsBuildLabel(label) }

// A Use is a lease that is over, as it is stored.
type Use struct {
	Repo   string        `json:"repo,omitempty"`
	Kernel string        `json:"kernel,omitempty"`
	Label  string        `json:"label"` // under which the runner got the job
	Ended  time.Time     `json:"ended"`
	Took   time.Duration `json:"took"`            // nanoseconds
	Whole  bool          `json:"whole,omitempty"` // the job was finished in it
}

// spent is what a repository has used on one day.
type spent struct {
	day  int64
	time time.Duration
}

// dayOf is the day of a time by UTC.
func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// Book counts a lease that is over.
func (q *Queue) Book(u Use) {
	if free(u.Label) {
		return
	}
	repo, on := strings.ToLower(u.Repo), dayOf(u.Ended)
	switch was := q.spent[repo]; {
	case was.day == on:
		q.spent[repo] = spent{on, was.time + u.Took}
	case was.day < on:
		q.spent[repo] = spent{on, u.Took}
	}
}

// Learn books what an earlier process has seen.
func (q *Queue) Learn(u Use) {
	q.Book(u)
	if u.Whole {
		q.learn(u)
	}
}

// A Held job waits for its repository's limit, whichever runners are free.
type Held struct {
	Limit Limit
	Jobs  int           // at runners
	Used  time.Duration // today, with what runs as it is expected to end; zero where it is Jobs that holds it
	Until time.Time     // when a new day begins; zero where a job must end
}

func (h Held) String() string {
	if h.Until.IsZero() {
		return fmt.Sprintf("the repository may have %d at runners at once", h.Limit.Jobs)
	}
	return fmt.Sprintf("the repository's %d GPU minutes of this day are used, and the next begin at 00:00 UTC", int(h.Limit.GPUTime.Minutes()))
}

// inUse is what repositories have at runners now, in lower case; nil where nothing is limited.
type inUse map[string]struct {
	jobs int
	time time.Duration // on GPUs, as it is expected to end
}

func (q *Queue) inUse(now time.Time) inUse {
	if len(q.Limits) == 0 {
		return nil
	}
	all := inUse{}
	for _, i := range q.jobs {
		if i.offered == nil && i.waits(now) {
			continue
		}
		repo := strings.ToLower(i.Repo)
		u := all[repo]
		u.jobs++
		if l := i.lease; l != nil && !free(l.label) && !i.waits(now) {
			u.time += max(l.expected, now.Sub(l.since))
		}
		all[repo] = u
	}
	return all
}

// held is why a job that waits must wait for more than a runner, or nil.
func (q *Queue) held(i *item, used inUse, now time.Time) *Held {
	if len(q.Limits) == 0 {
		return nil
	}
	limit := q.Limits.Of(i.Repo)
	if limit == (Limit{}) {
		return nil
	}
	repo := strings.ToLower(i.Repo)
	h := Held{Limit: limit, Jobs: used[repo].jobs}
	if limit.Jobs > 0 && h.Jobs >= limit.Jobs {
		return &h
	}
	h.Used = used[repo].time
	if was := q.spent[repo]; was.day == dayOf(now) {
		h.Used += was.time
	}
	needsNone := len(i.Labels) == 1 && i.Labels[0] == runners.CPULabel
	if limit.GPUTime == 0 || h.Used < limit.GPUTime || needsNone {
		return nil
	}
	y, m, d := now.UTC().Date()
	h.Until = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
	return &h
}
