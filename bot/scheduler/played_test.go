package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// ask has a runner with these labels wait.
func (d *desk) ask(labels ...string) *Waiter {
	a := &Waiter{Labels: labels}
	d.Ask(a)
	return a
}

// learnt makes a job under a label one that takes so long.
func (d *desk) learnt(label string, took time.Duration) {
	d.Learn(Use{Repo: "known", Kernel: "known", Label: label, Took: took, Whole: true, Ended: d.now.Add(-48 * time.Hour)})
}

// wait wants a job's place in a forecast.
func (d *desk) wait(what string, places map[string]Position, id string, ahead int, wait time.Duration) {
	d.Helper()
	if got, ok := places[id]; !ok || got.Ahead != ahead || got.Wait != wait {
		d.Errorf("%s: %+v (%v), want %d ahead and %v", what, got, ok, ahead, wait)
	}
}

// Runners that wait for a job begin at once, and each next job goes to whoever is free first.
func TestForecastForRunnersThatWait(t *testing.T) {
	d := newDesk(t, nil)
	first, second, third := d.put(PullRequest, "a", "x"), d.put(PullRequest, "b", "x"), d.put(PullRequest, "c", "x")
	d.ask("l4")
	places := d.Positions(d.now)
	d.wait("the first", places, first, 0, 0)
	d.wait("the second", places, second, 1, unknown)
	d.wait("the third", places, third, 2, 2*unknown)
	d.learnt("h200", time.Minute)
	quick := d.put(MergeQueue, "a", "x", "h200")
	d.ask("h200", "l4") // takes the first for a minute, and is free again before the other runner
	places = d.Positions(d.now)
	d.wait("the quick one", places, quick, 0, 0)
	d.wait("the first of two runners", places, first, 0, 0)
	d.wait("whoever waits for who is free first", places, second, 2, time.Minute)
	d.want("jobs in the queue", len(d.jobs), 4)
	d.want("runners that wait", len(d.asking), 2)
}

// Whoever asks for lost jobs measures none: such a job has no place.
func TestForecastOfALostJob(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Lost(id, leasesAtMost)
	d.ask()
	if places := d.Positions(d.now); len(places) != 0 {
		t.Errorf("%+v", places)
	}
}

// A lease is taken to be extended, however soon it would end.
func TestForecastOfAShortLease(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.Lease(id, "h", []string{"l4"}, 0, d.now, d.now.Add(time.Second))
	d.ask("l4")
	other := d.put(PullRequest, "r", "a")
	last := d.put(PullRequest, "r", "a")
	places := d.Positions(d.now.Add(time.Millisecond))
	if _, ok := places[id]; ok || len(places) != 2 {
		t.Errorf("%+v", places)
	}
	d.wait("behind nobody", places, other, 0, 0)
	if got := places[last]; got.Ahead != 1 || got.Wait >= unknown {
		t.Errorf("behind the running one: %+v", got)
	}
}

// A forecast takes turns as the queue does: between repositories, between authors, and where the merge queue has had enough.
func TestForecastTakesTurns(t *testing.T) {
	d := newDesk(t, nil)
	a1, a2 := d.put(PullRequest, "a", "x"), d.put(PullRequest, "a", "x")
	b1 := d.put(PullRequest, "b", "x")
	a3 := d.put(PullRequest, "a", "y")
	b2 := d.put(PullRequest, "b", "x")
	d.ask("l4")
	places := d.Positions(d.now)
	for ahead, id := range []string{a1, b1, a3, b2, a2} {
		d.wait(fmt.Sprint("turn ", ahead), places, id, ahead, time.Duration(ahead)*unknown)
	}

	// The author who had much before the forecast stands behind the other of the repository.
	d = newDesk(t, nil)
	d.put(PullRequest, "a", "x")
	d.put(PullRequest, "a", "y")
	d.want("served", d.serve(2, time.Minute), []string{"a-x", "a-y"})
	d.put(PullRequest, "a", "x")
	d.want("served", d.serve(1, time.Hour), []string{"a-x"})
	x, y := d.put(PullRequest, "a", "x"), d.put(PullRequest, "a", "y")
	d.ask("l4")
	places = d.Positions(d.now)
	d.want("ahead of who has had less", places[y].Ahead, 0)
	d.want("ahead of who has had more", places[x].Ahead, 1)

	// Of the merge queue's jobs seven go before another's, of which some may have gone before the forecast.
	for _, before := range []int{0, 3, othersAfter} {
		d = newDesk(t, nil)
		other := d.put(PullRequest, "other", "x")
		for range 20 {
			d.put(MergeQueue, "m", "x")
		}
		d.serve(before, time.Minute)
		d.ask("l4")
		d.want(fmt.Sprint("ahead of the other after ", before), d.Positions(d.now)[other].Ahead, othersAfter-before)
	}
}

