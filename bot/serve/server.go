// Package serve is the bot as one program: it reads a configuration, opens the
// journal and the ledger, listens for webhooks and runners, starts a runner of its
// own, and stops all of them in an order that loses nothing. It decides nothing
// about a change: package controller does.
package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/bot/sweep"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// Options is a configuration with what it stands for. Everything below Secrets may
// be left out.
type Options struct {
	Config
	Secrets Secrets

	// AcceptLoss starts although the journal lacks events that the ledger has.
	AcceptLoss bool

	Version string
	Program []string  // command of this program, to start the local runner with; this executable unless given
	Stderr  io.Writer // the local runner's; os.Stderr unless given
	Log     *slog.Logger
	Now     func() time.Time
	// RunnerEnv is added to the environment of the local runner, which gets little of the bot's: NAME=value each.
	RunnerEnv []string

	MaxStore   int64         // as in journal.Options
	LeaseFor   time.Duration // as in journal.Options
	LeadFor    time.Duration // as in journal.Options
	TraceEvery time.Duration // as in trace.Options
	Heartbeat  time.Duration // as in fleet.Server
	Poll       time.Duration // as in fleet.Server
	AskEvery   time.Duration // how often GitHub is asked whether it still accepts the bot; half a minute
	Labels     func() []string
}

// A Server is a bot at work.
type Server struct {
	Journal *journal.Journal
	Jobs    *jobs.Queue
	Ledger  *ledger.Ledger
	Client  *client.GitHub
	Bot     *controller.Controller
	Runners *fleet.Server

	opt    Options
	log    *slog.Logger
	counts *counters
	ready  readiness
	net    listeners
	access *pages.Guard
	agents *submission.Hosted // nil if there are no agents

	agentTokens *mcp.TokenFile
	trace       *trace.Tracer // nil if traces are off
	parts       parts
	lock        *os.File // of the data folder; nil where the journal is in it
	fail        context.CancelCauseFunc

	outdated outdated
	stopped  chan struct{}
	err      error // once stopped is closed
}

// parts are what works behind the listeners, each with what ends it.
type parts struct {
	follow, bot, fleet, child, notify, disk, verify, agents part
}

type part struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (p part) end() {
	if p.cancel != nil {
		p.cancel()
		<-p.done
	}
}

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) error {
	s, err := Start(ctx, o)
	if err != nil {
		return err
	}
	return s.Wait()
}

// Start returns when the server listens; it works until ctx ends, and Wait says
// how that went.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{opt: o, log: o.Log, stopped: make(chan struct{}), outdated: newOutdated()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Stderr == nil {
		s.opt.Stderr = os.Stderr
	}
	if s.opt.Labels == nil {
		s.opt.Labels = func() []string { return gpus.LabelsHere(os.Getenv, o.Config.Runner.GPUs) }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	tokens, child, err := s.runners(ctx)
	if err != nil {
		return nil, err
	}
	if s.access, err = s.guard(); err != nil {
		return nil, err
	}
	if s.trace, err = s.tracer(); err != nil {
		return nil, err
	}
	if file := s.opt.MCP.TokensFile; file != "" {
		if s.agentTokens, err = mcp.OpenTokens(file, s.log); err != nil {
			return nil, err
		}
	}
	s.assemble(tokens)
	if s.net, err = s.listen(ctx); err != nil {
		return nil, err
	}
	s.work(ctx, child)
	return s, nil
}

// open opens what is on disk, and GitHub.
func (s *Server) open(ctx context.Context) (err error) {
	c := s.opt.Config
	if err := errors.Join(s.prepareData(), s.lockData()); err != nil {
		return err
	}
	if s.Client, err = s.openClient(); err != nil {
		return err
	}
	if s.Journal, err = journal.Open(ctx, journalOptions(s.opt, s.log)); err != nil {
		return err
	}
	if s.Jobs, err = jobs.Open(ctx, s.Journal, jobs.Options{LeaseFor: s.opt.LeaseFor, Limits: limits(c), Log: s.log, Now: s.opt.Now}); err != nil {
		return err
	}
	if err := s.clearScratch(); err != nil {
		return err
	}
	return s.openLedger(ctx)
}

const (
	ledgerFile    = "ledger.db"
	journalFolder = "journal"
)

func (s *Server) scratch() string { return filepath.Join(s.opt.Data, "scratch") }

// clearScratch removes what a server that was killed left behind. It comes after
// opening the journal, whose lock keeps a second server out of the folder.
func (s *Server) clearScratch() error {
	if err := errors.Join(os.RemoveAll(s.scratch()), os.Mkdir(s.scratch(), 0o700)); err != nil {
		return fmt.Errorf("clearing the scratch folder: %w", err)
	}
	return nil
}

