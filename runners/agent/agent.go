// Package agent is a runner: it asks a bot for jobs, has them measured one at a
// time, and brings the evidence back. It holds a token for that bot and nothing
// else: no access to GitHub, to the journal or to a database. It neither
// measures nor judges; measuring is Config.Measure.
//
// The bot may go away at any time. A job under way goes on meanwhile, and a
// finished result is kept on disk until the bot has taken or refused it, across
// restarts of the runner too.
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

// Config says whose runner this is and how it measures.
type Config struct {
	Servers []string // unix:///path/to/socket or https://host[:port]; http:// on this host alone. Where one does not answer, the next is asked
	CA      string   // file with certificates to trust beside the system's; "" is none
	Token   string
	Name    string
	Labels  []string // kinds of jobs it takes

	StateDir string // for jobs under way and results to deliver; no two runners share one
	Version  string
	Host     string // "" is the host's name

	// Measure gathers evidence, with scratch as a folder of its own. It must heed
	// ctx: that is how a cancelled job frees the device.
	Measure func(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error)
	// Build takes the place of Measure for jobs that are to be compiled alone; nil for a runner that takes none.
	Build func(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error)

	// Look is how the host is now, and why it should not be measured on, "" as a rule; nil says nothing of it.
	Look func(now time.Time) (gpu *protocol.GPU, unfit string)
	// SelfTest measures what is known, with scratch as a folder of its own; nil never does. When it was is added to it.
	SelfTest func(ctx context.Context, scratch string) protocol.SelfTest
	// GPU is the number of the host's GPU that this runner measures on, where the same name has several; "" otherwise.
	GPU string

	// Patience is how long a server may be silent before the next is asked; 4 s unless given. It grows where all are.
	Patience time.Duration

	Log *slog.Logger     // nil discards
	Now func() time.Time // nil is time.Now
	// After is time.After if nil; it paces beats and retries.
	After func(time.Duration) <-chan time.Time
}

// ErrRefused says that the server does not know this runner, or does not let it
// have what it asks for. Asking again would not help.
var ErrRefused = errors.New("the server refuses this runner")

// Run works for the server until ctx ends (nil), or until the server refuses
// this runner.
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
	if c.Host == "" {
		c.Host, _ = os.Hostname() // for people to recognise; not needed
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

// loop delivers what is left over before it asks for more.
func (a *agent) loop(ctx context.Context) error {
	var told protocol.LeaseResponse // the last that handed out no job
	for idle := false; ; {
		if err := a.deliverAll(ctx); err != nil {
			return err
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
			// The server has let it wait, unless something in between did not.
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

// minPoll keeps a runner from asking without end.
const minPoll = time.Second

// Pauses between attempts to reach a server that is away. Bots that change places need some seconds for it: the last pause is
// short beside that.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = time.Second
)

// persist tries until the server answers: with success, or with an answer that
// is final. What it returns is that answer, or that ctx ended.
func (a *agent) persist(ctx context.Context, doing string, try func() error) error {
	pause, patience := firstPause, a.Patience
	defer func() { a.client.patience.Store(int64(a.Patience)) }()
	for n, silent := 0, 0; ; n++ {
		a.client.patience.Store(int64(patience))
		at := a.client.at.Load()
		err := try()
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errSilent) {
			if silent++; silent%len(a.Servers) == 0 { // as often as there are servers: perhaps all of them are slow
				patience = max(patience, min(2*patience, lastPatience))
			}
		}
		if a.client.at.Load() != at && (n+1)%len(a.Servers) != 0 {
			a.Log.Warn("the server gives no valid answer; trying the next server", "doing", doing, "error", err)
			continue // it may be the one that leads
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

// grace is how long a runner that is told to stop may take to say goodbye.
const grace = 5 * time.Second

// outlive returns a context that ends a little later than ctx, for what should
// be brought to its end.
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
