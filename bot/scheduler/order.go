package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A Class is why a job is there.
type Class string

// The classes, most urgent first.
const (
	MergeQueue  Class = "merge-queue"
	PullRequest Class = "pull-request"
	Command     Class = "command" // somebody asked for it once more
	Push        Class = "push"
	Submission  Class = "submission" // of an agent, which asks again and again
	Sweep       Class = "sweep"      // nobody waits for it
)

// A level is how urgent a job is now; the least goes first.
type level int

const (
	urgent level = iota // the merge queue's own: nothing rises to it
	highest
	submitted level = 3 // for good: agents would fill every class that their jobs rise to
	lowest    level = 4
)

// level is the job's class and how long it has waited.
func (q *Queue) level(i *item, now time.Time) level {
	var l level
	switch i.Class {
	case MergeQueue:
		return urgent
	case Command:
		l = 2
	case Push:
		l = 3
	case Submission:
		return submitted
	case Sweep:
		l = lowest
	default: // PullRequest
		return highest
	}
	return max(highest, l-level(max(0, now.Sub(i.Queued))/q.AgingInterval))
}

// othersAfter is how many jobs in a row the merge queue gets while others wait, and submissionAfter how many jobs are handed out
// while a submission waits.
const (
	othersAfter     = 7
	submissionAfter = 15
)

// next is the job whose turn it is for a runner with these labels, which are of that kind, or nil. It changes nothing.
func (q *Queue) next(labels []string, kind string, now time.Time) *item {
	tired, owed := q.streak[kind] >= othersAfter, q.passed[kind] >= submissionAfter
	used := q.inUse(now)
	var best *item
	var rank [4]int64
	for _, i := range q.jobs {
		if !q.available(i, labels, used, now) {
			continue
		}
		if r := q.rank(i, kind, tired, owed, now); best == nil || slices.Compare(r[:], rank[:]) < 0 {
			best, rank = i, r
		}
	}
	return best
}

// available tells whether a runner with these labels could have the job now.
func (q *Queue) available(i *item, labels []string, used inUse, now time.Time) bool {
	if i.offered != nil || now.Before(i.free) {
		return false
	}
	if i.lost() >= leasesAtMost {
		return len(labels) == 0
	}
	if len(labels) == 0 {
		return i.building() // whoever compiled it is lost, and somebody has to say so
	}
	label := i.labelFor(labels)
	if label == "" || label != i.Build && now.Before(q.keptUntil(i, now)) {
		return false
	}
	held := q.held(i, used, now)
	return held == nil || label == i.Build && !held.Until.IsZero() // to compile takes no GPU
}

// rank is less for whoever goes first: by level, then by what the repository has had, the author, and by age. A submission that is
// owed its turn goes before everything.
func (q *Queue) rank(i *item, kind string, tired, owed bool, now time.Time) [4]int64 {
	l := q.level(i, now)
	s := q.shares[turn{kind, l}]
	switch {
	case tired && l == urgent:
		l = lowest + 1
	case owed && i.Class == Submission:
		l = urgent - 1
	}
	return [4]int64{int64(l), int64(s.at(i.Repo)), int64(s.inside(i.Repo).at(i.Author)), i.Queued.UnixNano()}
}

// took notes who was served when a runner of that kind asked.
func (q *Queue) took(i *item, kind string, now time.Time) {
	t := turn{kind, q.level(i, now)}
	q.streak[kind]++
	if t.level != urgent || !q.othersWait(i, now) {
		q.streak[kind] = 0
	}
	q.passed[kind]++
	if i.Class == Submission || !q.submissionWaits(i, now) {
		q.passed[kind] = 0
	}
	s := q.sharesOf(t)
	s.now = s.at(i.Repo)
	within := s.within(i.Repo)
	within.now = within.at(i.Author)
}

