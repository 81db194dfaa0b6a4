// Package controller reconciles GitHub with the state of every change. It takes deliveries from the journal, asks the planner
// for plans, enqueues jobs, judges the evidence of runners, decides on commands, and publishes checks and comments.
//
// # The loop
//
//	record     A delivery becomes an event of its change. Only then is the delivery done. Recording asks neither GitHub nor git.
//	enqueue    Each new event adds its change to two work queues: reconcile and publish.
//	reconcile  A worker does what the state of the change requires: cancel jobs, refresh the change from GitHub, plan, decide
//	           on commands, enqueue jobs, until nothing is left.
//	publish    Another worker writes the check, the comment and the replies. GitHub allows few writes, so this queue is
//	           separate: a job starts without waiting for its announcement.
//	resync     Every few minutes, and at the start, the bot lists the open pull requests of every installation and adds
//	           whatever it missed.
//
// Deliveries and timers are only hints. All actions follow from the state of a change (package change). A delivery may arrive
// twice, late, out of order or never, and the bot may crash at any moment: the next reconcile repairs the result. State that
// is only in memory, such as "refresh this pull request", is rebuilt by the resync at the start.
//
// Each account (an App's installation, or the token) has its own worker slots, and each piece of work has a deadline, so a slow
// or limited account never delays another.
package controller

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/sweep"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/runners"
)

// Config holds the parts of a bot.
type Config struct {
	Journal *journal.Journal
	Jobs    *jobs.Queue
	Ledger  *ledger.Ledger
	GitHub  *client.GitHub
	Planner *planner.Planner

	Repositories  []string      // to watch; empty means every repository of the App's installations
	ResyncEvery   time.Duration // interval of the resync; default 5 minutes
	ProgressEvery time.Duration // interval between updates of a running check; default 15 s
	Backoff       time.Duration // first pause after a failure, which then doubles; default 1 s
	Sweeps        []sweep.Schedule
	Watches       []sweep.Schedule
	SweepEvery    time.Duration // how often sweeps and watches are checked; default one minute
	Runners       func() []present.RunnerInfo
	// Judged is called for every verdict about a runner's evidence, with the kernel and the runner's fault, "" if there is none.
	Judged func(ctx context.Context, runner, kernel, fault string)

	Page    func(repo string, id change.ID) string      // the web page of a change; "" where there is none
	RunPage func(repo, folder, job string) present.Page // the same of a run of the kernel in a folder
	// SearchPage returns the web page of a tuning; nil or "" where there is none.
	SearchPage func(repo, job string) string
	Web        string   // GitHub's address, for links; may be empty
	Public     []string // repositories with public pages, owner/name

	Trace *trace.Tracer // nil without tracing

	Log *slog.Logger
	Now func() time.Time
}

// A Controller is one bot's reconciler.
type Controller struct {
	Config
	states   *states
	repos    *repos.Registry
	attempts *attempts.Store

	reconcileQueue *workQueue[change.ID]
	publishQueue   *workQueue[change.ID]
	resyncQueue    *workQueue[resyncTarget]

	mu               sync.Mutex
	counts           Counts
	stale            map[change.ID]change.Facts // to be refreshed first, with the facts of the delivery
	unread           map[change.ID]bool         // changes whose reviews must be read
	conflicts        map[change.ID]*conflict    // changes where GitHub's answer differs from a delivery of the same second
	pushed           map[resyncTarget]*push     // pushes that git may not show yet
	kernels          map[string]chan struct{}   // locks of watched kernels
	positionsChecked time.Time                  // when the queue positions were last compared

	putOffLogged time.Time // when the log last said that some publications wait

	listed      atomic.Bool    // as in Listed
	redeliverer *redeliverer   // used by the resync only
	unlisted    map[int64]bool // repositories that the last resync did not find; used by the resync only

	progress      *lru.Cache[string, runners.LogEntry]   // by job
	positions     *lru.Cache[string, scheduler.Position] // last published, by job
	firstSeen     *lru.Cache[string, time.Time]          // when a head first needed publishing
	lastPublished *lru.Cache[change.ID, time.Time]       // when progress was last published
	progressed    *lru.Cache[change.ID, bool]            // changes whose checks show progress since they were last published
	planFailures  *lru.Cache[change.ID, int]             // consecutive failures to plan
	looked        *lru.Cache[string, bool]               // jobs of watches whose look is recorded and whose issue is up to date
	outcomes      *lru.Cache[judged, hindsight.Row]      // of evidence that was judged by two policies
}

