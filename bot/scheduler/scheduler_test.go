package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// A desk hands out jobs one after the other, by a clock of its own.
type desk struct {
	*testing.T
	*Queue
	now time.Time
	n   int
}

func newDesk(t *testing.T, limits Limits) *desk { return &desk{T: t, Queue: New(limits), now: noon} }

// put queues a job: class, repository, author and labels, l4 unless given.
func (d *desk) put(class Class, repo, author string, labels ...string) string {
	if len(labels) == 0 {
		labels = []string{"l4"}
	}
	return d.putJob(Job{Class: class, Repo: repo, Author: author, Labels: labels})
}

func (d *desk) putJob(j Job) string {
	d.n++
	d.now = d.now.Add(time.Millisecond)
	j.ID, j.Kernel, j.Queued = fmt.Sprintf("%s-%s-%d", j.Repo, j.Author, d.n), "k", d.now
	d.Add(j)
	return j.ID
}

// take hands a job to a runner, or "" if there is none.
func (d *desk) take(labels ...string) string {
	if len(labels) == 0 {
		labels = []string{"l4"}
	}
	a := &Waiter{Labels: labels}
	d.Ask(a)
	offers, _ := d.Match(d.now)
	if len(offers) == 0 {
		d.Withdraw(a)
		return ""
	}
	d.Lease(offers[0].Job, "runner of "+offers[0].Job, labels, d.byID[offers[0].Job].lost(), d.now, d.now.Add(24*time.Hour))
	return offers[0].Job
}

// serve hands out n jobs, each of which takes so long, and returns whose they were.
func (d *desk) serve(n int, took time.Duration) (whose []string) {
	for range n {
		id := d.take()
		d.now = d.now.Add(took)
		d.Remove(id, true, d.now)
		whose = append(whose, id[:strings.LastIndex(id, "-")])
	}
	return whose
}

func (d *desk) want(what string, got, want any) {
	d.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		d.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestClassesInOrder(t *testing.T) {
	d := newDesk(t, nil)
	for _, c := range []Class{Sweep, Push, Command, PullRequest, MergeQueue} {
		d.put(c, string(c), "a")
	}
	d.want("served", d.serve(5, time.Second), []string{"merge-queue-a", "pull-request-a", "command-a", "push-a", "sweep-a"})
}

// An endless stream of pull requests, more than the runner can do, holds up neither a push nor a sweep for good; without
// rising it does.
func TestNothingStarves(t *testing.T) {
	for name, test := range map[string]struct {
		rise   time.Duration
		starve bool
	}{"": {time.Hour, false}, "without rising": {1000 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			d.AgingInterval = test.rise
			push, sweep := d.put(Push, "quiet", "a"), d.put(Sweep, "sweeper", "a")
			for range 5 * 12 {
				d.put(PullRequest, "busy", "b")
				d.put(PullRequest, "busy", "c")
				d.serve(1, 10*time.Minute)
			}
			if d.Has(push) != test.starve || d.Has(sweep) != test.starve {
				t.Errorf("after ten hours the push waits: %v, the sweep: %v", d.Has(push), d.Has(sweep))
			}
		})
	}
}

// A merge queue that fills every runner leaves one job in eight to others, and what waits never rises to its class.
func TestMergeQueueLeavesSome(t *testing.T) {
	d := newDesk(t, nil)
	d.put(PullRequest, "old", "a")
	d.now = d.now.Add(100 * time.Hour)
	for range 20 {
		d.put(MergeQueue, "m", "a")
	}
	d.put(PullRequest, "new", "a")
	whose := d.serve(20, time.Minute)
	d.want("the old one's turn", slices.Index(whose, "old-a"), 7)
	d.want("the new one's turn", slices.Index(whose, "new-a"), 15)
}

// A flood of submissions, however old, delays no pull request by more than one job in sixteen, and a flood of pull requests
// leaves every sixteenth job to a submission.
func TestSubmissionsAndPullRequests(t *testing.T) {
	d := newDesk(t, nil)
	for range 300 {
		d.put(Submission, "agents", "bot")
	}
	d.now = d.now.Add(100 * time.Hour)
	for range 64 {
		d.put(PullRequest, "busy", "a")
	}
	var at []int
	for n, whose := range d.serve(68, time.Minute) {
		if whose == "agents-bot" {
			at = append(at, n)
		}
	}
	d.want("the turns of submissions", fmt.Sprint(at), "[15 31 47 63]")
	for range 20 {
		d.put(Submission, "agents", "other")
	}
	d.put(PullRequest, "late", "a")
	d.want("the pull request behind 300 of them", d.serve(1, time.Minute), []string{"late-a"})
	// Owners take turns, whoever has submitted more.
	whose := d.serve(20, time.Minute)
	if n := len(slices.DeleteFunc(whose, func(w string) bool { return w != "agents-other" })); n < 9 || n > 11 {
		t.Errorf("of 20, %d were the second owner's", n)
	}
	// The merge queue owes a submission no more than a pull request does.
	for range 40 {
		d.put(MergeQueue, "m", "a")
	}
	d.want("the turns beside the merge queue", slices.Contains(d.serve(24, time.Minute), "agents-bot"), true)
}

