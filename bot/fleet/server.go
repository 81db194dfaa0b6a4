// Package fleet leases jobs to runners: it is the bot's side of the protocol, over the journal's
// queue. Package runners/work/agent is the other side. It transfers data and keeps the order of events;
// Results decides what a result means.
//
// The package reads a lease from the journal at every call and keeps none in memory, so a runner
// that measures does not notice a restart of the bot. A job whose runner stops responding goes to a
// different runner, three times in all; then Run ends it as a fault of its runners. A job that a
// runner gives back does not count. A runner whose connection breaks has a few heartbeats to
// respond, not the whole lease.
//
// A result goes to Results.Finished first, then the job is removed from the queue, then the runner
// gets the answer. After a crash in between, the runner delivers again, or a different runner gets
// the job. So Results.Finished may see a result twice, or a second one, and must be idempotent.
package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Results receives the events of jobs.
type Results interface {
	// Started is called before the runner gets the job. On jobs.ErrLeaseLost or jobs.ErrCancelled
	// the job is no longer needed: it is removed from the queue, and no runner gets it.
	Started(ctx context.Context, job string, token uint64, by Runner) error
	// Lost ends a job whose runners were lost, as Finished would. It is idempotent,
	// and its errors are those of Finished.
	Lost(ctx context.Context, job string, token uint64, why string) error
	// Progress is called for every heartbeat; it must not block.
	Progress(job string, p runners.Event)
	// Earlier returns what the bot knows about the machine code that the runner has built, for any
	// commit.
	Earlier(ctx context.Context, job string, token uint64, c runners.Code) (protocol.PriorEvidence, error)
	// Begin counts an attempt at the machine code, once for each lease.
	Begin(ctx context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error)
	// Built records the result of a runner that only compiles, and judges it if that is enough for
	// a verdict. Otherwise over is false, and the job goes to a runner that measures. It is
	// idempotent, and its errors are those of Finished.
	Built(ctx context.Context, job string, token uint64, by Runner, b Build) (over bool, err error)
	// Finished records the result of a runner. It is idempotent. With jobs.ErrLeaseLost or
	// jobs.ErrCancelled it refuses the result for good, and the job is removed from the queue;
	// after any other error the runner tries again. Artifacts are names in the journal's Artifacts.
	Finished(ctx context.Context, job string, token uint64, by Runner, evidence, log []byte, artifacts []string) error
}

// A Runner is the runner of a job. Its token proves the name. The rest is what the runner reported,
// and empty if it has reported nothing since the bot started.
type Runner struct {
	Name     string   `json:"name"`
	Host     string   `json:"host,omitempty"`
	Version  string   `json:"version,omitempty"`
	Outdated string   `json:"outdated,omitempty"` // how its version differs from the bot's, in words; "" if it does not
	Labels   []string `json:"labels"`
	Builds   bool     `json:"-"` // it compiles the job, and a different runner measures it
}

// Compiles reports whether the runner only compiles.
func (r Runner) Compiles() bool {
	return len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, func(l string) bool { return !runners.IsBuildLabel(l) })
}

// A Server leases the journal's jobs to runners. Set its fields before Handler is called, and do
// not change them later.
type Server struct {
	Journal *journal.Journal
	Jobs    *jobs.Queue
	Results Results
	Tokens  map[string]Credential // by runner's name
	// Operator is the hash of the operator token; nil refuses every operator.
	Operator *[sha256.Size]byte

	Version string // of the bot's program, to report runners with a different one; "" reports none

	LeaseFor  time.Duration // as in the journal's options; 30 s
	Heartbeat time.Duration // how often runners report; 2 s
	Poll      time.Duration // how long a runner waits for a job before it asks again; 25 s
	Log       *slog.Logger  // nil discards
	Now       func() time.Time

	once sync.Once
	mu   sync.Mutex
	seen map[string]*RunnerState // by name; only those in Tokens may connect

	duties map[string]Availability        // as last read
	polls  map[string]*context.CancelFunc // of runners that wait for a job
	faults map[string][]string            // consecutive faults: the kernels, by runner
	health map[string]*protocol.Health    // as last reported

	missing atomic.Uint64 // bundles of live jobs
}

