// Package bot keeps GitHub in step with what is known of every change: it takes
// deliveries from the journal, asks for plans, has jobs queued, judges what
// runners bring back, answers commands, and publishes checks and comments.
//
// Deliveries and timers are hints to look, never the truth themselves: what is
// done follows from a change's state (package change) alone. So a delivery may
// come twice, late, out of order or not at all, and a crash at any moment is mended
// by looking again.
package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/hub"
	"github.com/kernelgate/kernelgate/bot/journal"
	"github.com/kernelgate/kernelgate/bot/ledger"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/runners/agent"
)

// Config is what a bot works with.
type Config struct {
	Journal *journal.Journal
	Ledger  *ledger.Ledger
	Hub     *hub.Hub
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

// A Bot is one gatekeeper.
type Bot struct {
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
func New(c Config) *Bot {
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
	b := &Bot{Config: c, progress: map[string]present.Progress{}, shown: map[string]time.Time{}, redelivered: map[string]int{}, troubles: map[change.ID]int{}}
	b.states = &states{journal: c.Journal, now: c.Now, entries: map[change.ID]*entry{}}
	b.tender = &tender{tend: b.tend, backoff: c.Backoff, log: c.Log, busy: map[change.ID]*tending{}}
	return b
}

// Run works until ctx ends. The ledger must be following the journal already.
func (b *Bot) Run(ctx context.Context) error {
	if err := b.Ledger.CaughtUp(ctx); err != nil {
		return fmt.Errorf("waiting for the ledger: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.tender.start(ctx)
	var all sync.WaitGroup
	errs := make(chan error, 2)
	for _, loop := range []func(context.Context) error{b.reconcileLoop, b.deliveries} {
		all.Go(func() {
			defer cancel() // one without the other would be half a bot
			errs <- loop(ctx)
		})
	}
	all.Wait()
	b.tender.wait()
	close(errs)
	var joined error
	for err := range errs {
		joined = errors.Join(joined, err)
	}
	return joined
}

// Counts reads the counters.
func (b *Bot) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// Idle tells whether everything that came in since the start is done, and nobody
// looks after any change.
func (b *Bot) Idle() bool {
	c := b.Counts()
	return c.Handled >= c.Accepted && b.tender.idle()
}

func (b *Bot) count(do func(*Counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(&b.counts)
}

// Progress is told by a runner through package dispatch. It is shown, and not
// kept.
func (b *Bot) Progress(job string, p agent.Progress) {
	id, err := change.OfJob(job)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.progress[job] = present.Progress{
		Gate: p.Gate, Text: p.Text, Done: p.Done, Total: p.Total, Unit: p.Unit, Detail: p.Detail, Left: p.Event().Left, At: b.Now(),
	}
	due := b.Now().Sub(b.shown[id.String()]) >= b.ProgressEvery
	if due {
		b.shown[id.String()] = b.Now()
	}
	b.mu.Unlock()
	if due {
		b.tender.poke(id)
	}
}
