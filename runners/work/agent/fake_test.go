package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/protocol"
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

// hurried makes time pass a hundred times as fast.
func hurried(d time.Duration) <-chan time.Time { return time.After(d / 100) }

// A fake is a server that hands out jobs and answers as the test sets it.
type fake struct {
	*httptest.Server
	t      *testing.T
	bundle []byte

	jobs     chan protocol.LeaseResponse
	asked    chan protocol.LeaseRequest
	beats    chan protocol.Heartbeat
	results  chan protocol.Result
	released chan string

	mu        sync.Mutex
	status    map[string]int // status to answer instead, by the path's last part
	artifacts map[string]string
}

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, bundle: exampleBundle(t), jobs: make(chan protocol.LeaseResponse, 10), asked: make(chan protocol.LeaseRequest, 1000), beats: make(chan protocol.Heartbeat, 1000),
		results: make(chan protocol.Result, 1000), released: make(chan string, 10), status: map[string]int{}, artifacts: map[string]string{},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// answer sets the server's status from now on; 0 means the normal answer.
func (f *fake) answer(what string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status[what] = status
}

func (f *fake) hand(id string, token uint64) {
	sum := sha256.Sum256(f.bundle)
	f.jobs <- protocol.LeaseResponse{Job: id, Token: token, Kernel: "twice", Digest: hex.EncodeToString(sum[:]), Lease: 30, Heartbeat: 2}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.take(w, r) {
		select { // a long poll, without the lock
		case l := <-f.jobs:
			_ = json.NewEncoder(w).Encode(l)
		case <-r.Context().Done():
		}
	}
}

// take answers everything except the wait for a job.
func (f *fake) take(w http.ResponseWriter, r *http.Request) (wait bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, protocol.Prefix), "/")
	what := parts[len(parts)-1]
	if r.Method == http.MethodPut {
		what = "artifact"
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		f.t.Errorf("%s came with %q", r.URL, r.Header.Get("Authorization"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(body)
		if errors.Is(err, gzip.ErrHeader) {
			f.t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			return false // the runner went away
		}
		body = zip
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return false // the runner went away
	}
	read := func(into any) {
		if err := json.Unmarshal(data, into); err != nil {
			f.t.Errorf("%s: %v", what, err)
		}
	}
	switch what {
	case "beat":
		var b protocol.Heartbeat
		read(&b)
		f.beats <- b
	case "result":
		var res protocol.Result
		read(&res)
		f.results <- res
	case "release":
		f.released <- parts[1]
	case "artifact":
		f.artifacts[parts[len(parts)-1]+r.URL.RawQuery] = string(data)
	case "lease":
		var ask protocol.LeaseRequest
		read(&ask)
		f.asked <- ask
	}
	if status := f.status[what]; status != 0 {
		if status != http.StatusNoContent {
			http.Error(w, "no "+what, status)
			return false
		}
		w.WriteHeader(status)
		return false
	}
	if what == "bundle" {
		_, _ = w.Write(f.bundle)
	}
	return what == "lease"
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
	var b bytes.Buffer
	if _, err := bundle.Write(&b, runners.Job{
		Trusted: base, Candidate: runners.Side{Dir: base, Variant: "a"}, Notes: []string{"noted"},
		Key: "k/twice", PolicyFile: "cpu.yaml", PolicyText: string(policy),
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (f *fake) config() Config {
	return Config{
		Servers: []string{f.URL}, Token: "secret", Name: "ann", Labels: []string{"l4"}, StateDir: f.t.TempDir(), Version: "v1", Host: "box",
		Measure: quick, After: hurried, Patience: hang,
	}
}

// run starts an agent; stop ends it and returns the result of Run. Each agent has its own address of the server, which ends with
// the agent: a request that the server reads late would take the next agent's job.
func (f *fake) run(c Config) (stop func() error, ended <-chan error) {
	own := httptest.NewServer(f)
	c.Servers = slices.Clone(c.Servers)
	for i, server := range c.Servers {
		if server == f.URL {
			c.Servers[i] = own.URL
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	end := make(chan error, 1)
	go func() { end <- Run(ctx, c) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = next(f.t, end, "the agent's end")
			own.CloseClientConnections()
			own.Close()
		})
		return err
	}
	f.t.Cleanup(own.Close)
	f.t.Cleanup(own.CloseClientConnections)
	f.t.Cleanup(cancel)
	return stop, end
}

func found(job runners.Job) *gates.Evidence {
	return &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: job.Manifest.Name, Notes: job.Notes}
}

func quick(_ context.Context, job runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
	return runners.Measured{Evidence: found(job), BuildLog: "log"}, nil
}

func (f *fake) result() (protocol.Result, gates.Evidence) {
	f.t.Helper()
	r := next(f.t, f.results, "a result")
	e, err := gates.ParseEvidence("result", r.Evidence)
	if err != nil {
		f.t.Fatal(fmt.Errorf("the evidence cannot be judged: %w", err))
	}
	return r, *e
}

// resultOf waits for the result of a lease. An agent that was stopped before it read the answer delivers its result again.
func (f *fake) resultOf(token uint64) gates.Evidence {
	f.t.Helper()
	for {
		if r, e := f.result(); r.Token == token {
			return e
		}
	}
}
