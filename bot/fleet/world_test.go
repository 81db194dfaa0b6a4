package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// hang bounds a test that hangs; no test waits for it to pass.
const hang = 3 * time.Minute

func next[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(hang):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// A world is a bot on a socket that can be started again.
type world struct {
	t        *testing.T
	options  journal.Options
	leaseFor time.Duration
	socket   string
	tokens   map[string]Credential
	poll     time.Duration
	results  *recorder

	journal *journal.Journal
	jobs    *jobs.Queue
	server  *Server
	http    *httptest.Server

	mu   sync.Mutex
	held int // requests that are open and hold a job
}

// counting counts requests that hold a job.
func (w *world) counting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/hold") {
			h.ServeHTTP(rw, r)
			return
		}
		w.count(1)
		defer w.count(-1)
		h.ServeHTTP(rw, r)
	})
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += n
}

// holding waits until so many requests hold a job.
func (w *world) holding(want int) {
	w.t.Helper()
	for ctx := w.ctx(); ; {
		w.mu.Lock()
		n := w.held
		w.mu.Unlock()
		if n == want {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("%d requests hold a job, want %d", n, want)
		}
		<-time.After(time.Millisecond)
	}
}

func newWorld(t *testing.T, leaseFor time.Duration) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "kg") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{
		t: t, options: journal.Options{Dir: t.TempDir()}, leaseFor: leaseFor, socket: filepath.Join(dir, "s"),
		tokens:  map[string]Credential{"ann": NewCredential("ann's", "l4", "cpu"), "bob": NewCredential("bob's", "l4")},
		poll:    20 * time.Second,
		results: newRecorder(),
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.t.Helper()
	var err error
	if w.journal, err = journal.Open(w.ctx(), w.options); err != nil {
		w.t.Fatal(err)
	}
	if w.jobs, err = jobs.Open(w.ctx(), w.journal, jobs.Options{LeaseFor: w.leaseFor}); err != nil {
		w.t.Fatal(err)
	}
	// A second a beat, which hurried makes 20 ms.
	w.server = &Server{Journal: w.journal, Jobs: w.jobs, Results: w.results, Tokens: w.tokens, LeaseFor: w.leaseFor, Heartbeat: time.Second, Poll: w.poll}
	if w.server.LeaseFor < w.server.Heartbeat {
		w.server.Heartbeat = w.server.LeaseFor
	}
	listener, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("operator's"))
	w.server.Operator = &sum
	mux := http.NewServeMux()
	mux.Handle(protocol.Prefix, w.counting(w.server.Handler()))
	mux.Handle(OperatorPrefix, w.server.OperatorHandler())
	w.http = httptest.NewUnstartedServer(mux)
	w.http.Listener.Close()
	w.http.Listener = listener
	w.http.Start()
}

// stop ends the bot as a crash would: nobody is told.
func (w *world) stop() {
	if w.http == nil {
		return
	}
	w.http.CloseClientConnections()
	w.http.Close()
	w.http = nil
	w.jobs.Close()
	if err := w.journal.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	w.t.Cleanup(cancel)
	return ctx
}

// enqueue puts a real bundle in line.
func (w *world) enqueue(label, id string) {
	w.t.Helper()
	content := exampleBundle(w.t)
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	if _, err := w.journal.Bundles.Put(w.ctx(), digest, bytes.NewReader(content)); err != nil {
		w.t.Fatal(err)
	}
	w.put(id, digest, label)
}

// put puts a job in line, whatever its bundle is.
func (w *world) put(id, bundle string, labels ...string) {
	w.t.Helper()
	if err := w.jobs.Enqueue(w.ctx(), jobs.Job{Job: scheduler.Job{ID: id, Labels: labels, Kernel: "twice"}, Bundle: bundle}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) unfinished() int {
	w.t.Helper()
	n := 0
	for _, q := range w.jobs.Backlogs() {
		n += q.Waiting + q.Leased
	}
	return n
}

// request is what a runner sends that is no agent.
func (w *world) request(token, method, path string, body io.Reader, header ...string) (status int, answer string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx(), method, "http://localhost"+protocol.Prefix+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	}}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (w *world) post(token, path string, message any, header ...string) (int, string) {
	w.t.Helper()
	data, err := json.Marshal(message)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.request(token, "POST", path, bytes.NewReader(data), header...)
}

// lease takes a job as a runner that never beats.
func (w *world) lease(name, label string, wantJob string, wantToken uint64) {
	w.t.Helper()
	status, text := w.post(name+"'s", "lease", protocol.LeaseRequest{Protocol: protocol.Version, Runner: name, Labels: []string{label}})
	var l protocol.LeaseResponse
	if status != http.StatusOK || json.Unmarshal([]byte(text), &l) != nil || l.Job != wantJob || l.Token != wantToken {
		w.t.Fatalf("asked for a job: %d %s; want %s with token %d", status, text, wantJob, wantToken)
	}
}