func TestRepositoriesShareAlike(t *testing.T) {
	d := newDesk(t, nil)
	for range 500 {
		d.put(PullRequest, "giant", "a")
	}
	d.put(PullRequest, "small", "b")
	if whose := d.serve(2, time.Minute); !slices.Contains(whose, "small-b") {
		t.Errorf("500 jobs of one stood before the one of another: %v", whose)
	}
	// Who had nothing to do has no more of a claim than the others.
	d.serve(50, time.Minute)
	for range 20 {
		d.put(PullRequest, "small", "b")
	}
	whose := d.serve(20, time.Minute)
	if n := len(slices.DeleteFunc(whose, func(w string) bool { return w != "small-b" })); n < 9 || n > 11 {
		t.Errorf("of 20, %d were the small one's", n)
	}
}

// Shares are of time, not of jobs.
func TestSharesAreOfTime(t *testing.T) {
	d := newDesk(t, nil)
	for range 200 {
		d.put(PullRequest, "long", "a")
		d.put(PullRequest, "short", "b")
	}
	took := map[string]time.Duration{}
	for range 120 {
		id := d.take()
		repo, _, _ := strings.Cut(id, "-")
		d.byID[id].lease.label = repo // kernels that differ: each is known by itself
		need := map[string]time.Duration{"long": 30 * time.Minute, "short": 3 * time.Minute}[repo]
		d.now = d.now.Add(need)
		d.Remove(id, true, d.now)
		took[repo] += need
	}
	if ratio := took["long"].Hours() / took["short"].Hours(); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("long jobs got %v, short ones %v", took["long"], took["short"])
	}
}

// Askers that wait together do not all get one repository's jobs.
func TestManyAskersAtOnce(t *testing.T) {
	d := newDesk(t, nil)
	for range 10 {
		d.put(PullRequest, "a", "x")
	}
	for range 10 {
		d.put(PullRequest, "b", "x")
	}
	for range 10 {
		d.Ask(&Waiter{Labels: []string{"l4"}})
	}
	offers, _ := d.Match(d.now)
	n := 0
	for _, o := range offers {
		if strings.HasPrefix(o.Job, "a-") {
			n++
		}
	}
	d.want("offers", len(offers), 10)
	d.want("of them a's", n, 5)
	// One that is not taken up costs nothing.
	for _, o := range offers {
		d.Decline(o.Job, time.Time{})
	}
	for _, s := range d.shares {
		for who, stands := range s.stand {
			d.want(who+" stands at", stands, time.Duration(0))
		}
	}
}

func TestAuthorsShareTheirRepository(t *testing.T) {
	d := newDesk(t, nil)
	for range 30 {
		d.put(PullRequest, "r", "busy")
	}
	for range 5 {
		d.put(PullRequest, "r", "seldom")
		d.put(PullRequest, "other", "x")
	}
	whose := d.serve(12, time.Minute)
	count := map[string]int{}
	for _, w := range whose {
		count[w]++
	}
	if count["other-x"] != 5 || count["r-seldom"] < 3 || count["r-busy"] < 3 {
		t.Errorf("%v", count)
	}
}

func TestLimits(t *testing.T) {
	d := newDesk(t, Limits{"r/limited": {Jobs: 2, GPUTime: time.Hour}, "*": {Jobs: 5}})
	for range 4 {
		d.put(PullRequest, "R/Limited", "a")
	}
	free := d.put(PullRequest, "r/free", "a")
	first := d.take()
	d.want("the other's", d.take(), free)
	second := d.take()
	d.want("a third", d.take(), "")
	held := d.Positions(d.now)["R/Limited-a-3"].Held
	if held == nil || held.Jobs != 2 || held.String() != "the repository may have 2 at runners at once" {
		t.Errorf("held: %v", held)
	}
	d.now = d.now.Add(20 * time.Minute)
	d.Remove(first, true, d.now)
	d.now = d.now.Add(40 * time.Minute)
	d.Remove(second, true, d.now)
	// 20 and 60 minutes are more than the hour.
	if got := d.take(); got != "" {
		t.Errorf("%s was handed out beyond the limit", got)
	}
	if held := d.Positions(d.now)["R/Limited-a-3"].Held; held == nil || held.String() != "the repository's 60 GPU minutes of this day are used, and the next begin at 00:00 UTC" {
		t.Errorf("held: %v", held)
	}
	needless := d.put(PullRequest, "r/limited", "a", "cpu")
	d.want("without a GPU", d.take("cpu"), needless)
	a := &Waiter{Labels: []string{"l4"}}
	d.Ask(a)
	midnight := time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC)
	if offers, again := d.Match(d.now); len(offers) != 0 || !again.Equal(midnight) {
		t.Errorf("%v, and again at %v", offers, again)
	}
	if offers, _ := d.Match(midnight); len(offers) != 1 {
		t.Error("nothing on the next day")
	}
}

