package scheduler

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A simulation is a fleet at work on the real queue, by a clock that jumps from one thing that happens to the next: jobs come,
// runners ask, measure, beat, crash and come back. Nothing in it waits.
type simulation struct {
	queue   *Queue
	rand    *rand.Rand
	now     time.Time
	events  events
	runners []*host
	jobs    map[string]*simJob
	queued  [len(fleet)][]*simJob // by kind of runner: those that are not done
	blind   bool                  // the queue is not told whose a job is

	again    time.Time // when the queue is asked again though nothing happens
	lastMark time.Time
	idle     time.Duration // of runners that are up, while a job waits that they could take and nothing holds back
	busy     time.Duration // of runners with a job, while such a job waits
	lostTime time.Duration // at jobs that were lost with their runner, at any time
	crashes  int
	left     int                                                       // jobs that are not done
	both     [len(fleet)][len(repositories)][len(repositories)]contest // of repositories, the earlier first, that waited for the same kind at the same time
}

type host struct {
	name   string
	kind   int // in fleet
	labels []string
	slow   time.Duration // how many times as long it takes
	up     bool
	asker  *Waiter
	job    *simJob
	turn   int // grows with every crash, so that what was planned before does not happen
}

type simJob struct {
	Job
	repo   int           // in repositories
	item   *item         // in the queue, once it came
	need   time.Duration // on a host that is not slow
	first  time.Time     // when it was first handed out
	leases int
}

// A contest is how much each of two repositories was handed out while both waited.
type contest struct {
	lasted time.Duration
	got    [2]time.Duration
}

const (
	simLease = 10 * time.Second       // within which a dead runner is noticed
	simAsk   = 300 * time.Millisecond // from the end of a job to the next request
)

// An event happens at a time; of two at one time, the earlier made one first.
type event struct {
	at  time.Time
	n   int
	run func()
}

type events struct {
	list []event
	made int
}

func (e *events) Len() int { return len(e.list) }
func (e *events) Less(i, j int) bool {
	return cmp.Or(e.list[i].at.Compare(e.list[j].at), e.list[i].n-e.list[j].n) < 0
}
func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)    { e.list = append(e.list, x.(event)) }
func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

// within is a time below d; the figures are whole numbers, so that they are the same on every machine.
func (s *simulation) within(d time.Duration) time.Duration {
	return time.Duration(s.rand.Int64N(int64(d)))
}

func (s *simulation) after(d time.Duration, run func()) {
	s.events.made++
	heap.Push(&s.events, event{s.now.Add(d), s.events.made, run})
}

// fleet is 50 runners of three kinds, every tenth of which is slow.
var fleet = [...]struct {
	label string
	count int
}{{"l4", 24}, {"a100", 16}, {"h200", 10}}

// repositories are eight, by how much they send: one sends as much as the next four.
var repositories = [...]struct {
	name   string
	weight int
}{{"giant", 40}, {"large", 16}, {"second", 14}, {"third", 12}, {"fourth", 8}, {"fifth", 5}, {"sixth", 3}, {"small", 2}}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		queue: New(nil), rand: rand.New(rand.NewPCG(seed, 17)), now: time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), jobs: map[string]*simJob{},
	}
	s.lastMark = s.now
	for k, kind := range fleet {
		for n := range kind.count {
			h := &host{name: fmt.Sprintf("%s-%d", kind.label, n), kind: k, labels: []string{kind.label, "gpu"}, slow: 1, up: true}
			if n%10 == 9 {
				h.slow = 2
			}
			s.runners = append(s.runners, h)
			s.ask(h)
			s.mayCrash(h)
		}
	}
	return s
}

// run plays until every job is done.
func (s *simulation) run() {
	for s.left > 0 {
		e := heap.Pop(&s.events).(event)
		s.mark(e.at)
		s.now = e.at
		e.run()
		s.match()
	}
}

// arrives has a job come at a time of the day.
func (s *simulation) arrives(at time.Duration, j *simJob) {
	s.jobs[j.ID] = j
	s.left++
	s.after(at, func() {
		j.Queued = s.now
		told := j.Job
		if s.blind {
			told.Repo, told.Author = "", ""
		}
		s.queue.Add(told)
		j.item = s.queue.byID[j.ID]
		for k, kind := range fleet {
			if slices.Contains(j.Labels, kind.label) {
				s.queued[k] = append(s.queued[k], j)
			}
		}
	})
}

func (s *simulation) ask(h *host) {
	h.asker = &Waiter{Labels: h.labels}
	s.queue.Ask(h.asker)
}

func (s *simulation) mayCrash(h *host) {
	turn := h.turn
	s.after(s.within(16*time.Hour), func() {
		if h.turn != turn {
			return
		}
		s.crashes++
		h.turn++
		h.up = false
		if h.job != nil {
			s.queue.Extend(h.job.ID, s.now, s.now.Add(simLease)) // the last beat
			s.lostTime += s.now.Sub(s.queue.byID[h.job.ID].lease.since)
			h.job = nil
		} else if h.asker != nil {
			s.queue.Withdraw(h.asker)
		}
		h.asker = nil
		s.after(10*time.Minute, func() { h.up = true; s.ask(h); s.mayCrash(h) })
	})
}

func (s *simulation) match() {
	offers, again := s.queue.Match(s.now)
	for _, o := range offers {
		h := s.runners[slices.IndexFunc(s.runners, func(h *host) bool { return h.asker == o.To })]
		s.lease(h, s.jobs[o.Job])
	}
	if !again.IsZero() && (s.again.Before(s.now) || again.Before(s.again)) {
		s.again = again
		s.after(again.Sub(s.now), func() {})
	}
}

