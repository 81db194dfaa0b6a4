// Package agent is a runner: it asks a bot for jobs, has them measured one at a time, and delivers
// the evidence. It holds only a token for that bot: no access to GitHub, to the journal or to a
// database. It neither measures nor judges; Config.Measure measures.
//
// The bot may go away at any time. A running job continues meanwhile. A finished result stays on
// disk until the bot has accepted or refused it, also across restarts of the runner.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Config says which servers the runner works for and how it measures.
type Config struct {
	// Servers are unix:///path/to/socket or https://host[:port]; http:// only on this host. If one
	// does not answer, the next is asked.
	Servers []string
	CA      string // file with certificates to trust in addition to the system's; "" is none
	Token   string
	Name    string
	Labels  []string // kinds of jobs that it takes

	// StateDir is for running jobs and for results to deliver. No two runners may share one.
	StateDir string
	// LeastFree is the free space in bytes below which the runner takes no jobs; 64 MiB by default.
	LeastFree uint64
	Version   string
	Host      string // "" means the host's name

	// Measure gathers evidence, with scratch as a private folder. It must heed ctx: cancelling ctx
	// is how a cancelled job frees the device.
	Measure func(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error)
	// Build replaces Measure for jobs that only compile; nil for a runner that takes none.
	Build func(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error)

	// Look returns the host's current state, and why it should not be measured on, usually "". If
	// Look is nil, the runner reports nothing about the host.
	Look func(now time.Time) (gpu *protocol.GPU, unfit string)
	// SelfTest measures a known kernel, with scratch as a private folder; nil means never. The
	// agent adds the time of the test to the result.
	SelfTest func(ctx context.Context, scratch string) protocol.SelfTest
	// GPU is the number of the host's GPU that this runner measures on, if several GPUs share its
	// name; "" otherwise.
	GPU string

	// Patience is how long a server may be silent before the next is asked; 4 s by default. It
	// grows if all servers are silent.
	Patience time.Duration

	Log *slog.Logger     // nil discards
	Now func() time.Time // nil means time.Now
	// After paces heartbeats and retries; nil means time.After.
	After func(time.Duration) <-chan time.Time
}

// ErrRefused means that the server does not know this runner, or does not grant its request. A
// retry would not help.
var ErrRefused = errors.New("the server refuses this runner")

// Run works for the server until ctx ends (nil), or until the server refuses this runner.
func Run(ctx context.Context, c Config) error {
	a, err := start(c)
	if err != nil {
		return fmt.Errorf("starting the runner: %w", err)
	}
	defer a.lock.Close()
	err = a.loop(ctx)
	if ctx.Err() != nil && !errors.Is(err, ErrRefused) {
		return nil
	}
	return err
}

type agent struct {
	Config
	client *client
	store  store
	lock   *os.File
	fit    fitness
	disk   disk
}

func start(c Config) (*agent, error) {
	if c.Measure == nil && c.Build == nil || c.StateDir == "" || c.Name == "" || len(c.Labels) == 0 {
		return nil, errors.New("it needs a name, at least one label, a state folder and a way to measure")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	c.Patience = cmp.Or(c.Patience, firstPatience)
	c.LeastFree = cmp.Or(c.LeastFree, leastFree)
	if c.Host == "" {
		c.Host, _ = os.Hostname() // for people to recognise; not required
	}
	client, err := newClient(c)
	if err != nil {
		return nil, err
	}
	s, lock, err := openStore(c.StateDir)
	if err != nil {
		return nil, err
	}
	return &agent{Config: c, client: client, store: s, lock: lock}, nil
}

// loop delivers stored results before it asks for more jobs.
func (a *agent) loop(ctx context.Context) error {
	var told protocol.LeaseResponse // the last response without a job
	for idle := false; ; {
		if err := a.deliverAll(ctx); err != nil {
			return err
		}
		if may, err := a.awaitDisk(ctx); err != nil {
			return err
		} else if !may {
			continue
		}
		if err := a.testIfDue(ctx, told, idle); err != nil {
			return err
		}
		told, idle = protocol.LeaseResponse{}, false
		var lease *protocol.LeaseResponse
		asked := a.Now()
		err := a.persist(ctx, "asking for a job", func() (err error) {
			lease, err = a.client.lease(ctx, protocol.LeaseRequest{
				Runner: a.Name, Labels: a.Labels, Version: a.Version, Host: a.Host, Protocol: protocol.Version, Health: a.health(),
			})
			return err
		})
		if err != nil {
			return err
		}
		if lease.Job == "" {
			told, idle = *lease, true
			// The server usually delays this answer, but a proxy in between may not.
			if a.Now().Sub(asked) < minPoll {
				select {
				case <-ctx.Done():
				case <-a.After(minPoll):
				}
			}
			continue
		}
		if err := a.work(ctx, *lease); err != nil {
			return err
		}
	}
}

// minPoll limits how often a runner asks.
const minPoll = time.Second

// Pauses between attempts to reach a server that is away. A change of the leading bot takes some
// seconds; the last pause is short compared with that.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = time.Second
)

// persist retries until the server answers with success or with a final answer. It returns that
// answer, or that ctx ended.
func (a *agent) persist(ctx context.Context, doing string, try func() error) error {
	pause, patience := firstPause, a.Patience
	defer func() { a.client.patience.Store(int64(a.Patience)) }()
	for n, silent := 0, 0; ; n++ {
		a.client.patience.Store(int64(patience))
		at := a.client.at.Load()
		err := try()
		if err == nil || final(err) || ofDisk(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errSilent) {
			// Only once per round over all servers: perhaps all of them are slow.
			if silent++; silent%len(a.Servers) == 0 {
				patience = max(patience, min(2*patience, lastPatience))
			}
		}
		if a.client.at.Load() != at && (n+1)%len(a.Servers) != 0 {
			a.Log.Warn("the server gives no valid answer; trying the next server", "doing", doing, "error", err)
			continue // the next may be the leader
		}
		a.Log.Warn("the server gives no valid answer", "doing", doing, "error", err, "retry_in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// grace is how long a runner that must stop may take to finish its last requests.
const grace = 5 * time.Second

// outlive returns a context that ends a little later than ctx, for work that should be completed.
func (a *agent) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-a.After(grace):
			cancel()
		case <-late.Done():
		}
	})
	return late, func() { stop(); cancel() }
}
