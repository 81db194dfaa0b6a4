// Package keeper keeps GitHub in step with what is known of every change: it takes
// deliveries from the journal, asks for plans, has jobs queued, judges what
// runners bring back, answers commands, and publishes checks and comments.
//
// # The loop
//
//	note       A delivery is written down: what it says becomes an event of its change,
//	           and only then is the delivery done with. GitHub and git are not asked.
//	wake       Whoever has written an event wakes its change.
//	work       A worker does what the state of the change asks for: drop jobs, refresh it
//	           from GitHub, plan, decide on commands, queue jobs, until nothing is left.
//	show       Another worker publishes checks, comment and replies. It is one of its
//	           own, since GitHub allows few writes: a job is in the queue however long
//	           the word of it must wait.
//	reconcile  Everything is looked through now and every few minutes, each installation
//	           by itself: what was missed is found.
//
// Deliveries and timers are hints to look, never the truth themselves: what is
// done follows from a change's state (package change) alone. So a delivery may
// come twice, late, out of order or not at all, and a crash at any moment is mended
// by looking again. What is in memory alone, such as that a pull request is to be
// refreshed, the reconciliation at the start does for all.
//
// Workers are shared out by account, an App's installation or the token, and all they
// do has a deadline: a slow or limited account never delays another.
package keeper

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/queue"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/trace"
)

// Config is what a bot works with.
type Config struct {
	Journal *journal.Journal
	Ledger  *ledger.Ledger
	GitHub  *client.GitHub
	Planner *planner.Planner

	Repositories  []string      // to watch; none means all that the App is installed on
	Reconcile     time.Duration // how often everything is looked at again; 5 minutes unless given
	ProgressEvery time.Duration // how often the text of a check that runs changes; 15 s unless given
	Backoff       time.Duration // the first pause after a failure, which then doubles; 1 s unless given
	Sweeps        []Sweep
	SweepLook     time.Duration // how often it is looked whether a sweep is due; a minute unless given
	Runners       func() []present.RunnerInfo
	// Judged is told of every verdict on what a runner brought: whose kernel it was, and why the runner is at fault, "" if it
	// is not.
	Judged  func(ctx context.Context, runner, kernel, fault string)
	Page    func(repo string, id change.ID) string      // that tells more of a change; "" where there is none
	RunPage func(repo, folder, job string) present.Page // the same of a run of the kernel in a folder
	Web     string                                      // GitHub's address, for links; may be empty

	Trace *trace.Tracer // nil where nobody is told how long each step took

	Log *slog.Logger
	Now func() time.Time
}

// A Keeper is one gatekeeper.
type Keeper struct {
	Config
	states *states

	working *workers[change.ID]
	showing *workers[change.ID]
	looking *workers[place]

	mu     sync.Mutex
	counts Counts
	stale  map[change.ID]change.Facts // to be refreshed before anything else, with what a delivery said
	unread map[change.ID]bool         // whose reviews are to be read
	unsure map[change.ID]*doubt       // of which GitHub's answer and a delivery of the same second differ
	pushed map[place]*push            // that git may not show yet
	names  map[int64]string           // of the repositories that are watched, as they are called now
	away   map[int64]string           // repositories that take no part at present; why nobody can reach one any more, "" where that may change
	placed time.Time                  // when places in line were last looked at

	putOffLogged time.Time // when the log was last told that some changes are shown later

	redeliverer *redeliverer // the reconciliation's own

	progress *lru.Cache[string, present.Progress] // by job
	places   *lru.Cache[string, queue.Place]      // that people were told last, by job
	heard    *lru.Cache[string, time.Time]        // when a head was first to be shown
	shown    *lru.Cache[change.ID, time.Time]     // when something unfinished was last published
	troubles *lru.Cache[change.ID, int]           // failures to plan, in a row
	outcomes *lru.Cache[judged, string]           // of evidence that was judged again
}