// prepareData keeps others out of the data folder. A runner that is another user
// must get through it to its own part.
func (s *Server) prepareData() error {
	mode := os.FileMode(0o700)
	if s.opt.Runner.Local && s.opt.Runner.User != "" {
		mode = 0o711
	}
	dir := s.opt.Data
	if dir == "" {
		return errors.New("the server has no data folder: set data")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the data folder: %w (choose one that this user may write: data)", err)
	}
	for _, file := range []string{journalFolder, ledgerFile} {
		if err := journal.CheckOwner(filepath.Join(dir, file)); err != nil {
			return usage.Errorf("data: %w", err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		return fmt.Errorf("restricting access to the data folder: %w (this user must own it)", err)
	}
	// SQLite gives its other files the mode of this one.
	f, err := os.OpenFile(filepath.Join(dir, ledgerFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("creating the ledger: %w", err)
	}
	return f.Close()
}

// OpenJournal opens the journal of a configuration, for a program that does not serve.
func OpenJournal(ctx context.Context, c Config, version string, readOnly bool, log *slog.Logger) (*journal.Journal, error) {
	o := journalOptions(Options{Config: c, Version: version}, log)
	o.ReadOnly = readOnly
	return journal.Open(ctx, o)
}

// RestoreJournal makes the journal of a configuration from a backup.
func RestoreJournal(ctx context.Context, c Config, version string, backup io.ReadSeeker, log *slog.Logger) (journal.Manifest, error) {
	return journal.Restore(ctx, journalOptions(Options{Config: c, Version: version}, log), backup)
}

func journalOptions(o Options, log *slog.Logger) journal.Options {
	j := journal.Options{MaxStore: o.MaxStore, LeadFor: o.LeadFor, Version: compat.VersionOf(o.Version), Log: log, Now: o.Now}
	if len(o.NATS) == 0 {
		j.Dir = filepath.Join(o.Data, journalFolder)
		return j
	}
	j.URL, j.NATS, j.Replicas = strings.Join(o.NATS, ","), natsOptions(o.Config), o.Replicas
	j.Address, j.Monitors = o.Advertise, o.Monitors
	j.Name, _ = os.Hostname() // without one the log says less
	return j
}

// limits are the configuration's, as the queue has them.
func limits(c Config) scheduler.Limits {
	all := scheduler.Limits{}
	for _, l := range c.Limits {
		all[strings.ToLower(l.Repository)] = scheduler.Limit{Jobs: l.Jobs, GPUTime: time.Duration(l.GPUMinutes) * time.Minute}
	}
	return all
}

// sweeps are the configuration's, as the controller has them.
func sweeps(c Config) (all []sweep.Schedule) {
	for _, s := range c.Sweeps {
		at, _ := s.at() // it was checked
		all = append(all, sweep.Schedule{Repository: s.Repository, At: at, Every: s.every(), Kernels: s.Kernels})
	}
	return all
}

// watches returns the watches of the configuration as schedules for the controller.
func watches(c Config) (all []sweep.Schedule) {
	for _, w := range c.Watch {
		s := w.schedule()
		at, _ := s.at() // it was checked
		all = append(all, sweep.Schedule{Repository: s.Repository, At: at, Every: s.every(), Kernels: s.Kernels, Watch: &sweep.Watch{Against: w.against(), Slower: float64(w.slower())}})
	}
	return all
}

// openClient makes the way to GitHub, on which the bot that leads alone may write.
func (s *Server) openClient() (*client.GitHub, error) {
	g := s.opt.Config.GitHub
	opt := client.Options{
		BaseURL: g.APIURL, GitURL: g.GitURL, UserAgent: s.opt.Version, Log: s.log,
		MayWrite: func(ctx context.Context) error { return s.Journal.EnsureLeader(ctx) },
	}
	if g.AppID != 0 {
		return client.NewApp(g.AppID, s.opt.Secrets.PrivateKey, opt)
	}
	return client.NewToken(s.opt.Secrets.Token, opt)
}

// assemble puts the bot together.
func (s *Server) assemble(tokens map[string]fleet.Credential) {
	c := s.opt.Config
	_, web, _ := client.Addresses(c.GitHub.APIURL, c.GitHub.GitURL) // one that cannot be read was refused before
	planner := &planner.Planner{
		Mirrors: &mirror.Store{Dir: filepath.Join(c.Data, "mirrors"), Origin: s.Client, Number: s.Client.Number},
		Bundles: s.Journal.Bundles, History: s.Ledger, Scratch: s.scratch(), Version: s.opt.Version, Now: s.opt.Now,
		Fetcher: &recordings.Fetcher{Cache: filepath.Join(c.Data, "recordings")},
	}
	s.Bot = controller.New(controller.Config{
		Journal: s.Journal, Jobs: s.Jobs, Ledger: s.Ledger, GitHub: s.Client, Planner: planner,
		Repositories: c.GitHub.Repositories, ResyncEvery: time.Duration(c.Reconcile),
		Sweeps: sweeps(c), Watches: watches(c),
		Runners: s.connected, Page: s.pageOf, RunPage: s.runPage, SearchPage: s.searchPage, Web: web, Public: s.publicNames(), Trace: s.trace, Log: s.log, Now: s.opt.Now,
		Judged: func(ctx context.Context, runner, kernel, fault string) { s.Runners.Judged(ctx, runner, kernel, fault) },
	})
	s.agents = s.hostSubmissions(planner)
	s.Runners = &fleet.Server{
		Journal: s.Journal, Jobs: s.Jobs, Results: s.results(), Tokens: tokens, Version: s.opt.Version,
		LeaseFor: s.opt.LeaseFor, Heartbeat: s.opt.Heartbeat, Poll: s.opt.Poll, Log: s.log, Now: s.opt.Now,
	}
	if s.opt.Secrets.Operator != "" {
		sum := sha256.Sum256([]byte(s.opt.Secrets.Operator))
		s.Runners.Operator = &sum
	}
	s.counts = newCounters(s)
}

// work starts everything, and sees to its end.
func (s *Server) work(ctx context.Context, child *child) {
	ctx, s.fail = context.WithCancelCause(ctx)
	s.parts.follow = s.begin(ctx, "following the journal", s.whileReadable(func(ctx context.Context) error { return s.Ledger.Follow(ctx, s.Journal) }))
	s.parts.bot = s.begin(ctx, "the bot", s.whileReadable(s.Bot.Run))
	s.parts.fleet = s.begin(ctx, "the runners' jobs", s.Runners.Run)
	s.parts.disk = s.begin(ctx, "the journal", s.watchJournal)
	s.parts.verify = s.begin(ctx, "verifying the journal", s.verifyJournal)
	if s.agents != nil {
		s.parts.agents = s.begin(ctx, "the submissions of agents", s.whileReadable(s.agents.Run))
	}
	if t := s.teller(); t != nil {
		s.parts.notify = s.begin(ctx, "the notifications", s.whileReadable(t.Run))
	}
	if child != nil {
		s.parts.child = s.begin(ctx, "the local runner", child.run)
	}
	var asking sync.WaitGroup
	asking.Go(func() { s.introduce(ctx) })
	s.net.serve(s.fail)
	s.log.Info("kernelgate listens", "url", s.URL(), "data", s.opt.Data, "runner_socket", s.opt.socket(), "version", s.opt.Version)
	go func() {
		<-ctx.Done()
		asking.Wait()
		err := s.close()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
			err = errors.Join(cause, err)
		}
		s.fail(nil)
		s.err = err
		s.log.Info("kernelgate has stopped")
		close(s.stopped)
	}()
}

// begin runs one part until its own end is called: ctx ending does not end it,
// since the parts end in an order. One that ends by itself takes all with it.
func (s *Server) begin(ctx context.Context, what string, run func(context.Context) error) part {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := part{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		err := run(own)
		if own.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it stopped unexpectedly")
		}
		s.fail(fmt.Errorf("%s: %w", what, err))
	}()
	return p
}

// close ends everything in the order in which each needs the other: the runner
// gives its job back, requests are answered, the bot ends what it is at, and the
// journal is last.
func (s *Server) close() error {
	s.parts.child.end()
	s.parts.disk.end()
	s.parts.verify.end()
	err := s.net.close()
	s.parts.fleet.end()
	s.parts.agents.end()
	s.parts.bot.end()
	s.parts.notify.end()
	s.parts.follow.end()
	s.trace.Close()
	if s.Ledger != nil {
		err = errors.Join(err, s.Ledger.Close())
	}
	if s.Jobs != nil {
		s.Jobs.Close()
	}
	if s.Journal != nil {
		err = errors.Join(err, s.Journal.Close())
	}
	return errors.Join(err, s.unlockData())
}

// Wait returns when the server has stopped: nil if it was told to.
func (s *Server) Wait() error {
	<-s.stopped
	return s.err
}

// URL is where the server listens, as this host sees it.
func (s *Server) URL() string {
	addr := s.net.main.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("http://%s", net.JoinHostPort(host, fmt.Sprint(addr.Port)))
}

// runnerURL is the same for runners on this host.
func (s *Server) runnerURL() string { return "unix://" + s.opt.socket() }