func resultOf(token uint64) protocol.Result {
	return protocol.Result{Token: token, Evidence: json.RawMessage(`{"schema":"x"}`), Log: "log"}
}

// hurried makes time pass fifty times as fast, but for the one try that a runner has to say goodbye: a busy machine needs it.
func hurried(d time.Duration) <-chan time.Time {
	if d == 5*time.Second {
		return time.After(d)
	}
	return time.After(d / 50)
}

type measure func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error)

// run starts an agent; stop ends it and returns what Run returned.
func (w *world) run(name string, m measure, change ...func(*agent.Config)) (stop func() error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx())
	c := agent.Config{
		Servers: []string{"unix://" + w.socket}, Token: name + "'s", Name: name, Labels: []string{"l4"}, StateDir: w.t.TempDir(),
		Version: "v1", Host: "box", Measure: m, After: hurried,
	}
	for _, f := range change {
		f(&c)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, c) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = next(w.t, ended, "the agent's end")
		})
		return err
	}
	w.t.Cleanup(func() { _ = stop() })
	return stop
}

func exampleBundle(t *testing.T) []byte {
	t.Helper()
	policy, err := policies.Shipped("cpu")
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	manifest := "version: 1\nname: twice\nmode: command\nshapes: {small: {N: 8}}\nvariants: {a: {}}\ndefault_variant: a\ncommand: {build: [make], bench: [./bench]}\n"
	if err := os.WriteFile(filepath.Join(base, "kernel.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	side := runners.Side{Dir: base, Variant: "a"}
	var b bytes.Buffer
	if _, err := bundle.Write(&b, runners.Job{
		Trusted: base, Candidate: side, Baseline: &side, Notes: []string{"noted"}, Provenance: gates.Provenance{Repository: "o/r"},
		Key: "k/twice", PolicyFile: "cpu.yaml", PolicyText: string(policy),
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An act is something that Results was told.
type act struct {
	job       string
	token     uint64
	by        Runner
	evidence  gates.Evidence
	log       string
	artifacts []string
	open      bool
}

// A recorder is Results that remembers.
type recorder struct {
	started, finished chan act
	built             chan act
	progress          chan runners.Event
	known             protocol.PriorEvidence
	begun             []string

	mu                    sync.Mutex
	onStarted, onFinished func(act) error // nil accepts
}

func newRecorder() *recorder {
	return &recorder{started: make(chan act, 100), finished: make(chan act, 100), built: make(chan act, 100), progress: make(chan runners.Event, 1)}
}

func (r *recorder) set(onStarted, onFinished func(act) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onStarted, r.onFinished = onStarted, onFinished
}

func (r *recorder) tell(c chan act, a act, on *func(act) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c <- a
	if *on == nil {
		return nil
	}
	return (*on)(a)
}

func (r *recorder) Started(_ context.Context, job string, token uint64, by Runner) error {
	return r.tell(r.started, act{job: job, token: token, by: by}, &r.onStarted)
}

func (r *recorder) Built(_ context.Context, job string, token uint64, by Runner, b Build) (bool, error) {
	a := act{job: job, token: token, by: by, log: string(b.Log), artifacts: b.Artifacts, open: b.Open, evidence: gates.Evidence{Fault: b.Fault}}
	if b.Fault == "" {
		if err := json.Unmarshal(b.Evidence, &a.evidence); err != nil {
			return false, errors.Join(errors.New("not evidence"), err)
		}
	}
	return !b.Open, r.tell(r.built, a, &r.onFinished)
}

func (r *recorder) Progress(_ string, p runners.Event) {
	select {
	case r.progress <- p:
	default:
	}
}

func (r *recorder) Earlier(_ context.Context, _ string, _ uint64, c runners.Code) (protocol.PriorEvidence, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Candidate == "gone" {
		return protocol.PriorEvidence{}, jobs.ErrCancelled
	}
	return r.known, nil
}

func (r *recorder) Begin(_ context.Context, job string, token uint64, c runners.Code) (runners.Attempt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = append(r.begun, fmt.Sprint(job, " ", token, " ", c.Candidate))
	if len(r.begun) == 1 {
		return runners.Attempt{}, errors.New("the disk is full")
	}
	return runners.Attempt{Number: len(r.begun), CodeNumber: 7}, nil
}

func (r *recorder) Lost(_ context.Context, job string, token uint64, why string) error {
	return r.tell(r.finished, act{job: job, token: token, evidence: gates.Evidence{Fault: why}}, &r.onFinished)
}

func (r *recorder) Finished(_ context.Context, job string, token uint64, by Runner, evidence, log []byte, artifacts []string) error {
	a := act{job: job, token: token, by: by, log: string(log), artifacts: artifacts}
	if err := json.Unmarshal(evidence, &a.evidence); err != nil {
		return errors.Join(errors.New("not evidence"), err)
	}
	return r.tell(r.finished, a, &r.onFinished)
}
