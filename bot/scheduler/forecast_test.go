package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// A job's median over the last nine runs counts, or that of others where it is new.
func TestExpectedTime(t *testing.T) {
	d := newDesk(t, nil)
	j := Job{Repo: "r", Kernel: "k", Labels: []string{"l4"}}
	d.want("nobody knows", d.expect(j, "l4"), time.Duration(0))
	for n := range 12 {
		d.Learn(Use{Repo: "r", Kernel: "k", Label: "l4", Took: time.Duration(n) * time.Minute, Whole: true, Ended: d.now})
	}
	d.want("the median of 3 to 11 minutes", d.expect(j, "l4"), 7*time.Minute)
	d.want("remembered", len(d.past[work{"r", "k", "l4"}]), lately)
	d.want("a new kernel", d.expect(Job{Repo: "r", Kernel: "new"}, "l4"), 7*time.Minute)
	d.want("another kind of runner", d.expect(j, "h200"), time.Duration(0))
	d.Learn(Use{Repo: "r", Kernel: "k", Label: "l4", Took: time.Hour, Ended: d.now})
	d.want("what did not end is not learnt from", d.expect(j, "l4"), 7*time.Minute)
}

// A histogram counts every bound that a size is within.
func TestHistogram(t *testing.T) {
	for i, bound := range Bounds {
		size := time.Duration(bound * float64(time.Second))
		for over, first := range map[time.Duration]int{0: i, 1: i + 1} {
			for _, sign := range []time.Duration{1, -1} {
				var h Histogram
				h.add(0, sign*(size+over))
				for k, n := range h.Within {
					if (n == 1) != (k >= first) || n > 1 {
						t.Errorf("%v: %d within %v s", size+over, n, Bounds[k])
					}
				}
				if h.Count != 1 || h.Sum != (size+over).Seconds() {
					t.Errorf("%v: %+v", size+over, h)
				}
			}
		}
	}
	d := fmt.Sprint(Bounds)
	if d != "[1 5 15 60 300 900 3600 14400]" {
		t.Errorf("the bounds are %s", d) // dashboards know them
	}
}

// A job that a runner has for longer than expected is taken to end within a minute.
func TestPlaceBehindALateJob(t *testing.T) {
	d := newDesk(t, nil)
	d.Learn(Use{Repo: "r", Kernel: "k", Label: "l4", Took: 10 * time.Minute, Whole: true, Ended: noon})
	running := d.put(PullRequest, "r", "a")
	d.want("running", d.take(), running)
	waiting := d.put(PullRequest, "r", "a")
	d.now = d.now.Add(time.Hour)
	places := d.Positions(d.now)
	if got := places[waiting]; got != (Position{Wait: time.Minute, Took: 10 * time.Minute}) || len(places) != 1 {
		t.Errorf("%+v", places)
	}
	if _, ok := d.Forecast(running, places, d.now); ok {
		t.Error("a job that runs has a place")
	}
	// Those who ask for lost jobs take none of the others.
	d.Remove(running, true, d.now)
	d.Ask(&Waiter{})
	if places := d.Positions(d.now); len(places) != 0 {
		t.Errorf("nobody takes it, and its place is %+v", places)
	}
}

// A finished job is learnt from, and how far the estimate was off is counted where there was one.
func TestFinishedJobsAreLearntFrom(t *testing.T) {
	d := newDesk(t, nil)
	for n, want := range []uint64{0, 1, 2} {
		id := d.put(PullRequest, "r", "a")
		d.want("taken", d.take(), id)
		d.now = d.now.Add(3 * time.Minute)
		d.Remove(id, true, d.now)
		d.want(fmt.Sprint("estimates after job ", n), d.ForecastError().Took.Count, want)
		d.want("expected", d.expect(Job{Repo: "r", Kernel: "k"}, "l4"), 3*time.Minute)
	}
	id := d.put(PullRequest, "r", "a")
	d.take()
	d.now = d.now.Add(time.Hour)
	d.Remove(id, false, d.now)
	d.want("expected after one that nobody wanted any more", d.expect(Job{Repo: "r", Kernel: "k"}, "l4"), 3*time.Minute)
	d.want("estimates", d.ForecastError().Took.Count, uint64(2))
}

