package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// Nothing that is said about a job that is not there has any effect, or is an error.
func TestUnknownJobs(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Lease("x", "h", []string{"l4"}, 0, d.now, d.now)
	d.Resume("x", "h", "l4", 0, d.now, d.now, d.now)
	d.Lost("x", 2)
	d.Ack("x")
	d.Extend("x", d.now, d.now)
	d.ShortenLease("x", d.now)
	d.Built("x")
	d.Decline("x", d.now)
	for name, call := range map[string]func() (Use, bool){
		"Remove":                 func() (Use, bool) { return d.Remove("x", true, d.now) },
		"Release":                func() (Use, bool) { return d.Release("x", d.now, d.now) },
		"Cost":                   func() (Use, bool) { return d.Cost("x", d.now) },
		"Cost without a lease":   func() (Use, bool) { return d.Cost(id, d.now) },
		"Release without one":    func() (Use, bool) { return d.Release(id, d.now, d.now) },
		"Remove without a lease": func() (Use, bool) { return d.Remove(id, true, d.now) },
	} {
		if use, used := call(); used || use != (Use{}) {
			t.Errorf("%s: %+v, %v", name, use, used)
		}
	}
	d.want("spoke", d.Acked("x"), false)
	d.want("jobs", len(d.Statuses(d.now)), 0)
}

// A lease costs what it lasted: up to now, or up to the last word where it ran out.
func TestCostOfALease(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	begun := d.now
	d.Lease(id, "h", []string{"l4"}, 0, begun, begun.Add(time.Minute))
	d.want("spoke at first", d.Acked(id), false)
	cost := func(after time.Duration) time.Duration {
		use, used := d.Cost(id, begun.Add(after))
		if !used || use.Repo != "r" || use.Kernel != "k" || use.Label != "l4" {
			t.Errorf("after %v: %+v, %v", after, use, used)
		}
		return use.Took
	}
	d.want("after 30 s", cost(30*time.Second), 30*time.Second)
	d.want("after it ran out, with no word", cost(time.Minute), time.Duration(0))
	d.Extend(id, begun.Add(40*time.Second), begun.Add(100*time.Second))
	d.want("spoke", d.Acked(id), true)
	d.want("extended", cost(99*time.Second), 99*time.Second)
	d.want("after it ran out", cost(100*time.Second), 40*time.Second)
	d.ShortenLease(id, begun.Add(200*time.Second))
	d.want("doubted, but not beyond the lease", cost(100*time.Second), 40*time.Second)
	d.ShortenLease(id, begun.Add(50*time.Second))
	d.want("doubted", cost(50*time.Second), 40*time.Second)
	if s := d.Statuses(begun.Add(49 * time.Second))[0]; s.Waits || s.Label != "l4" || !s.Free.Equal(begun.Add(50*time.Second)) || fmt.Sprint(s.Wants) != "[l4]" {
		t.Errorf("%+v", s)
	}
	if s := d.Statuses(begun.Add(50 * time.Second))[0]; !s.Waits {
		t.Errorf("a lease that ran out holds the job: %+v", s)
	}
	use, used := d.Release(id, begun.Add(45*time.Second), begun.Add(time.Hour))
	d.want("released", fmt.Sprint(use.Took, used, use.Whole), "45s true false")
	if _, used := d.Cost(id, begun.Add(46*time.Second)); used {
		t.Error("a job that was given back still costs")
	}
	d.now = begun.Add(time.Hour - 1)
	d.want("before it is to be handed out again", d.take(), "")
	d.now = begun.Add(time.Hour)
	d.want("from then on", d.take(), id)
	d.now = d.now.Add(time.Minute)
	use, used = d.Remove(id, true, d.now)
	d.want("finished", fmt.Sprint(use.Took, used, use.Whole), "1m0s true true")
}

