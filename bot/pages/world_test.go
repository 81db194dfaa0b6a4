package pages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A world is a real ledger over made-up events, with blobs and runners.
type world struct {
	testing.TB
	*ledger.Ledger
	events []journal.Event

	mu      sync.Mutex
	blobs   map[string][]byte
	runners []pages.Runner
	places  map[string]scheduler.Position
	said    map[string][]runners.LogEntry

	actor pages.Actor // for its sites
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, blobs: map[string][]byte{}, said: map[string][]runners.LogEntry{}}
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
	w.no(err)
	w.Ledger = l
	t.Cleanup(func() { l.Close() })
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// write appends an event to the journal.
func (w *world) write(s *change.State, e change.Event) {
	w.Helper()
	seq := uint64(len(w.events) + 1)
	at := epoch.Add(time.Duration(seq) * time.Second)
	data, err := json.Marshal(e)
	w.no(err)
	w.events = append(w.events, journal.Event{Seq: seq, Run: s.ID.String(), Kind: change.KindOf(e), At: at, Data: data})
	s.Apply(seq, at, e)
}

// tell appends an event of a repository to the journal, and waits for the ledger.
func (w *world) tell(e repos.Event) {
	w.Helper()
	data, err := json.Marshal(e)
	w.no(err)
	seq := uint64(len(w.events) + 1)
	w.events = append(w.events, journal.Event{Seq: seq, Run: repos.Subject(1), Kind: repos.KindOf(e), At: epoch, Data: data})
	w.settle()
}

// Replay and Follow implement the journal.
func (w *world) Replay(_ context.Context, after uint64, apply func(journal.Event) error) (uint64, error) {
	for after < uint64(len(w.events)) {
		if err := apply(w.events[after]); err != nil {
			return after, err
		}
		after++
	}
	return after, nil
}

func (w *world) follow(ctx context.Context, after uint64, apply func(journal.Event) error) error {
	if _, err := w.Replay(ctx, after, apply); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// replayed is the world as a journal. The type is needed because the ledger has methods with the
// same names.
type replayed struct{ *world }

func (r replayed) Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error {
	return r.follow(ctx, after, apply)
}

// settle waits until the ledger has applied the last event.
func (w *world) settle() {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Ledger.Follow(ctx, replayed{w}) }()
	w.no(w.Ledger.WaitFor(w.Context(), uint64(len(w.events))))
	stop()
	w.no(<-ended)
}

// Run and the methods below implement pages.Source.
func (w *world) Run(ctx context.Context, job string) (ledger.RunRow, error) {
	r, err := w.Ledger.Run(ctx, job)
	return r, missing(err)
}

func (w *world) Change(ctx context.Context, id change.ID) (*change.State, error) {
	s, err := w.Ledger.Change(ctx, id)
	return s, missing(err)
}

func missing(err error) error {
	if ledger.IsNotFound(err) {
		return pages.ErrNotFound
	}
	return err
}

func (w *world) Blob(_ context.Context, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if data, ok := w.blobs[name]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("no blob %s", name)
}

func (w *world) Runners() []pages.Runner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]pages.Runner{}, w.runners...)
}

func (w *world) Places() map[string]scheduler.Position { return w.places }

func (w *world) Said(job string) []runners.LogEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[job]
}

// says adds reports to the log of a job.
func (w *world) says(job string, e ...runners.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range e {
		w.said[job] = append(w.said[job], runners.LogEntry{At: epoch.Add(time.Duration(len(w.said[job])) * time.Second), Event: one})
	}
}

func (w *world) busy(job string, p *runners.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runners = []pages.Runner{{Name: "gpu1", Labels: []string{"h200"}, Here: true, Job: job, Progress: p, Health: health(), Tests: []protocol.SelfTest{
		{At: epoch.Add(-24 * time.Hour), Passed: true, Kernel: "known", Difference: -0.0002, Low: -0.001, High: 0.0006, Micros: 7.01},
		{At: epoch, Passed: true, Kernel: "known", Difference: 0.0004, Low: -0.0008, High: 0.0016, Micros: 7.03, Usual: 7.02},
	}}, {Name: "gpu2", Labels: []string{"l4"}, Here: true, Off: pages.Quarantined, Tests: []protocol.SelfTest{
		{At: epoch, Passed: false, Kernel: "known", Difference: 0.04, Low: 0.03, High: 0.05, Why: "two copies of one kernel differ by 4 %"},
	}}, {Name: "gpu3", Seen: epoch}}
}

