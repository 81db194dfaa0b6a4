package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// unknown is what a job counts for that nobody has measured yet.
const unknown = 5 * time.Minute

// A work is one kernel on one kind of runner.
type work struct{ repo, kernel, label string }

// durations are the last ones, oldest first.
type durations []time.Duration

// lately is how many count.
const lately = 9

func (q *Queue) learn(u Use) {
	for _, w := range []work{{u.Repo, u.Kernel, u.Label}, {label: u.Label}} {
		d := append(q.past[w], u.Took)
		q.past[w] = slices.Clone(d[max(0, len(d)-lately):])
	}
	if len(q.past) > mostWorks {
		clear(q.past) // it is known again after a day
	}
}

// mostWorks bounds what is remembered of kernels that may be gone.
const mostWorks = 50_000

// expect is how long the job will take: the median of what it took lately on that kind or, of a kernel that is new, of what
// others took; zero if none is known.
func (q *Queue) expect(j Job, label string) time.Duration {
	own := q.past[work{j.Repo, j.Kernel, label}]
	if len(own) == 0 {
		own = q.past[work{label: label}]
	}
	if len(own) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(own))
	return sorted[len(sorted)/2]
}

// ForecastError is how far estimates were off.
type ForecastError struct {
	Began Histogram // of the wait that was told when somebody first looked
	Took  Histogram // of the time at the runner, where there was an earlier run to go by
}

// A Histogram counts by size, in seconds.
type Histogram struct {
	Count  uint64
	Sum    float64
	Within [len(Bounds)]uint64 // as many were at most that
}

// Bounds are the sizes.
var Bounds = [...]float64{1, 5, 15, 60, 300, 900, 3600, 14400}

func (h *Histogram) add(told, was time.Duration) {
	off := (was - told).Abs().Seconds()
	h.Count++
	h.Sum += off
	for i, bound := range Bounds {
		if off <= bound {
			h.Within[i]++
		}
	}
}

// ForecastError says how far estimates were off.
func (q *Queue) ForecastError() ForecastError { return q.forecastError }

// Waited is how long jobs waited until a runner first had them. One that was given back waits on and is not counted again.
func (q *Queue) Waited() map[Class]Histogram { return maps.Clone(q.waited) }

// A Position is where a job stands in line.
type Position struct {
	Ahead int           // jobs that go before it to the runners that could take it
	Wait  time.Duration // until it begins, if nothing else comes
	Took  time.Duration // that it is expected to take then; zero where nobody knows
	Held  *Held         // what else it waits for; the rest is then empty
}

// A runner is one in a forecast.
type runner struct {
	labels []string
	kind   string
	free   time.Time
}

// foreseen is the maximum number of jobs that a forecast starts. Each start looks at all waiting jobs. A forecast of all 10,000
// jobs of a queue took half a minute, and the leader handed out no job meanwhile.
const foreseen = 250

// Positions forecasts when the waiting jobs begin, if no new job arrives and every job takes its expected time. It simulates the
// queue to its end, or until it has started as many jobs as foreseen allows. A job that none of the current runners takes has no
// position.
func (q *Queue) Positions(now time.Time) map[string]Position {
	places, used := map[string]Position{}, q.inUse(now)
	for _, i := range q.jobs {
		if h := q.held(i, used, now); h != nil && i.waits(now) && i.offered == nil {
			places[i.ID] = Position{Held: h}
		}
	}
	p := q.clone(now)
	var runners []runner
	for _, a := range p.asking {
		if len(a.Labels) > 0 {
			runners = append(runners, runner{a.Labels, a.kind, now})
		}
	}
	for _, i := range q.jobs {
		if i.lease != nil && i.lease.holder != "" && now.Before(i.free) {
			left := i.lease.since.Add(i.lease.expected).Sub(now)
			runners = append(runners, runner{i.lease.labels, kindOf(i.lease.labels), now.Add(max(left, time.Minute))}) // one that takes longer than expected is soon done, as far as anybody knows
		}
	}
	begun := map[string]int{} // by kind
	for turns := 0; len(runners) > 0 && turns < foreseen; {
		at := 0
		for n := range runners {
			if runners[n].free.Before(runners[at].free) {
				at = n
			}
		}
		r := &runners[at]
		i := p.next(r.labels, r.kind, r.free)
		if i == nil {
			runners = slices.Delete(runners, at, at+1) // what is given back for later, or held, is left out
			continue
		}
		took := p.expect(i.Job, i.labelFor(r.labels))
		if places[i.ID].Held == nil {
			places[i.ID] = Position{Ahead: ahead(i, begun), Wait: r.free.Sub(now), Took: took}
		}
		turns++
		begun[r.kind]++
		p.took(i, r.kind, r.free)
		p.charge(i, r.labels, r.free)
		p.forget(i)
		r.free = r.free.Add(cmp.Or(took, unknown))
	}
	return places
}

// ahead counts those that begin before it at runners that could take it.
func ahead(i *item, begun map[string]int) (n int) {
	for kind, before := range begun {
		if i.labelFor(strings.Split(kind, ",")) != "" {
			n += before
		}
	}
	return n
}

// Forecast is Places for one job, which is held to it: Off will say how far that was off.
func (q *Queue) Forecast(id string, places map[string]Position, now time.Time) (Position, bool) {
	place, ok := places[id]
	if i := q.byID[id]; i != nil && ok && place.Held == nil && i.told.IsZero() && i.waits(now) {
		i.told, i.asked = now.Add(place.Wait), now
	}
	return place, ok
}

const forever = 1000 * 24 * time.Hour

// clone is a queue that can be played without consequences.
func (q *Queue) clone(now time.Time) *Queue {
	c := New(q.Limits)
	c.AgingInterval = q.AgingInterval
	c.asking = slices.Clone(q.asking)
	for _, i := range q.jobs {
		copied := *i
		if !i.waits(now) {
			copied.free = now.Add(forever) // its lease is extended
		}
		c.jobs = append(c.jobs, &copied)
	}
	for t, s := range q.shares {
		c.shares[t] = s.clone()
	}
	c.streak, c.passed, c.spent, c.builders = maps.Clone(q.streak), maps.Clone(q.passed), maps.Clone(q.spent), maps.Clone(q.builders)
	c.past = q.past // is read alone: what is played is not learnt from
	return c
}
