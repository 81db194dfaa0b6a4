// Package fleet hands jobs to runners: the bot's side of the protocol, over the
// journal's queue, of which runners/agent is the other. It moves bytes and keeps the
// order of events; what a result means is for Results to say.
//
// A lease is looked up in the journal at every call, and never remembered here:
// a runner that is measuring does not notice that the bot was started again. A job
// whose runner is not heard any more goes to another, three times in all; then Run
// ends it as a fault of its runners. A runner that gives its job back is no loss. One
// whose connection breaks has a few beats to be heard again, not the whole lease.
//
// A result goes to Results.Finished first, then the job is taken off the queue,
// then the runner is told. After a crash in between the runner delivers again,
// or another one gets the job: Results.Finished sees a result twice, or a second
// one, and must not mind.
package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// Results is told what becomes of jobs.
type Results interface {
	// Started comes before the runner gets the job. With jobs.ErrLeaseLost or
	// jobs.ErrCancelled the job is of no use any more: it is taken off the queue
	// and nobody gets it.
	Started(ctx context.Context, job string, token uint64, by Runner) error
	// Lost ends a job whose runners were lost, as Finished would. It is idempotent,
	// and its errors are those of Finished.
	Lost(ctx context.Context, job string, token uint64, why string) error
	// Progress comes with every beat; it must not block.
	Progress(job string, p runners.Event)
	// Earlier is what is known of the machine code that the runner has built, for
	// whatever commit that was.
	Earlier(ctx context.Context, job string, token uint64, c runners.Code) (protocol.PriorEvidence, error)
	// Begin counts an attempt at the machine code, once for each lease.
	Begin(ctx context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error)
	// Built writes down what a runner has compiled that measures nothing, and judges it where that is enough for a verdict. Otherwise,
	// and always where it is open, the job goes on to runners that measure, and over is false. It is idempotent, and its errors are
	// those of Finished.
	Built(ctx context.Context, job string, token uint64, by Runner, b Build) (over bool, err error)
	// Finished writes down what the runner brought. It is idempotent. With
	// jobs.ErrLeaseLost or jobs.ErrCancelled it refuses the result for good,
	// and the job is taken off the queue; after any other error the runner tries
	// again. Artifacts are names in the journal's Artifacts.
	Finished(ctx context.Context, job string, token uint64, by Runner, evidence, log []byte, artifacts []string) error
}

// A Runner is who works on a job. The name is proven by its token; the rest is
// what it said of itself, and empty if it has not spoken since the bot started.
type Runner struct {
	Name     string   `json:"name"`
	Host     string   `json:"host,omitempty"`
	Version  string   `json:"version,omitempty"`
	Outdated string   `json:"outdated,omitempty"` // how its version is another than the bot's, in words; "" where it is not
	Labels   []string `json:"labels"`
	Builds   bool     `json:"-"` // it compiles the job, and another will measure it
}

// Compiles tells whether it is one that compiles and measures nothing.
func (r Runner) Compiles() bool {
	return len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, func(l string) bool { return !runners.IsBuildLabel(l) })
}

// A Server hands out the journal's jobs. Its fields are set before Handler is
// called, and not changed after.
type Server struct {
	Journal *journal.Journal
	Jobs    *jobs.Queue
	Results Results
	Tokens  map[string]Credential // by runner's name
	// Operator is the hash of the token with which runners are drained and returned; nil lets nobody.
	Operator *[sha256.Size]byte

	Version string // of the bot's program, for runners that have another; "" says nothing of them

	LeaseFor  time.Duration // as in the journal's options; 30 s
	Heartbeat time.Duration // how often runners report; 2 s
	Poll      time.Duration // how long a runner waits for a job before it asks again; 25 s
	Log       *slog.Logger  // nil discards
	Now       func() time.Time

	once sync.Once
	mu   sync.Mutex
	seen map[string]*RunnerState // by name; those in Tokens alone are let in

	duties map[string]Availability        // as they were read last
	polls  map[string]*context.CancelFunc // of those who wait for a job
	faults map[string][]string            // in a row: the kernels, by runner
	health map[string]*protocol.Health    // as they said last

	missing atomic.Uint64 // bundles of live jobs
}

// A RunnerState is what is known of a runner since the bot was started.
type RunnerState struct {
	Listed
	Progress *runners.Event     // of the job; nil before there is any
	Said     []runners.LogEntry // of the job, from its beginning

	lease
	artifacts map[string]bool // put for this job; at most protocol.MaxArtifacts
	over      lease           // the last one that ended: a beat may arrive after the result that it set out before
	broken    bool            // the connection that holds the job broke, and no heartbeat has arrived since
}

// A lease is one runner's hold on one job.
type lease struct {
	job   string
	token uint64
}

// ArtifactBlob is an artifact's name in the journal's Artifacts.
func ArtifactBlob(job string, token uint64, name string) string {
	return fmt.Sprintf("%s/%d/%s", job, token, name)
}

// Handler serves protocol.Prefix.
func (s *Server) Handler() http.Handler {
	s.once.Do(s.setDefaults) // several listeners may want a handler
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
	heard := map[string]bool{} // of whom there is news
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

// updateRunner changes what is known of a runner that was just heard of, and returns who
// it is.
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

// at says that the runner works on this lease. After a restart of the bot, that
// is how it becomes known again.
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

// idle says that the runner does not work on that job any more.
func idle(job string, token uint64) func(*RunnerState) {
	return func(state *RunnerState) {
		over := lease{job, token}
		if state.lease == over {
			*state = RunnerState{Listed: Listed{Runner: state.Runner, LastSeen: state.LastSeen}}
		}
		state.over = over
	}
}
