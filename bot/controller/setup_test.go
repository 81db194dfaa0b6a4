package controller_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/sweep"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
	"github.com/kernelgate/kernelgate/runners/work/search/perform"
)

// A setup is a bot that can be started in this process or another.
type setup struct {
	Dir, Addr, GitHub string
	App               int64
	Key               []byte
	PAT               string
	Beat              time.Duration // how often the runner reports; 50 ms unless given
	Lease             time.Duration // 30 s unless given: no runner that is only slow may lose its job
	Absent            bool          // there is no runner
	Forgetful         bool          // the runner asks nobody what was measured before, and has nothing counted
	Patient           bool          // GitHub's own limits are kept to, in real time
	Writes            int           // an hour, where Patient; GitHub's own limit unless given
	Watchful          bool          // what the bot was not told of it finds in seconds
	Backoff           time.Duration // the first pause after a failure; 20 ms unless given
	Everywhere        bool          // every repository is watched, not olga/kernels alone
	NATS              string        // servers that the journal is on, with commas between them; embedded unless given
	Name              string        // of one bot among several there
	Copies            int           // of everything that the servers keep; one unless given
	Lead              time.Duration // as in journal.Options
	Runners           []runnerSetup // that may come; one of the label cpu unless given
	StopAt            string        // method and end of the path: the first such request to GitHub stops the process, right before it is sent

	refuse func(*http.Request) *http.Response // stands in for GitHub where it returns an answer
	now    func() time.Time                   // the client's and the bot's clock
	look   func(planner.Mirrors) planner.Mirrors
	limits scheduler.Limits // of repositories
	sweeps []sweep.Schedule
	watch  []sweep.Schedule
	judged func(ctx context.Context, runner, kernel, fault string)
	others map[string]fleet.Credential // of runners beside the usual one, which the bot then knows by what they say

	measure func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error) // in place of the scripted runner's
}

// A server is a bot that runs.
type server struct {
	bot     *controller.Controller
	ledger  *ledger.Ledger
	journal *journal.Journal
	jobs    *jobs.Queue
	stop    func() error
}