// What runs counts for what it is expected to take: a repository cannot begin with all its jobs at once.
func TestLimitCountsWhatRuns(t *testing.T) {
	d := newDesk(t, Limits{"r": {GPUTime: 12 * time.Minute}})
	for range 10 {
		d.put(PullRequest, "r", "a")
	}
	n := 0
	for d.take() != "" {
		n++
	}
	d.want("at once, each of 5 minutes as nobody knows better", n, 3)
}

func TestPlaces(t *testing.T) {
	d := newDesk(t, nil)
	d.Learn(Use{Repo: "r", Kernel: "k", Label: "l4", Took: 10 * time.Minute, Whole: true, Ended: noon})
	running := d.put(PullRequest, "r", "a")
	d.want("running", d.take(), running)
	a := d.put(PullRequest, "r", "a")
	b := d.put(MergeQueue, "r", "b")
	d.put(PullRequest, "r", "c", "h200")
	begun := d.now
	d.now = d.now.Add(4 * time.Minute)
	places := d.Positions(d.now)
	if got := places[b]; got.Ahead != 0 || got.Took != 10*time.Minute || (got.Wait-6*time.Minute).Abs() > time.Second {
		t.Errorf("the merge queue's: %+v", got)
	}
	if got := places[a]; got.Ahead != 1 || (got.Wait-16*time.Minute).Abs() > time.Second {
		t.Errorf("the other: %+v", got)
	}
	d.want("places", len(places), 2) // nobody is there for an h200

	d.Forecast(b, places, d.now)
	d.now = begun.Add(12 * time.Minute)
	d.Remove(running, true, d.now)
	d.want("next", d.take(), b)
	off := d.ForecastError()
	if off.Began.Count != 1 || off.Began.Sum < 118 || off.Began.Sum > 122 || off.Took.Count != 1 || off.Took.Sum < 118 || off.Took.Sum > 122 || off.Took.Within[4] != 1 || off.Took.Within[3] != 0 {
		t.Errorf("off by %+v", off)
	}
}

// Whatever happens in whatever order, a job is at one runner, is offered to nobody who could not take it, and no share is
// charged for what is not under way.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDesk(t, Limits{"r0": {Jobs: 2}, "r1": {GPUTime: time.Hour}})
		askers := map[*Waiter]bool{}
		for range 300 {
			d.now = d.now.Add(time.Duration(r.IntN(200)) * time.Second)
			var some string
			if len(d.jobs) > 0 {
				some = d.jobs[r.IntN(len(d.jobs))].ID
			}
			switch r.IntN(9) {
			case 0, 1, 2:
				labels := [][]string{{"l4"}, {"h200", "l4"}, {"cpu"}}[r.IntN(3)]
				d.put([]Class{MergeQueue, PullRequest, Command, Push, Sweep, "?"}[r.IntN(6)], fmt.Sprint("r", r.IntN(3)), fmt.Sprint("a", r.IntN(2)), labels...)
			case 3, 4:
				a := &Waiter{Labels: [][]string{{"l4"}, {"h200"}, {"cpu", "l4"}, nil}[r.IntN(4)]}
				askers[a] = true
				d.Ask(a)
			case 5:
				d.Remove(some, r.IntN(2) == 0, d.now)
			case 6:
				d.Release(some, d.now, d.now.Add(time.Minute))
			case 7:
				if i := d.byID[some]; i == nil || i.waits(d.now) {
					continue // one that ran out unnoticed goes on, limit or not
				}
				d.Extend(some, d.now, d.now.Add(time.Minute))
			case 8:
				d.Positions(d.now)
			}
			before := map[string]bool{}
			for _, i := range d.jobs {
				before[i.ID] = i.waits(d.now)
			}
			offers, _ := d.Match(d.now)
			for _, o := range offers {
				i := d.byID[o.Job]
				switch {
				case !askers[o.To] || !before[o.Job]:
					t.Fatalf("seed %d: %s was offered and not free, or to nobody", seed, o.Job)
				case len(o.To.Labels) > 0 && firstOf(i.Labels, o.To.Labels) == "":
					t.Fatalf("seed %d: %s is not for %v", seed, o.Job, o.To.Labels)
				}
				delete(askers, o.To)
				before[o.Job] = false
				if r.IntN(4) == 0 {
					d.Decline(o.Job, d.now)
					continue
				}
				holder := "h"
				if len(o.To.Labels) == 0 {
					holder = ""
				}
				d.Lease(o.Job, holder, o.To.Labels, i.lost(), d.now, d.now.Add(time.Minute))
			}
			if n := len(d.asking); n != len(askers) {
				t.Fatalf("seed %d: %d wait, and should %d", seed, n, len(askers))
			}
			inUse := d.inUse(d.now)
			if inUse["r0"].jobs > 2 {
				t.Fatalf("seed %d: %d jobs at once", seed, inUse["r0"].jobs)
			}
		}
	}
}