// A forecast knows what is spent of a limit and who compiles.
func TestForecastKnowsLimitsAndCompilers(t *testing.T) {
	d := newDesk(t, Limits{"r": {GPUTime: 10 * time.Minute}})
	d.Book(Use{Repo: "r", Label: "l4", Ended: d.now, Took: 9 * time.Minute})
	d.put(PullRequest, "r", "a")
	d.ask("l4")
	if places := d.Positions(d.now); len(places) != 1 {
		t.Errorf("%+v", places)
	}
	d.Book(Use{Repo: "r", Label: "l4", Ended: d.now, Took: time.Minute})
	for id, place := range d.Positions(d.now) {
		if place.Held == nil || place.Held.Used != 10*time.Minute {
			t.Errorf("%s: %+v", id, place)
		}
	}
	d = newDesk(t, nil)
	d.take("build-nvcc")
	kept := d.putCUDA(PullRequest, "r", "a")
	d.ask("l4")
	if places := d.Positions(d.now); len(places) != 0 {
		t.Errorf("%s is kept for those who compile, and has a place: %+v", kept, places)
	}
}

// Tell returns the place that it was given.
func TestTellReturnsThePlace(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	want := Position{Ahead: 2, Wait: time.Minute, Took: time.Second}
	if got, ok := d.Forecast(id, map[string]Position{id: want}, d.now); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	d.want("taken", d.take(), id)
	d.Ack(id)
	d.now = d.now.Add(48 * time.Hour) // its runner is lost
	d.want("taken again", d.take(), id)
	d.want("held to what was told", d.ForecastError().Began.Count, uint64(1))
}

// Of two jobs that came at the same moment, the one that was added first goes first.
func TestSameMoment(t *testing.T) {
	d := newDesk(t, nil)
	for _, id := range []string{"b-1", "a-2", "c-3"} {
		d.Add(Job{ID: id, Class: PullRequest, Repo: "r", Author: "a", Kernel: "k", Labels: []string{"l4"}, Queued: d.now})
	}
	d.want("served", d.serve(3, time.Minute), []string{"b", "a", "c"})
}

// An author who comes back has no more of a claim than the others of the repository.
func TestAuthorsWhoComeBack(t *testing.T) {
	d := newDesk(t, nil)
	for range 40 {
		d.put(PullRequest, "r", "busy")
	}
	d.serve(20, time.Minute)
	for range 10 {
		d.put(PullRequest, "r", "back")
	}
	count := map[string]int{}
	for _, who := range d.serve(10, time.Minute) {
		count[who]++
	}
	if count["r-busy"] < 4 || count["r-back"] < 4 {
		t.Errorf("%v", count)
	}
}

// A job counts for five minutes while nobody knows better, and for nothing where it is removed while it is offered.
func TestChargeOfAnOffer(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	d.ask("l4")
	if offers, _ := d.Match(d.now); len(offers) != 1 {
		t.Fatal(offers)
	}
	s := d.shares[turn{"l4", highest}]
	d.want("while it is offered", s.stand["r"], 5*time.Minute)
	d.Remove(id, false, d.now)
	d.want("once it is gone", s.stand["r"], time.Duration(0))
	d.want("for the author", s.inside("r").stand["a"], time.Duration(0))
}

// One who is not remembered any more is corrected from where a newcomer stands.
func TestCorrectAfterForgetting(t *testing.T) {
	s := &shares{now: time.Hour}
	s.correct("forgotten", time.Minute)
	s.stand["known"] = 2 * time.Hour
	s.correct("known", -time.Minute)
	if s.at("forgotten") != 61*time.Minute || s.at("known") != 119*time.Minute {
		t.Errorf("%v", s.stand)
	}
}

// Whoever stands exactly where a newcomer would is forgotten, and no other.
func TestWhoIsForgotten(t *testing.T) {
	s := &shares{now: time.Hour}
	for n := range remembered {
		who := fmt.Sprint(n)
		s.within(who)
		s.set(who, time.Hour+time.Duration(n%3)) // a third of them where a newcomer would
	}
	s.set("one more", 2*time.Hour)
	want := 1 + remembered - (remembered+2)/3
	if len(s.stand) != want || len(s.inner) != want-1 {
		t.Errorf("%d and %d are remembered, want %d", len(s.stand), len(s.inner), want)
	}
	for who := range s.inner {
		if _, stands := s.stand[who]; !stands {
			t.Fatalf("%s is forgotten, and what is within is not", who)
		}
	}
}