// submissionWaits tells whether a submission waits for the runners that this job waits for.
func (q *Queue) submissionWaits(i *item, now time.Time) bool {
	used := q.inUse(now)
	return slices.ContainsFunc(q.jobs, func(other *item) bool {
		return other.Class == Submission && q.available(other, i.wants(), used, now)
	})
}

// othersWait tells whether anything but the merge queue's waits for the runners that this job waits for.
func (q *Queue) othersWait(i *item, now time.Time) bool {
	used := q.inUse(now)
	return slices.ContainsFunc(q.jobs, func(other *item) bool {
		return other.Class != MergeQueue && q.available(other, i.wants(), used, now)
	})
}

// A turn is what jobs of one level contend for: runners of one kind.
type turn struct {
	kind  string
	level level
}

// shares is how much of something each of several has had, as time on a common scale: whoever stands furthest back is
// next. Whoever begins, or begins again, begins where the one stood who was last served. Nil is of nobody.
type shares struct {
	now   time.Duration            // where the one stood who was last served
	stand map[string]time.Duration // where each stands who stands further on
	inner map[string]*shares       // of those within one
}

func (s *shares) at(who string) time.Duration {
	if s == nil {
		return 0
	}
	return max(s.now, s.stand[who])
}

func (s *shares) inside(who string) *shares {
	if s == nil {
		return nil
	}
	return s.inner[who]
}

func (s *shares) within(who string) *shares {
	if s.inner == nil {
		s.inner = map[string]*shares{}
	}
	if s.inner[who] == nil {
		s.inner[who] = &shares{}
	}
	return s.inner[who]
}

// charge has somebody stand further on than where it would begin.
func (s *shares) charge(who string, by time.Duration) { s.set(who, s.at(who)+by) }

// correct says that an earlier charge should have been so much more.
func (s *shares) correct(who string, by time.Duration) {
	stood, known := s.stand[who]
	if !known {
		stood = s.now
	}
	s.set(who, stood+by)
}

func (s *shares) set(who string, at time.Duration) {
	if s.stand == nil {
		s.stand = map[string]time.Duration{}
	}
	s.stand[who] = at
	if len(s.stand) > remembered {
		s.forget()
	}
}

// remembered is how many stand in shares before those are forgotten who stand where a newcomer would.
const remembered = 1000

func (s *shares) forget() {
	maps.DeleteFunc(s.stand, func(_ string, at time.Duration) bool { return at <= s.now })
	maps.DeleteFunc(s.inner, func(who string, _ *shares) bool { _, stands := s.stand[who]; return !stands })
}

func (s *shares) clone() *shares {
	c := &shares{now: s.now, stand: maps.Clone(s.stand), inner: map[string]*shares{}}
	for who, within := range s.inner {
		c.inner[who] = within.clone()
	}
	return c
}

func (q *Queue) sharesOf(t turn) *shares {
	if q.shares[t] == nil {
		q.shares[t] = &shares{}
	}
	return q.shares[t]
}

// A charge is what a job counts for that is handed out: what it is expected to take, until it is known.
type charge struct {
	turn     turn
	expected time.Duration
	measured time.Duration // the same where it is known from earlier runs
}

func (q *Queue) charge(i *item, labels []string, now time.Time) *charge {
	measured := q.expect(i.Job, i.labelFor(labels))
	c := &charge{turn: turn{kindOf(labels), q.level(i, now)}, expected: cmp.Or(measured, unknown), measured: measured}
	s := q.sharesOf(c.turn)
	s.charge(i.Repo, c.expected)
	s.within(i.Repo).charge(i.Author, c.expected)
	return c
}

// takeBack is for an offer that nobody takes up.
func (q *Queue) takeBack(i *item) {
	if i.offered != nil {
		q.correct(i, *i.offered, -i.offered.expected)
		i.offered = nil
	}
}

func (q *Queue) correct(i *item, c charge, by time.Duration) {
	s := q.sharesOf(c.turn)
	s.correct(i.Repo, by)
	s.within(i.Repo).correct(i.Author, by)
}