// Counts are the bot's counters since its start.
type Counts struct {
	Accepted         int64 // deliveries that are in the journal
	Handled, Failed  int64 // deliveries
	Planned, Judged  int64
	Answered         int64
	Published, Retry int64
	Unseen           int64     // publications that GitHub refused because it did not show the commit yet
	Reconciled       time.Time // time of the last complete resync
}

// Deadlines and slots of the work queues. Work that fetches from git has the longest deadline. Slots are per account. Most
// work waits for GitHub; writes to GitHub are serial.
const (
	reconcileTimeout, reconcileSlots = 10 * time.Minute, 16
	publishTimeout, publishSlots     = 2 * time.Minute, 2
	resyncTimeout, resyncSlots       = 10 * time.Minute, 2
	requestTimeout                   = 30 * time.Second // one request to GitHub
)

// cacheSize is the size of each in-memory cache.
const cacheSize = 10_000

// New makes a controller; Run starts it.
func New(c Config) *Controller {
	c.ResyncEvery = cmp.Or(c.ResyncEvery, 5*time.Minute)
	c.SweepEvery = cmp.Or(c.SweepEvery, time.Minute)
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
	k := &Controller{
		Config: c, repos: repos.New(c.Repositories, c.Log), stale: map[change.ID]change.Facts{}, unread: map[change.ID]bool{}, conflicts: map[change.ID]*conflict{}, pushed: map[resyncTarget]*push{}, kernels: map[string]chan struct{}{},
		progress: newLRU[string, runners.LogEntry](cacheSize), positions: newLRU[string, scheduler.Position](cacheSize), firstSeen: newLRU[string, time.Time](cacheSize), lastPublished: newLRU[change.ID, time.Time](cacheSize), progressed: newLRU[change.ID, bool](cacheSize),
		planFailures: newLRU[change.ID, int](cacheSize),
		looked:       newLRU[string, bool](cacheSize),
		outcomes:     newLRU[judged, hindsight.Row](cacheSize),
	}
	k.redeliverer = newRedeliverer(k)
	k.states = newStates(c.Journal, c.Now, k.repos.Name)
	k.attempts = &attempts.Store{Journal: c.Journal, Evidence: k.evidence}
	k.reconcileQueue = &workQueue[change.ID]{name: "work", handle: k.reconcile, leads: c.Journal.Leads, lane: k.laneWithPrefetch, timeout: reconcileTimeout, slots: reconcileSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	k.publishQueue = &workQueue[change.ID]{name: "show", handle: k.publishChange, leads: c.Journal.Leads, lane: k.laneOfChange, timeout: publishTimeout, slots: publishSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	k.resyncQueue = &workQueue[resyncTarget]{name: "look", handle: k.resync, leads: c.Journal.Leads, lane: k.laneOfTarget, timeout: resyncTimeout, slots: resyncSlots, backoff: c.Backoff, log: c.Log, now: c.Now}
	return k
}

// enqueueChange adds a change to the reconcile and publish queues.
func (k *Controller) enqueueChange(id change.ID) {
	k.reconcileQueue.add(id)
	k.publishQueue.add(id)
}

// laneOfChange is the lane of a change. A pull request from a fork counts as a stranger's until
// somebody has approved its head.
func (k *Controller) laneOfChange(ctx context.Context, id change.ID) (lane, error) {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return lane{}, err
	}
	return k.laneOfState(s), nil
}

func (k *Controller) laneOfState(s *change.State) lane {
	return lane{account: k.GitHub.Account(s.Facts.Repo), strangers: s.Held(), priority: k.priorityOf(s)}
}

// laneWithPrefetch is the lane of a change in the reconcile queue. It is called before the work has a slot,
// and prefetches the commits that the plan will need.
func (k *Controller) laneWithPrefetch(ctx context.Context, id change.ID) (lane, error) {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return lane{}, err
	}
	if s.NeedsPlan() {
		k.Planner.Prefetch(id, s.Facts)
	}
	return k.laneOfState(s), nil
}

// Counts reads the counters.
func (k *Controller) Counts() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

func (k *Controller) count(do func(*Counts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do(&k.counts)
}