// health describes a GPU that is warm and has reported faults.
func health() *protocol.Health {
	errors := uint64(2)
	return &protocol.Health{At: epoch, GPU: &protocol.GPU{
		UUID: "GPU-its-own-number", Name: "NVIDIA Hopper", Driver: "580.1", SMClock: 1755, MaxSMClock: 1980, MemoryClock: 3201, Celsius: 61, Watts: 312.4,
		Throttled: []string{"power cap"}, ECCErrors: &errors, Xids: []protocol.Xid{{At: epoch, Text: "Xid 13 of the process secretive"}},
	}}
}

func (w *world) blob(name string, value any) string {
	w.Helper()
	data, err := json.Marshal(value)
	w.no(err)
	w.blobs[name] = data
	return name
}

const policyText = `version: 1
devices: [gpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, guard: {shapes: [small], speedup: ">= -2%"}}
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: none}}
  - name: default
`

// open starts a change with one planned kernel.
func (w *world) open(id change.ID, repo, title, kernel string) *change.State {
	w.Helper()
	head := fmt.Sprintf("%040x", len(w.events)+1)
	if id.SHA != "" {
		head = id.SHA
	}
	s := change.New(id)
	f := change.Facts{Repo: repo, Title: title, Author: "ann", Open: true, Head: head, Base: "main", Labels: []string{"perf"}}
	w.write(s, change.Seen{Facts: f})
	w.write(s, change.Planned{Plan: change.Plan{
		Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml", Policy: policyText,
		Kernels: []change.Kernel{{KernelSpec: change.KernelSpec{Name: kernel, Folder: "kernels/" + kernel, Rule: "default", Labels: []string{"h200"}, Bundle: "b"}}},
	}})
	return s
}

// finish ends the change's run with evidence.
func (w *world) finish(s *change.State, e *gates.Evidence, v *gates.Verdict) string {
	w.Helper()
	evidence, err := json.Marshal(e)
	w.no(err)
	verdict, err := json.Marshal(v)
	w.no(err)
	return w.finishAs(s, record{evidence, verdict, change.NewResult(v)})
}

func (w *world) finishAs(s *change.State, r record) string {
	w.Helper()
	run := s.Runs[0]
	w.write(s, change.Started{Job: run.Job, Token: 1, Runner: "gpu1"})
	r.result.Evidence, r.result.Verdict = "evidence-"+run.Job, "verdict-"+run.Job
	w.blobs[r.result.Evidence], w.blobs[r.result.Verdict] = r.evidence, r.verdict
	w.write(s, change.Finished{Job: run.Job, Token: 1, Runner: "gpu1", Result: r.result})
	return run.Job
}

func (w *world) ask(s *change.State, text string, e change.Effect) {
	id := fmt.Sprint("comment-", len(s.Commands)+1)
	w.write(s, change.Asked{ID: id, By: "carol", Request: grammar.Read(text), Head: s.Facts.Head})
	w.write(s, change.Answered{ID: id, OK: true, Answer: change.Answer{Kind: change.AnswerCancelled}, Effect: e})
}

// A record is evidence from a real GPU, with the verdict of the policy shipped for it, as they are
// stored.
type record struct {
	evidence, verdict []byte
	result            change.Result
}

// records caches records for all tests, by the name of their evidence.
var records sync.Map

