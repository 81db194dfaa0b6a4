package submission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// An election has one of several bots lead.
type election struct {
	mu     sync.Mutex
	leader *seat
	term   uint64
	lost   context.CancelFunc
	led    context.Context
}

// lead makes a bot the leader.
func (e *election) lead(s *seat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost != nil {
		e.lost()
	}
	e.leader, e.term = s, e.term+1
	e.led, e.lost = context.WithCancel(context.Background())
}

// A seat is the journal of one of the bots. It may lose the answers to writes, or refuse them as the journal of a process that
// was killed.
type seat struct {
	*journal.Journal
	in   *election
	lose string // kind of the event whose answer is lost
	left int    // writes before the process is killed; -1 is never
}

func (s *seat) Term() (uint64, error) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.leader != s {
		return 0, journal.ErrNotLeading
	}
	return s.in.term, nil
}

func (s *seat) Leads() bool {
	_, err := s.Term()
	return err == nil
}

func (s *seat) WhileLeading(ctx context.Context) (context.Context, func(), error) {
	if _, err := s.Term(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.in.led, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

func (s *seat) Append(ctx context.Context, name string, after uint64, kind string, event any) (uint64, error) {
	if _, err := s.Term(); err != nil {
		return 0, err
	}
	if s.left == 0 {
		return 0, errors.New("the process was killed")
	}
	s.left--
	seq, err := s.Journal.Append(ctx, name, after, kind, event)
	if s.lose == kind {
		s.lose = ""
		return 0, errors.New("the answer is lost")
	}
	return seq, err
}

// A hub is a queue, a store of blobs and a planner for two bots. Sources with the word BROKEN are decided without a runner.
type hub struct {
	mu     sync.Mutex
	queued map[string]bool
	blobs  map[string]string
}

func (h *hub) Enqueue(_ context.Context, job jobs.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queued[job.ID] = true
	return nil
}

func (h *hub) Cancel(context.Context, string) (bool, error)        { return false, nil }
func (h *hub) Position(string) (scheduler.Position, bool)          { return scheduler.Position{}, false }
func (h *hub) Tip(context.Context, string, string) (string, error) { return "tip", nil }

func (h *hub) Kernels(context.Context, planner.Branch) ([]string, error) {
	return []string{"kernels/scale"}, nil
}

func (h *hub) Describe(context.Context, planner.Branch, string) (plan.Described, error) {
	return plan.Described{Job: runners.Job{Manifest: scale, Key: "kernels/scale", Policy: &policy.Policy{}}, Commit: "tip"}, nil
}

var scale = &manifest.Manifest{Name: "scale", Sources: []string{"scale.c"}}

func (h *hub) Draft(_ context.Context, _ planner.Branch, d planner.Draft) (planner.Drafted, error) {
	out := planner.Drafted{Head: "head", Base: "tip", Bundle: "bundle", Labels: []string{"cpu"}}
	if strings.Contains(d.Files["scale.c"], "BROKEN") {
		p := &policy.Policy{Version: 1, Rules: []policy.Rule{{Name: "default"}}}
		out.Bundle, out.Job = "", runners.Job{Manifest: scale, Policy: p, Broken: []gates.Diagnostic{{File: "kernel.yaml", Line: 1, Message: "it is broken"}}}
		out.Decided = out.Job.BrokenEvidence()
	}
	return out, nil
}

func (h *hub) Pack(_ context.Context, name string, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs[name] = string(data)
	return nil
}

func (h *hub) Read(_ context.Context, name string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok := h.blobs[name]
	if !ok {
		return nil, journal.ErrNotFound
	}
	return []byte(text), nil
}

func (h *hub) Get(ctx context.Context, name string) (io.ReadCloser, string, error) {
	text, err := h.Read(ctx, name)
	return io.NopCloser(strings.NewReader(string(text))), name, err
}

// A pair is two bots on one journal.
type pair struct {
	*testing.T
	election
	hub
	a, b   *Hosted
	sa, sb *seat
	listed bool // the repositories
}

func twoBots(t *testing.T) *pair {
	t.Helper()
	opened, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	p := &pair{T: t, hub: hub{queued: map[string]bool{}, blobs: map[string]string{}}, listed: true}
	bot := func() (*Hosted, *seat) {
		s := &seat{Journal: opened, in: &p.election, left: -1}
		return NewHosted(HostedOptions{
			Journal: s, Queue: &p.hub, Bundles: &p.hub, Artifacts: &p.hub, Planner: &p.hub,
			Repositories:  func() (map[int64]string, bool) { return map[int64]string{1: "o/r"}, p.listed },
			DefaultBranch: func(context.Context, string) (string, error) { return "main", nil },
			Owners:        func() []string { return []string{"ann"} },
			May:           func(owner, repo string) bool { return owner == "ann" && repo == "o/r" },
			Now:           func() time.Time { return noon },
		}), s
	}
	p.a, p.sa = bot()
	p.b, p.sb = bot()
	p.lead(p.sa)
	return p
}

// submit is Ann's.
func (p *pair) submit(h *Hosted, intent result.Intent, source string) (Status, error) {
	return h.Submit(p.Context(), "ann", Asked{Kernel: "scale", Files: map[string]string{"scale.c": source}}, intent, "")
}

func (p *pair) must(h *Hosted, intent result.Intent, source string) Status {
	p.Helper()
	st, err := p.submit(h, intent, source)
	if err != nil {
		p.Fatal(err)
	}
	return st
}

// ends has a bot end a submission, as if its runner had failed.
func (p *pair) ends(h *Hosted, handle string) {
	p.Helper()
	one, err := h.unfinished(p.Context(), subject("ann", handle))
	if err == nil {
		err = h.finish(p.Context(), one, "gpu1", 1, outcome{err: errors.New("the device fell off the bus")})
	}
	if err != nil {
		p.Fatal(err)
	}
}

// What a bot knew in an earlier term is forgotten: the agent was told more by the other one meanwhile.
func TestNothingOfAnEarlierTerm(t *testing.T) {
	p := twoBots(t)
	st := p.must(p.a, result.Claim, "// speed 2\n")
	p.lead(p.sb)
	p.ends(p.b, st.Handle)
	if got, err := p.b.Status(t.Context(), "ann", st.Handle); err != nil || got.State != Done {
		t.Fatalf("at the bot that ended it, it is %+v, %v", got, err)
	}
	for name, ask := range map[string]func(*Hosted) error{
		"status":  func(h *Hosted) error { _, err := h.Status(t.Context(), "ann", st.Handle); return err },
		"verdict": func(h *Hosted) error { _, err := h.Verdict(t.Context(), "ann", st.Handle); return err },
		"history": func(h *Hosted) error { _, err := h.History(t.Context(), "ann", ""); return err },
		"submit":  func(h *Hosted) error { _, err := p.submit(h, result.Claim, "// speed 2\n"); return err },
	} {
		if err := ask(p.a); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%s at the bot that does not lead: %v", name, err)
		}
	}
	p.lead(p.sa)
	if got, err := p.a.Status(t.Context(), "ann", st.Handle); err != nil || got.State != Done {
		t.Errorf("the first bot leads again, and says %+v, %v", got, err)
	}
	if again := p.must(p.a, result.Claim, "// speed 2\n"); again.Handle != st.Handle || !again.Repeated || again.State != Done {
		t.Errorf("the same submission is %+v, and was %+v", again, st)
	}
}

// A runner's claim is compared with claims that ended while another bot led: the same code has no second chance.
func TestEarlierClaimOfAnotherTerm(t *testing.T) {
	p := twoBots(t)
	first := p.must(p.a, result.Claim, "// speed 2\n")
	p.lead(p.sb)
	p.ends(p.b, first.Handle)
	p.must(p.b, result.Claim, "// speed 2\n/* again */")
	p.lead(p.sa)
	second := newHandle("ann", Asked{Kernel: "scale", Files: map[string]string{"scale.c": "// speed 2\n/* again */"}}.digest(result.Claim))
	if _, err := p.a.unfinished(t.Context(), subject("ann", second)); err != nil {
		t.Fatal(err)
	}
	if done, err := p.a.whole(t.Context(), "ann", first.Handle); err != nil || done.State != Done {
		t.Errorf("the earlier claim is %+v, %v", done, err)
	}
}

// An agent that waits is told when the bot does not lead any more: what the bot knows is old by then.
func TestWaitEndsWithTheLead(t *testing.T) {
	p := twoBots(t)
	st := p.must(p.a, result.Probe, "// speed 2\n")
	waits, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := p.a.Wait(t.Context(), "ann", st.Handle, func(Status) { waits <- struct{}{} })
		ended <- err
	}()
	<-waits
	p.lead(p.sb)
	if err := <-ended; !errors.Is(err, ErrNotLeading) {
		t.Errorf("it ends as %v", err)
	}
}