// Only a lease whose holder spoke counts as lost; after three of those no runner gets the job, and whoever asks for lost jobs does.
func TestLostLeases(t *testing.T) {
	for _, spoke := range []bool{true, false} {
		d := newDesk(t, nil)
		id := d.put(PullRequest, "r", "a")
		for n := range leasesAtMost {
			d.want(fmt.Sprint("lease ", n, " with word ", spoke), d.take(), id)
			if spoke {
				d.Ack(id)
			}
			d.want("lost", d.byID[id].lost(), map[bool]int{true: n + 1, false: 0}[spoke])
			d.now = d.now.Add(48 * time.Hour)
		}
		want := id
		if spoke {
			want = ""
		}
		lost := &Waiter{}
		d.Ask(lost)
		offers, _ := d.Match(d.now)
		d.want(fmt.Sprint("offered as lost, with word ", spoke), len(offers) == 1, spoke)
		if spoke {
			d.Decline(id, time.Time{})
		}
		d.Withdraw(lost)
		d.want(fmt.Sprint("a fourth lease, with word ", spoke), d.take(), want)
	}
	// The losses that an earlier process has seen count as well.
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Lost(id, leasesAtMost)
	d.want("after a restart", d.take(), "")
	d.Lost(id, leasesAtMost-1)
	d.want("after a restart, with one left", d.take(), id)
}

// A job that was handed out before this process began is not handed out again while its lease lasts, and costs from its begin.
func TestResume(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Resume(id, "h", "l4", 1, d.now.Add(-time.Minute), d.now, d.now.Add(time.Hour))
	d.want("handed out again", d.take(), "")
	if use, used := d.Cost(id, d.now.Add(time.Minute)); !used || use.Took != 2*time.Minute || use.Label != "l4" {
		t.Errorf("%+v, %v", use, used)
	}
	d.Ack(id)
	d.want("lost, with the one before", d.byID[id].lost(), 2)
}

// What is written down as failed is nobody's: it costs nothing.
func TestLeaseOfNobody(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Lease(id, "", nil, 0, d.now, d.now.Add(time.Hour))
	d.want("handed out", d.take(), "")
	d.Ack(id)
	d.want("lost", d.byID[id].lost(), 0)
	if _, used := d.Cost(id, d.now); used {
		t.Error("it costs something")
	}
	if _, used := d.Release(id, d.now, d.now); used {
		t.Error("it has cost something")
	}
	for _, s := range d.shares {
		d.want("r stands at", s.stand["r"], time.Duration(0))
	}
	d.want("waited", len(d.Waited()), 0)
}

// Match says when to look again: at the first moment at which a job becomes free, and never where nobody asks.
func TestWhenToLookAgain(t *testing.T) {
	d := newDesk(t, nil)
	late, soon := d.put(PullRequest, "r", "a"), d.put(PullRequest, "r", "a")
	d.Release(late, d.now, d.now.Add(time.Hour))
	d.Release(soon, d.now, d.now.Add(time.Minute))
	if offers, again := d.Match(d.now); len(offers) != 0 || !again.IsZero() {
		t.Errorf("nobody asks: %v, again %v", offers, again)
	}
	a := &Waiter{Labels: []string{"l4"}}
	d.Ask(a)
	if offers, again := d.Match(d.now); len(offers) != 0 || !again.Equal(d.now.Add(time.Minute)) {
		t.Errorf("%v, again %v", offers, again)
	}
	other := &Waiter{Labels: []string{"l4"}}
	d.Ask(other)
	offers, again := d.Match(d.now.Add(time.Minute))
	if len(offers) != 1 || offers[0].Job != soon || offers[0].To != a || !again.Equal(d.now.Add(time.Hour)) {
		t.Errorf("%v, again %v", offers, again)
	}
	// While nobody has decided on an offer, it is nobody else's and nothing to wait for.
	if offers, again := d.Match(d.now.Add(time.Hour - 1)); len(offers) != 0 || !again.Equal(d.now.Add(time.Hour)) {
		t.Errorf("%v, again %v", offers, again)
	}
	d.Decline(soon, d.now.Add(2*time.Hour))
	if offers, _ := d.Match(d.now.Add(2*time.Hour - 1)); len(offers) != 1 || offers[0].Job != late {
		t.Errorf("%v", offers)
	}
}

// The merge queue gives way only to jobs that the same runners could take.
func TestMergeQueueGivesWayToItsOwnRunners(t *testing.T) {
	d := newDesk(t, nil)
	other := d.put(PullRequest, "other", "a", "h200")
	for range 20 {
		d.put(MergeQueue, "m", "a")
	}
	for n, whose := range d.serve(20, time.Minute) {
		if whose != "m-a" {
			t.Errorf("job %d was %s", n, whose)
		}
	}
	d.want("the other's runner", d.take("h200"), other)
	d.want("the streak", d.streak["l4"], 0)
}