// client is the bot's way to GitHub. It waits as it is told to, only shorter.
func (s setup) client(j *journal.Journal) (*client.GitHub, error) {
	opt := client.Options{BaseURL: s.GitHub, GitURL: s.GitHub, ContentPerMinute: 1e6, ContentPerHour: 1e6, Sleep: func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(min(d, 5*time.Millisecond)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	opt.Now, opt.MayWrite, opt.UserAgent = s.now, j.EnsureLeader, s.Name
	if s.StopAt != "" {
		opt.Transport = &stopping{at: s.StopAt}
	}
	if s.refuse != nil {
		opt.Transport = refusing{s.refuse}
	}
	if s.Patient {
		opt.ContentPerMinute, opt.ContentPerHour, opt.Sleep = 0, s.Writes, nil
	}
	if s.PAT != "" {
		return client.NewToken(s.PAT, opt)
	}
	return client.NewApp(s.App, s.Key, opt)
}

// refusing answers some requests itself.
type refusing struct {
	refuse func(*http.Request) *http.Response
}

func (r refusing) RoundTrip(rq *http.Request) (*http.Response, error) {
	if answer := r.refuse(rq); answer != nil {
		return answer, nil
	}
	return http.DefaultTransport.RoundTrip(rq)
}

// listenAgain gets a port back. A program that was just started still holds its parent's closed listener for a moment.
func listenAgain(addr string) (l net.Listener, err error) {
	for range 500 {
		if l, err = net.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return l, err
}

func (s setup) start(log *slog.Logger, hold <-chan struct{}) (*server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	where := journal.Options{Dir: filepath.Join(s.Dir, "journal"), Log: log}
	if s.NATS != "" {
		where.Dir, where.URL, where.Name, where.LeadFor, where.Replicas = "", s.NATS, s.Name, s.Lead, s.Copies
	}
	j, err := journal.Open(ctx, where)
	if err != nil {
		cancel()
		return nil, err
	}
	work, err := jobs.Open(ctx, j, jobs.Options{LeaseFor: cmp.Or(s.Lease, 30*time.Second), Limits: s.limits, Log: log})
	if err != nil {
		cancel()
		return nil, errors.Join(err, j.Close())
	}
	l, err := ledger.Open(ctx, filepath.Join(s.Dir, "ledger.db"), ledger.Options{})
	if err != nil {
		cancel()
		return nil, errors.Join(err, j.Close())
	}
	client, errClient := s.client(j)
	listener, errListen := listenAgain(s.Addr)
	if err := errors.Join(errClient, errListen); err != nil {
		cancel()
		return nil, errors.Join(err, l.Close(), j.Close())
	}
	tokens, here := map[string]fleet.Credential{"runner": fleet.NewCredential(token, "cpu")}, []present.RunnerInfo{{Name: "runner", Labels: []string{"cpu"}}}
	if len(s.Runners) > 0 {
		clear(tokens)
		here = nil
	}
	for _, r := range s.Runners {
		tokens[r.Name] = fleet.NewCredential(r.token(), r.Label)
		here = append(here, present.RunnerInfo{Name: r.Name, Labels: []string{r.Label}})
	}
	runners := &fleet.Server{
		Journal: j, Jobs: work, Tokens: tokens,
		LeaseFor: cmp.Or(s.Lease, 30*time.Second), Heartbeat: cmp.Or(s.Beat, 50*time.Millisecond), Poll: time.Second, Log: log,
	}
	maps.Copy(runners.Tokens, s.others)
	connected := func() []present.RunnerInfo { return here }
	if s.others != nil {
		connected = func() (list []present.RunnerInfo) {
			for _, r := range runners.Runners() {
				if !r.LastSeen.IsZero() {
					list = append(list, present.RunnerInfo{Name: r.Name, Labels: r.Labels, Busy: r.Job != ""})
				}
			}
			return list
		}
	}
	// To look at everything again is most of the work where nothing else is to be done. On
	// a machine that takes longer for it than the pause, the bot never comes to rest.
	reconcile, watched := 20*time.Second, []string{"olga/kernels"}
	if s.Watchful {
		reconcile = 4 * time.Second
	}
	if s.Everywhere {
		watched = nil
	}
	if s.Patient {
		reconcile = 0
	}
	var mirrors planner.Mirrors = &mirror.Store{Dir: filepath.Join(s.Dir, "mirrors"), Origin: client}
	if s.look != nil {
		mirrors = s.look(mirrors)
	}
	b := controller.New(controller.Config{
		Journal: j, Jobs: work, Ledger: l, GitHub: client, ResyncEvery: reconcile, ProgressEvery: 100 * time.Millisecond, Backoff: cmp.Or(s.Backoff, 20*time.Millisecond), Judged: s.judged, Log: log,
		Repositories: watched, Now: s.now, Sweeps: s.sweeps, Watches: s.watch, SweepEvery: 20 * time.Millisecond,
		Planner: &planner.Planner{Mirrors: mirrors, Bundles: j.Bundles, History: l, Scratch: s.Dir, Version: "kernelgate test", Now: time.Now},
		Runners: connected,
	})
	runners.Results = b
	mux := http.NewServeMux()
	mux.Handle("POST /webhook", &webhook.Handler{Secrets: [][]byte{[]byte(secret)}, Store: b.Store})
	mux.Handle(protocol.Prefix, runners.Handler())
	mux.HandleFunc("GET /leads", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, j.Leads())
	})
	mux.HandleFunc("GET /queues", func(w http.ResponseWriter, _ *http.Request) {
		answer := queues{Queues: work.Backlogs(), Held: map[string]string{}}
		for _, r := range runners.Runners() {
			answer.Held[r.Name] = r.Job
		}
		if !j.Leads() {
			http.Error(w, "it knows of no jobs", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	web := &http.Server{Handler: mux}
	failures := make(chan error, 5)
	var all sync.WaitGroup
	run := func(what string, do func() error) {
		all.Go(func() {
			if err := do(); err != nil && ctx.Err() == nil {
				failures <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	run("web", func() error { return web.Serve(listener) })
	run("ledger", func() error { return l.Follow(ctx, j) })
	run("bot", func() error { return b.Run(ctx) })
	run("fleet", func() error { return runners.Run(ctx) })
	measure := perform.Measure(scripted.Runner{Hold: hold, Stopped: func() { stopped.Store(time.Now().UnixNano()) }})
	if s.measure != nil {
		measure = s.measure
	}
	if s.Forgetful {
		asking := measure
		measure = func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
			job.Record = nil
			return asking(ctx, job, scratch, p)
		}
	}
	run("runner", func() error {
		if s.Absent {
			return nil
		}
		return agent.Run(ctx, agent.Config{
			Servers: []string{"http://" + s.Addr}, Token: token, Name: "runner", Labels: []string{"cpu"}, StateDir: filepath.Join(s.Dir, "runner"),
			Measure: measure, Log: log, Host: "host",
		})
	})
	return &server{bot: b, ledger: l, journal: j, jobs: work, stop: sync.OnceValue(func() error {
		cancel()
		web.Close()
		all.Wait()
		close(failures)
		work.Close()
		err := errors.Join(l.Close(), j.Close())
		for failure := range failures {
			err = errors.Join(err, failure)
		}
		return err
	})}, nil
}