// A submission whose write has no answer was perhaps written. The agent submits it again by its key, and it is measured.
func TestSubmissionWithoutAnAnswer(t *testing.T) {
	for _, kind := range []string{listedKind, submittedKind} {
		t.Run(kind, func(t *testing.T) {
			p := twoBots(t)
			p.must(p.a, result.Probe, "// speed 1\n")
			p.sa.lose = kind
			if st, err := p.submit(p.a, result.Claim, "// speed 2\n"); err == nil || !strings.Contains(err.Error(), "submit it again with the same idempotency_key") {
				t.Fatalf("a lost answer gives %+v, %v", st, err)
			}
			st := p.must(p.a, result.Claim, "// speed 2\n")
			p.a.restart(t.Context())
			if !p.queued[subject("ann", st.Handle)] {
				t.Error("the submission has no job")
			}
			if h, err := p.a.History(t.Context(), "ann", ""); err != nil || len(h.Tried) != 2 {
				t.Errorf("the history has %d submissions: %v", len(h.Tried), err)
			}
		})
	}
}

// A bot that is killed between any two writes of a submission leaves nothing that the next one does not end, and loses no
// verdict that needs no runner.
func TestBotKilledWhileItSubmits(t *testing.T) {
	for _, source := range []string{"// speed 2\n", "// BROKEN\n"} {
		for writes := range 4 {
			t.Run(fmt.Sprint(strings.TrimSpace(source[3:]), " after ", writes), func(t *testing.T) {
				p := twoBots(t)
				p.sa.left = writes
				_, _ = p.submit(p.a, result.Claim, source) // nobody hears the answer of a killed process
				p.lead(p.sb)
				p.b.restart(t.Context())
				st := p.must(p.b, result.Claim, source)
				if !strings.Contains(source, "BROKEN") {
					if st.State != Queued || !p.queued[subject("ann", st.Handle)] {
						t.Errorf("it is %+v, and has no job", st)
					}
					return
				}
				got, err := p.b.Verdict(t.Context(), "ann", st.Handle)
				if err != nil || got.Outcome != gates.Defer || got.Reason != gates.ReasonBuild {
					t.Errorf("the verdict is %+v, %v", got, err)
				}
			})
		}
	}
}

// A bot that has just begun to lead refuses nobody for a repository that it has not listed yet.
func TestRepositoriesAreNotListedYet(t *testing.T) {
	p := twoBots(t)
	p.listed = false
	if _, _, err := p.a.find("ann", "o/r:scale"); err != nil {
		t.Errorf("a repository that is listed: %v", err)
	}
	for _, kernel := range []string{"", "scale", "o/later:scale"} {
		if _, err := p.a.Describe(t.Context(), "ann", kernel); !errors.Is(err, ErrNotListed) {
			t.Errorf("describing %q: %v", kernel, err)
		}
	}
	p.listed = true
	if _, err := p.a.Describe(t.Context(), "ann", "o/later:scale"); err == nil || !strings.Contains(err.Error(), "this token is for no repository") {
		t.Errorf("describing a repository that is not there: %v", err)
	}
}

func TestMeasuredBy(t *testing.T) {
	const anybody = "A runner of the bot measures it."
	for want, d := range map[string]policy.Devices{
		anybody: {Prefer: []string{"l4", "h200"}},
		"A runner with the label h200 measures it. A pull request is measured on h200, l4.": {Block: []string{"h200"}, Inform: []string{"l4"}},
	} {
		if got := measuredBy(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
}