func recordOf(t testing.TB, name string) record {
	t.Helper()
	if r, ok := records.Load(name); ok {
		return r.(record)
	}
	file := filepath.Join("..", "..", "kernels", "sdpa_fp8", "evidence", name+".json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(file, data)
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("h200.yaml", shipped)
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(policy, "h200.yaml", e)
	r := record{result: change.NewResult(v)}
	if r.evidence, err = json.Marshal(e); err != nil {
		t.Fatal(err)
	}
	if r.verdict, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	records.Store(name, r)
	return r
}

// recorded returns a copy of a record for a test that changes it.
func recorded(t testing.TB, name string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	r, e, v := recordOf(t, name), &gates.Evidence{}, &gates.Verdict{}
	if err := errors.Join(json.Unmarshal(r.evidence, e), json.Unmarshal(r.verdict, v)); err != nil {
		t.Fatal(err)
	}
	return e, v
}

// site serves the world's pages.
func (w *world) site(access pages.Access) *httptest.Server {
	w.Helper()
	done := make(chan struct{})
	s := &pages.Server{Source: w, Access: access, Version: "kernelgate test", URL: "https://gate.example/", Web: "https://github.example", Now: func() time.Time { return epoch.Add(time.Hour) }, Done: done, Act: w.actor}
	h, err := s.Handler()
	w.no(err)
	server := httptest.NewServer(h)
	w.Cleanup(func() { close(done); server.Close() })
	return server
}

func (w *world) get(url string, header ...string) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
	w.no(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	w.no(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	w.no(err)
	return answer, string(body)
}

// measuring returns what a runner reports before a round.
func measuring(round int) runners.Event {
	e := runners.Event{Gate: gates.GatePerformance, Text: "measuring", Done: round, Total: 20, Unit: "rounds"}
	if round > 0 {
		half := 0.08 / float64(round)
		lower, upper, goal := 0.16-half, 0.16+half, 0.1
		e.SoFar = &gates.SoFar{Shape: "mission", Speedup: &gates.Estimate{Value: 0.16, Lower: &lower, Upper: &upper}, Goal: &goal}
		e.Detail, e.Left = e.SoFar.String(), 30
	}
	return e
}

// story creates a small history: a kernel on main, a pull request with two attempts, a command and
// an override, one running and one waiting run.
func story(w *world) (jobs map[string]string) {
	w.Helper()
	jobs = map[string]string{}
	for i, name := range []string{"stage1", "stage2", "stage3b"} {
		s := w.open(change.ID{Kind: change.Push, Repo: 1, SHA: strings.Repeat(fmt.Sprint(i+1), 40)}, "org/kernels", "", "sdpa")
		jobs[name] = w.finishAs(s, recordOf(w, name))
	}
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 7}, "org/kernels", "FP8 everywhere", "sdpa")
	jobs["first"] = w.finishAs(s, recordOf(w, "stage6_fp8"))
	w.ask(s, "/rebench", change.Effect{Rebench: []change.Rerun{{Folder: "kernels/sdpa", Bundle: "b2"}}})
	jobs["broken"] = w.finishAs(s, recordOf(w, "broken"))
	w.ask(s, "/override it is late", change.Effect{Override: &change.Override{For: s.PostedScope(), By: "carol", Reason: "it is late", At: "2026-03-01T00:00:00Z"}})
	running := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 8}, "org/kernels", "Under way", "sdpa")
	w.write(running, change.Started{Job: running.Runs[0].Job, Token: 1, Runner: "gpu1"})
	jobs["running"] = running.Runs[0].Job
	w.says(jobs["running"], runners.Event{Gate: gates.GateBuild, Text: "compiling the baseline"}, runners.Event{Gate: gates.GateCorrectness, Text: "comparing 36 cases with the reference"})
	for round := range 4 {
		w.says(jobs["running"], measuring(round))
	}
	now := measuring(3)
	now.Text += " mission"
	w.busy(jobs["running"], &now)
	waits := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 9}, "org/kernels", "Waits", "sdpa")
	jobs["queued"] = waits.Runs[0].Job
	w.places = map[string]scheduler.Position{jobs["queued"]: {Ahead: 0, Wait: 40 * time.Second, Took: 4 * time.Minute}}
	w.settle()
	return jobs
}