// What is remembered of kernels is bounded.
func TestRememberedKernels(t *testing.T) {
	d := newDesk(t, nil)
	for n := range mostWorks - 1 { // and what all of a label took
		d.past[work{"r", fmt.Sprint(n), "l4"}] = durations{time.Minute}
	}
	d.past[work{label: "l4"}] = durations{time.Minute}
	d.Learn(Use{Repo: "r", Kernel: "0", Label: "l4", Took: time.Hour, Whole: true, Ended: d.now})
	d.want("at the limit", len(d.past), mostWorks)
	d.Learn(Use{Repo: "r", Kernel: "one more", Label: "l4", Took: time.Hour, Whole: true, Ended: d.now})
	d.want("beyond it", len(d.past), 0)
}

// A forecast is played by the same rules: classes rise, and whoever has had much stands behind. It changes nothing.
func TestForecastPlaysByTheRules(t *testing.T) {
	d := newDesk(t, nil)
	d.AgingInterval = 10 * time.Minute
	running := d.put(PullRequest, "busy", "a")
	d.want("running", d.take(), running)
	again := d.put(PullRequest, "busy", "a")
	other := d.put(PullRequest, "other", "a")
	sweep := d.put(Sweep, "sweeper", "a")
	before := fmt.Sprint(len(d.jobs), d.shares[turn{"l4", highest}].stand, d.streak)
	places := d.Positions(d.now)
	d.want("ahead of who has had nothing", places[other].Ahead, 0)
	d.want("ahead of who has had something", places[again].Ahead, 1)
	d.want("ahead of the sweep", places[sweep].Ahead, 2)
	d.now = d.now.Add(31 * time.Minute) // it has risen to the others, and came last
	late := d.put(PullRequest, "busy", "a")
	places = d.Positions(d.now)
	d.want("ahead of the sweep that has risen", places[sweep].Ahead < places[late].Ahead, true)
	d.Remove(late, false, d.now)
	d.want("what the queue knows", fmt.Sprint(len(d.jobs), d.shares[turn{"l4", highest}].stand, d.streak), before)
}

// What was first told about a job counts, and nothing is told about a job without a place.
func TestToldOnce(t *testing.T) {
	d := newDesk(t, nil)
	id := d.put(PullRequest, "r", "a")
	if _, ok := d.Forecast(id, nil, d.now); ok || !d.byID[id].told.IsZero() {
		t.Error("a job without a place was told one")
	}
	if _, ok := d.Forecast("x", map[string]Position{"x": {}}, d.now); !ok {
		t.Error("a place is not told")
	}
	if d.Forecast(id, map[string]Position{id: {Held: &Held{}}}, d.now); !d.byID[id].told.IsZero() {
		t.Error("a job that is held was told when it begins")
	}
	d.Forecast(id, map[string]Position{id: {Wait: time.Minute}}, d.now)
	d.Forecast(id, map[string]Position{id: {Wait: time.Hour}}, d.now)
	d.now = d.now.Add(3 * time.Minute)
	d.want("taken", d.take(), id)
	if off := d.ForecastError().Began; off.Count != 1 || off.Sum != 120 {
		t.Errorf("off by %+v", off)
	}
}

// A forecast ends after a fixed number of jobs, even if the queue is longer: while a leader forecasts thousands of jobs, it
// hands out none.
func TestForecastIsBounded(t *testing.T) {
	d := newDesk(t, nil)
	var all []string
	for range foreseen + 50 {
		all = append(all, d.put(PullRequest, "r", "a"))
	}
	d.ask("l4")
	places := d.Positions(d.now)
	if _, beyond := places[all[foreseen]]; len(places) != foreseen || beyond {
		t.Errorf("%d jobs of %d have a place", len(places), len(all))
	}
	d.wait("the last that is foreseen", places, all[foreseen-1], foreseen-1, (foreseen-1)*unknown)
}