// A lost lease is paid for up to its last word when the next runner gets the job.
func TestLostLeaseIsBooked(t *testing.T) {
	d := newDesk(t, Limits{"r": {GPUTime: time.Hour}})
	id := d.put(PullRequest, "r", "a")
	d.want("taken", d.take(), id)
	d.Extend(id, d.now.Add(10*time.Minute), d.now.Add(11*time.Minute))
	d.now = d.now.Add(20 * time.Minute)
	d.want("taken again", d.take(), id)
	d.want("spent", d.spent["r"].time, 10*time.Minute)
	if use, _ := d.Cost(id, d.now.Add(-time.Minute)); use.Took != 0 {
		t.Errorf("before it began it cost %v", use.Took)
	}
}

// What an earlier process has seen counts for the limit, finished or not.
func TestLearntUseIsBooked(t *testing.T) {
	d := newDesk(t, Limits{"r": {GPUTime: time.Hour}})
	d.Learn(Use{Repo: "r", Label: "l4", Ended: d.now, Took: 20 * time.Minute, Whole: true})
	d.Learn(Use{Repo: "r", Label: "l4", Ended: d.now, Took: 20 * time.Minute})
	d.want("spent", d.spent["r"].time, 40*time.Minute)
}

func TestOneJobAtATime(t *testing.T) {
	d := newDesk(t, Limits{"r": {Jobs: 1}})
	first := d.put(PullRequest, "r", "a")
	d.put(PullRequest, "r", "a")
	d.want("the first", d.take(), first)
	d.want("a second", d.take(), "")
}

// A job that was lost too often is told to whoever asks for lost jobs, though a runner waits for it too, and one that was not goes to
// the runner that it wants most.
func TestWhoGetsALostJob(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a", "l4", "a100")
	for losses, want := range []string{"l4", "l4", "l4", "lost", "lost"} {
		d.Lost(id, losses)
		askers := map[*Waiter]string{d.ask("a100"): "a100", d.ask("l4"): "l4", d.ask(): "lost"}
		offers, _ := d.Match(d.now)
		if len(offers) != 1 || askers[offers[0].To] != want {
			t.Errorf("after %d losses: %+v, want one to %s", losses, offers, want)
		}
		d.Decline(id, d.now)
		for a := range askers {
			d.Withdraw(a)
		}
	}
	// Nobody but whoever asks for lost jobs could take it.
	d.Remove(id, false, d.now)
	id = d.putCUDA(PullRequest, "r", "b")
	d.want("compiled", d.take("build-nvcc"), id)
	d.now = d.now.Add(48 * time.Hour)
	d.ask("h200")
	lost := d.ask()
	if offers, _ := d.Match(d.now); len(offers) != 1 || offers[0].To != lost || offers[0].Job != id {
		t.Errorf("%+v", offers)
	}
}

// An offer that is declined is made again from the moment that was named, and never before the job is free.
func TestDeclinedUntil(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	offered := func(at time.Time) bool {
		a := d.ask("l4")
		offers, _ := d.Match(at)
		d.Withdraw(a)
		return len(offers) == 1
	}
	d.want("at first", offered(d.now), true)
	d.Decline(id, d.now.Add(time.Minute))
	d.want("before", offered(d.now.Add(time.Minute-1)), false)
	d.want("then", offered(d.now.Add(time.Minute)), true)
	d.Decline(id, d.now) // earlier than it is free
	d.want("before, once more", offered(d.now.Add(time.Minute-1)), false)
}

// One who compiles is here for as long as it may wait for an answer.
func TestHereFor(t *testing.T) {
	d := newDesk(t, nil)
	d.take("build-nvcc")
	d.want("shortly before", d.anyBuilds("build-nvcc", d.now.Add(40*time.Second-1)), true)
	d.want("then", d.anyBuilds("build-nvcc", d.now.Add(40*time.Second)), false)
	d.want("another", d.anyBuilds("build-triton", d.now), false)
	// A job at a runner under another label keeps nobody here.
	id := d.put(PullRequest, "r", "a")
	d.want("measured", d.take("l4"), id)
	d.want("while something else runs", d.anyBuilds("build-nvcc", d.now.Add(time.Minute)), false)
}

// Where a runner gets the job of one who compiled and was lost, nobody compiles the job again.
func TestGPUTakesOverALostCompiling(t *testing.T) {
	d := newDesk(t, nil)
	id := d.putCUDA(PullRequest, "r", "a")
	d.want("compiled", d.take("build-nvcc"), id)
	d.now = d.now.Add(48 * time.Hour)
	d.want("measured", d.take("l4"), id)
	d.Release(id, d.now, d.now)
	d.want("compiled again", d.take("build-nvcc"), "")
	d.want("measured again", d.take("l4"), id)
}