// Shares forget those who stand where a newcomer would, once there are too many.
func TestSharesForget(t *testing.T) {
	s := &shares{now: time.Hour}
	for n := range remembered {
		who := fmt.Sprint(n)
		s.set(who, time.Duration(n%2)*2*time.Hour)
		s.within(who)
	}
	if len(s.stand) != remembered || len(s.inner) != remembered {
		t.Fatalf("%d and %d are remembered", len(s.stand), len(s.inner))
	}
	s.set("one more", 2*time.Hour)
	if len(s.stand) != remembered/2+1 || len(s.inner) != remembered/2 {
		t.Errorf("%d and %d are remembered, want those who stand further on", len(s.stand), len(s.inner))
	}
	if s.at("0") != time.Hour || s.at("1") != 2*time.Hour || s.at("new") != time.Hour {
		t.Errorf("they stand at %v, %v, %v", s.at("0"), s.at("1"), s.at("new"))
	}
	var nobody *shares
	if nobody.at("x") != 0 || nobody.inside("x") != nil {
		t.Error("nobody has shares")
	}
}

// A job rises by a class an hour, up to the pull requests', and one from the future does not rise.
func TestLevels(t *testing.T) {
	d := newDesk(t, nil)
	for _, c := range []struct {
		class  Class
		waited time.Duration
		want   level
	}{
		{MergeQueue, 0, urgent}, {MergeQueue, 9 * time.Hour, urgent}, {PullRequest, 0, highest}, {PullRequest, 9 * time.Hour, highest}, {"", 0, highest},
		{Command, 0, 2}, {Command, time.Hour - 1, 2}, {Command, time.Hour, highest}, {Command, 9 * time.Hour, highest},
		{Push, 0, 3}, {Push, time.Hour, 2}, {Push, 2 * time.Hour, highest}, {Sweep, 0, lowest}, {Sweep, 3*time.Hour - 1, 2}, {Sweep, 3 * time.Hour, highest},
		{Sweep, -5 * time.Hour, lowest},
	} {
		i := &item{Job: Job{Class: c.class, Queued: noon}}
		if got := d.level(i, noon.Add(c.waited)); got != c.want {
			t.Errorf("%s after %v: level %d, want %d", c.class, c.waited, got, c.want)
		}
	}
}

// While one who compiles has a job, others are kept for it, whether or not it has asked lately.
func TestCompilerAtWorkIsHere(t *testing.T) {
	d := newDesk(t, nil)
	first := d.putCUDA(PullRequest, "r", "a")
	d.want("compiled", d.take("build-nvcc"), first)
	d.now = d.now.Add(2 * hereFor)
	id := d.putCUDA(PullRequest, "r", "b")
	d.want("kept for it", d.take("l4"), "")
	d.now = d.now.Add(keptFor - 1)
	d.want("kept to the end", d.take("l4"), "")
	d.now = d.now.Add(1)
	d.want("and no longer", d.take("l4"), id)
	// One whose lease ran out is not here.
	d = newDesk(t, nil)
	first = d.putCUDA(PullRequest, "r", "a")
	d.want("compiled", d.take("build-nvcc"), first)
	d.ShortenLease(first, d.now.Add(time.Second))
	d.now = d.now.Add(2 * hereFor)
	id = d.putCUDA(PullRequest, "r", "b")
	if got := d.take("l4"); got != first && got != id {
		t.Errorf("%q was handed out while nobody compiles", got)
	}
}

// An offer that nobody has decided on is no reason to look again, even while its time has not come.
func TestOffersAreNotLookedForAgain(t *testing.T) {
	d := newDesk(t, nil)
	first := d.put(PullRequest, "r", "a")
	for range 2 {
		d.Ask(&Waiter{Labels: []string{"l4"}})
	}
	offers, again := d.Match(d.now)
	if len(offers) != 1 || offers[0].Job != first || !again.IsZero() {
		t.Fatalf("%v, again %v", offers, again)
	}
	d.byID[first].free = d.now.Add(time.Hour)
	if _, again := d.Match(d.now); !again.IsZero() {
		t.Errorf("again at %v", again)
	}
}