func (s *simulation) lease(h *host, j *simJob) {
	i := s.queue.byID[j.ID]
	took := j.need * h.slow
	s.queue.Lease(j.ID, h.name, h.labels, i.lost(), s.now, s.now.Add(took+simLease)) // all its beats at once
	s.queue.Ack(j.ID)
	h.asker, h.job = nil, j
	if j.leases++; j.leases == 1 {
		j.first = s.now
	}
	s.award(h, j, took)
	turn := h.turn
	s.after(took, func() {
		if h.turn != turn {
			return
		}
		s.left--
		s.queue.Remove(j.ID, true, s.now)
		for k, all := range s.queued {
			s.queued[k] = slices.DeleteFunc(all, func(other *simJob) bool { return other == j })
		}
		h.job = nil
		s.after(simAsk, func() {
			if h.turn == turn {
				s.ask(h)
			}
		})
	})
}

// waitsFor is how many jobs of the pull requests' level wait for runners of a kind, by repository.
func (s *simulation) waitsFor(kind int) (waits [len(repositories)]int) {
	for _, j := range s.queued[kind] {
		if i := j.item; i.offered == nil && !s.now.Before(i.free) && s.queue.level(i, s.now) == highest {
			waits[j.repo]++
		}
	}
	return waits
}

// award counts a job that was handed out in the contests that its repository was in.
func (s *simulation) award(h *host, j *simJob, took time.Duration) {
	if s.queue.level(j.item, s.now) != highest {
		return
	}
	waits := s.waitsFor(h.kind)
	if waits[j.repo] < 1 {
		return
	}
	for other, n := range waits {
		if n > 0 && other < j.repo {
			s.both[h.kind][other][j.repo].got[1] += took
		} else if n > 0 && other > j.repo {
			s.both[h.kind][j.repo][other].got[0] += took
		}
	}
}

// mark counts what the time until then was used for.
func (s *simulation) mark(then time.Time) {
	d := then.Sub(s.lastMark)
	s.lastMark = then
	if d <= 0 {
		return
	}
	for k, kind := range fleet {
		labels := []string{kind.label, "gpu"}
		if !slices.ContainsFunc(s.queue.jobs, func(i *item) bool { return s.queue.available(i, labels, nil, s.now) }) {
			continue
		}
		for _, h := range s.runners {
			if !h.up || h.kind != k {
				continue
			}
			if h.job == nil {
				s.idle += d
			} else {
				s.busy += d
			}
		}
		waits := s.waitsFor(k)
		for a := range waits {
			for b := a + 1; b < len(waits); b++ {
				if waits[a] > 0 && waits[b] > 0 {
					s.both[k][a][b].lasted += d
				}
			}
		}
	}
}

// busyDay is 5,000 jobs of eight repositories: one sweeps a thousand kernels at night, and
// there is more to do in the afternoon than the fleet can.
func (s *simulation) busyDay() {
	total := 0
	for _, r := range repositories {
		total += r.weight
	}
	const all, swept, sweeper = 5000, 1000, 3
	for n := range all {
		j := &simJob{Job: Job{ID: fmt.Sprint("j", n)}}
		var at time.Duration
		if n < swept {
			j.Class, j.repo, j.Author = Sweep, sweeper, "nightly"
			at = 2*time.Hour + time.Duration(n)*time.Second
		} else {
			pick := s.rand.IntN(total)
			for n, r := range repositories {
				if pick -= r.weight; pick < 0 {
					j.repo = n
					break
				}
			}
			j.Author = fmt.Sprintf("%s-%d", repositories[j.repo].name, min(s.rand.IntN(6), s.rand.IntN(6)))
			j.Class = []Class{MergeQueue, PullRequest, PullRequest, PullRequest, PullRequest, PullRequest, PullRequest, Command, Command, Push}[s.rand.IntN(10)]
			at = 8*time.Hour + max(s.within(10*time.Hour), s.within(10*time.Hour)) // more and more until six
			if s.rand.IntN(4) == 0 {
				at = s.within(24 * time.Hour)
			}
		}
		j.Repo = repositories[j.repo].name
		kernel := s.rand.IntN(12)
		j.Kernel = fmt.Sprintf("%s/k%d", j.Repo, kernel)
		j.Labels = [][]string{{"l4"}, {"l4"}, {"l4"}, {"a100"}, {"a100"}, {"h200"}, {"h200", "a100"}, {"gpu"}}[s.rand.IntN(8)]
		mean := time.Duration(4+kernel) * time.Minute
		j.need = mean*3/4 + s.within(mean/2)
		s.arrives(at, j)
	}
}

// waits are how long jobs of a class waited for their first runner, least first.
func (s *simulation) waits(c Class) []time.Duration {
	var all []time.Duration
	for _, j := range s.jobs {
		if j.Class == c {
			all = append(all, j.first.Sub(j.Queued))
		}
	}
	slices.Sort(all)
	return all
}

// unfair is by how much the shares of two repositories differed, at worst, where both waited for long enough to tell.
func (s *simulation) unfair() (worst float64, lines []string) {
	for k, pairs := range s.both {
		for a := range pairs {
			for b, c := range pairs[a] {
				mean := (c.got[0] + c.got[1]) / 2
				if c.lasted < 2*time.Hour || mean < 10*time.Hour {
					continue
				}
				off := float64((c.got[0] - c.got[1]).Abs()) / float64(mean) / 2
				worst = max(worst, off)
				lines = append(lines, fmt.Sprintf("%s %s and %s, %.1f h: %.1f and %.1f GPU hours, %.1f %% off",
					fleet[k].label, repositories[a].name, repositories[b].name, c.lasted.Hours(), c.got[0].Hours(), c.got[1].Hours(), 100*off))
			}
		}
	}
	slices.Sort(lines)
	return worst, lines
}