// A RunnerState is what the bot knows about a runner since its start.
type RunnerState struct {
	Listed
	Progress *runners.Event     // of the job; nil before there is any
	Said     []runners.LogEntry // of the job, from its beginning

	lease
	artifacts map[string]bool // put for this job; at most protocol.MaxArtifacts
	over      lease           // the last job that ended: a heartbeat may arrive after the result that was sent later
	broken    bool            // the connection that holds the job broke, and no heartbeat has arrived since
}

// A lease is the right of one runner to one job.
type lease struct {
	job   string
	token uint64
}

// ArtifactBlob returns the name of an artifact in the journal's Artifacts.
func ArtifactBlob(job string, token uint64, name string) string {
	return fmt.Sprintf("%s/%d/%s", job, token, name)
}

// ArtifactJob returns the job in a name of ArtifactBlob.
func ArtifactJob(blob string) string {
	job, _, _ := strings.Cut(blob, "/")
	return job
}

// Handler serves protocol.Prefix.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.setDefaults) // several listeners may each ask for a handler
	mux := http.NewServeMux()
	serve := func(method, path string, h handler) { mux.Handle(method+" "+protocol.Prefix+path, s.guarded(h)) }
	serve("POST", "lease", s.lease)
	serve("GET", "jobs/{id}/bundle", s.bundle)
	serve("GET", "jobs/{id}/builds", s.builds)
	serve("POST", "jobs/{id}/beat", s.heartbeat)
	serve("GET", "jobs/{id}/hold", s.hold)
	serve("POST", "jobs/{id}/earlier", s.earlier)
	serve("POST", "jobs/{id}/begin", s.begin)
	serve("PUT", "jobs/{id}/artifacts/{name}", s.artifact)
	serve("POST", "jobs/{id}/result", s.result)
	serve("POST", "jobs/{id}/release", s.release)
	return mux
}

func (s *Server) setDefaults() {
	s.LeaseFor = cmp.Or(s.LeaseFor, 30*time.Second)
	s.Heartbeat = cmp.Or(s.Heartbeat, 2*time.Second)
	s.Poll = cmp.Or(s.Poll, 25*time.Second)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.seen, s.duties, s.polls = map[string]*RunnerState{}, map[string]Availability{}, map[string]*context.CancelFunc{}
	s.faults, s.health = map[string][]string{}, map[string]*protocol.Health{}
}

// Runners lists every runner that has a token, by name.
func (s *Server) Runners() []RunnerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []RunnerState
	heard := map[string]bool{} // runners with new events
	for name, state := range s.seen {
		all = append(all, *state)
		heard[hostOf(name)] = true
	}
	for name, c := range s.Tokens {
		if !heard[name] {
			all = append(all, RunnerState{Listed: Listed{Runner: Runner{Name: name, Labels: c.Labels}}})
		}
	}
	for i, r := range all {
		all[i].Availability, all[i].Health = s.duties[r.Name].under(s.duties[hostOf(r.Name)]), s.health[r.Name]
	}
	slices.SortFunc(all, func(a, b RunnerState) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// updateRunner changes the state of a runner that has just sent a request, and returns the runner.
func (s *Server) updateRunner(name string, change func(*RunnerState)) Runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.seen[name]
	if state == nil {
		credential, _ := s.credential(name)
		state = &RunnerState{Listed: Listed{Runner: Runner{Name: name, Labels: credential.Labels}}}
		s.seen[name] = state
	}
	state.LastSeen = s.Now()
	change(state)
	return state.Runner
}

// at records that the runner works on this lease. After a restart, the bot learns it this way.
func (s *Server) at(l *jobs.Lease) func(*RunnerState) {
	return func(state *RunnerState) {
		now := lease{l.ID, l.Token}
		if state.lease == now || state.over == now {
			return
		}
		*state = RunnerState{
			Listed: Listed{Runner: state.Runner, Job: l.ID, Kernel: l.Kernel, Since: s.Now(), LastSeen: state.LastSeen},
			lease:  now, artifacts: map[string]bool{}, over: state.over,
		}
	}
}

// idle records that the runner no longer works on that job.
func idle(job string, token uint64) func(*RunnerState) {
	return func(state *RunnerState) {
		over := lease{job, token}
		if state.lease == over {
			*state = RunnerState{Listed: Listed{Runner: state.Runner, LastSeen: state.LastSeen}}
		}
		state.over = over
	}
}