// Counts is what the bot did since it started.
type Counts struct {
	Accepted         int64 // deliveries that are in the journal
	Handled, Failed  int64 // deliveries
	Planned, Judged  int64
	Answered         int64
	Published, Retry int64
	Unseen           int64     // publications about what GitHub did not show yet
	Reconciled       time.Time // when everything was last looked at, and GitHub answered
}

// Each piece of work has a deadline, the longest for those that fetch from git. The
// slots are an account's. Most work waits for GitHub; writes go one after the other.
const (
	workTime, workSlots = 10 * time.Minute, 16
	showTime, showSlots = 2 * time.Minute, 2
	lookTime, lookSlots = 10 * time.Minute, 2
	askTime             = 30 * time.Second // of one question
)

// remembered is how many small things are kept in memory of each kind.
const remembered = 10_000

// New makes a bot; Run sets it to work.
func New(c Config) *Keeper {
	c.Reconcile = cmp.Or(c.Reconcile, 5*time.Minute)
	c.SweepLook = cmp.Or(c.SweepLook, time.Minute)
	c.ProgressEvery = cmp.Or(c.ProgressEvery, 15*time.Second)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Page == nil {
		c.Page = func(string, change.ID) string { return "" }
	}
	if c.RunPage == nil {
		c.RunPage = func(string, string, string) present.Page { return present.Page{} }
	}
	if c.Judged == nil {
		c.Judged = func(context.Context, string, string, string) {}
	}
	if c.Runners == nil {
		c.Runners = func() []present.RunnerInfo { return nil }
	}
	k := &Keeper{
		Config: c, names: map[int64]string{}, stale: map[change.ID]change.Facts{}, unread: map[change.ID]bool{}, unsure: map[change.ID]*doubt{}, pushed: map[place]*push{}, away: map[int64]string{},
		progress: newLRU[string, present.Progress](remembered), places: newLRU[string, queue.Place](remembered), heard: newLRU[string, time.Time](remembered), shown: newLRU[change.ID, time.Time](remembered),
		troubles: newLRU[change.ID, int](remembered),
		outcomes: newLRU[judged, string](remembered),
	}
	k.redeliverer = newRedeliverer(k)
	k.states = newStates(c.Journal, c.Now, k.nameOf)
	k.working = &workers[change.ID]{what: "work", do: k.work, leads: c.Journal.Leads, lane: k.announce, within: workTime, slots: workSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	k.showing = &workers[change.ID]{what: "show", do: k.show, leads: c.Journal.Leads, lane: k.laneOf, within: showTime, slots: showSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	k.looking = &workers[place]{what: "look", do: k.look, leads: c.Journal.Leads, lane: k.laneAt, within: lookTime, slots: lookSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	return k
}

// wake has a change worked on, and what is known of it shown, because there is news.
func (k *Keeper) wake(id change.ID) {
	k.working.wake(id)
	k.showing.wake(id)
}

// laneOf is whose limits count for a change. A pull request from a fork is a stranger's until
// somebody has approved its head.
func (k *Keeper) laneOf(ctx context.Context, id change.ID) (lane, error) {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return lane{}, err
	}
	return k.laneFor(s), nil
}

func (k *Keeper) laneFor(s *change.State) lane {
	return lane{account: k.GitHub.Account(s.Facts.Repo), strangers: s.Held(), priority: k.priorityOf(s)}
}

// announce is whose limits count for work on a change. It is asked before there is a slot
// for it: what the work will fetch, others may bring along.
func (k *Keeper) announce(ctx context.Context, id change.ID) (lane, error) {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return lane{}, err
	}
	if s.NeedsPlan() {
		k.Planner.Soon(id, s.Facts)
	}
	return k.laneFor(s), nil
}

// Counts reads the counters.
func (k *Keeper) Counts() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

// Idle tells whether everything that came in since the start is done, and nobody
// works on anything.
func (k *Keeper) Idle() bool {
	c := k.Counts()
	return c.Handled >= c.Accepted && k.looking.idle() && k.working.idle() && k.showing.idle()
}

func (k *Keeper) count(do func(*Counts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do(&k.counts)
}
