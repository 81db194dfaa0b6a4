// Package keeper keeps GitHub in step with what is known of every change: it takes
// deliveries from the journal, asks for plans, has jobs queued, judges what
// runners bring back, answers commands, and publishes checks and comments.
//
// Deliveries and timers are hints to look, never the truth themselves: what is
// done follows from a change's state (package change) alone. So a delivery may
// come twice, late, out of order or not at all, and a crash at any moment is mended
// by looking again.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/runners/agent"
)

// Config is what a bot works with.
type Config struct {
	Journal *journal.Journal
	Ledger  *ledger.Ledger
	GitHub  *client.GitHub
	Planner *planner.Planner

	Repositories  []string      // to watch; none means all that the App is installed on
	Reconcile     time.Duration // how often everything is looked at again; 5 minutes unless given
	ProgressEvery time.Duration // how often a running check's text changes; 15 s unless given
	Backoff       time.Duration // the first pause after a failure, which then doubles; 1 s unless given
	URL           string        // of the bot's own pages, for links; may be empty
	Runners       func() []present.RunnerInfo

	Log *slog.Logger
	Now func() time.Time
}

// A Keeper is one gatekeeper.
type Keeper struct {
	Config
	states *states
	tender *tender

	mu       sync.Mutex
	progress map[string]present.Progress // by job
	shown    map[string]time.Time        // when a change's progress was last published
	counts   Counts

	troubles    map[change.ID]int // failures to plan, in a row
	redelivered map[string]int    // how often, by delivery; reconcileLoop's own
}

// Counts is what the bot did since it started.
type Counts struct {
	Accepted         int64 // deliveries that are in the journal
	Handled, Failed  int64 // deliveries
	Planned, Judged  int64
	Answered         int64
	Published, Retry int64
	Reconciled       time.Time // when everything was last looked at
}

// New makes a bot; Run sets it to work.
func New(c Config) *Keeper {
	if c.Reconcile == 0 {
		c.Reconcile = 5 * time.Minute
	}
	if c.ProgressEvery == 0 {
		c.ProgressEvery = 15 * time.Second
	}
	if c.Backoff == 0 {
		c.Backoff = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Runners == nil {
		c.Runners = func() []present.RunnerInfo { return nil }
	}
	k := &Keeper{Config: c, progress: map[string]present.Progress{}, shown: map[string]time.Time{}, redelivered: map[string]int{}, troubles: map[change.ID]int{}}
	k.states = &states{journal: c.Journal, now: c.Now, entries: map[change.ID]*entry{}}
	k.tender = &tender{tend: k.tend, backoff: c.Backoff, log: c.Log, busy: map[change.ID]*tending{}}
	return k
}

// Run works until ctx ends. The ledger must be following the journal already.
func (k *Keeper) Run(ctx context.Context) error {
	if err := k.Ledger.CaughtUp(ctx); err != nil {
		return fmt.Errorf("waiting for the ledger: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.tender.start(ctx)
	var all sync.WaitGroup
	errs := make(chan error, 2)
	for _, loop := range []func(context.Context) error{k.reconcileLoop, k.deliveries} {
		all.Go(func() {
			defer cancel() // one without the other would be half a bot
			errs <- loop(ctx)
		})
	}
	all.Wait()
	k.tender.wait()
	close(errs)
	var joined error
	for err := range errs {
		joined = errors.Join(joined, err)
	}
	return joined
}

// Counts reads the counters.
func (k *Keeper) Counts() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

// Idle tells whether everything that came in since the start is done, and nobody
// looks after any change.
func (k *Keeper) Idle() bool {
	c := k.Counts()
	return c.Handled >= c.Accepted && k.tender.idle()
}

func (k *Keeper) count(do func(*Counts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do(&k.counts)
}

// Progress is told by a runner through package fleet. It is shown, and not
// kept.
func (k *Keeper) Progress(job string, p agent.Progress) {
	id, err := change.OfJob(job)
	if err != nil {
		return
	}
	k.mu.Lock()
	k.progress[job] = present.Progress{
		Gate: string(p.Gate), Text: p.Text, Done: p.Done, Total: p.Total, Unit: p.Unit, Detail: p.Detail, Left: p.Event().Left, At: k.Now(),
	}
	due := k.Now().Sub(k.shown[id.String()]) >= k.ProgressEvery
	if due {
		k.shown[id.String()] = k.Now()
	}
	k.mu.Unlock()
	if due {
		k.tender.poke(id)
	}
}
