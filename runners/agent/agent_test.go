package agent

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
)

func TestFaultsAreDelivered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		measure func(bundle.Job) (Outcome, error)
		says    string
	}{
		{"an error", func(bundle.Job) (Outcome, error) { return Outcome{}, errors.New("no GPU here") }, "no GPU here"},
		{"a panic", func(bundle.Job) (Outcome, error) { panic("index out of range") }, "the runner's program failed: index out of range"},
		{"nothing", func(bundle.Job) (Outcome, error) { return Outcome{}, nil }, "brought no evidence"},
		{"no number", func(j bundle.Job) (Outcome, error) {
			e := found(j)
			e.Device.Bandwidth = math.NaN()
			return Outcome{Evidence: e}, nil
		}, "cannot be written"},
		{"somebody else's cancellation", func(bundle.Job) (Outcome, error) { return Outcome{}, context.Canceled }, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.hand("job", 3)
			c := f.config()
			c.Measure = func(_ context.Context, j bundle.Job, _ string, _ runners.Progress) (Outcome, error) {
				return tt.measure(j)
			}
			f.run(c)
			r, e := f.result()
			if r.Token != 3 || e.Kernel != "twice" || e.Mode != "command" || e.Provenance.Host != "box" || !slices.Equal(e.Notes, []string{"noted"}) {
				t.Errorf("token %d, evidence %+v", r.Token, e)
			}
			if !strings.Contains(e.Fault, tt.says) {
				t.Errorf("the fault is %q, want %q", e.Fault, tt.says)
			}
		})
	}
}

// A server that is away is asked again, less and less often, for as long as it
// takes.
func TestPatience(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer("lease", http.StatusBadGateway)
	c := f.config()
	pauses := make(chan time.Duration, 1000)
	c.After = func(d time.Duration) <-chan time.Time { pauses <- d; return hurried(0) }
	stop, _ := f.run(c)
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, lastPause, lastPause} {
		if got := next(t, pauses, "a pause"); got != want {
			t.Errorf("pause %d is %v, want %v", i, got, want)
		}
	}
	f.hand("job", 1)
	f.answer("lease", 0)
	f.result()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// That the server is silent ends no measurement; its result is delivered when
// the server is back.
func TestServerAwayWhileMeasuring(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job", 1)
	c := f.config()
	begun, goOn := make(chan struct{}), make(chan struct{})
	c.Measure = func(ctx context.Context, job bundle.Job, _ string, p runners.Progress) (Outcome, error) {
		p.Report(runners.Event{Text: "first"})
		p.Report(runners.Event{Text: "second", Left: time.Second})
		close(begun)
		<-goOn
		return Outcome{Evidence: found(job)}, ctx.Err()
	}
	f.answer("beat", http.StatusInternalServerError)
	f.run(c)
	next(t, begun, "the measurement")
	for i := 0; i < 20; { // longer than the lease
		b := next(t, f.beats, "a beat")
		if b.Token != 1 || b.Progress != nil && *b.Progress != (Progress{Text: "second", Left: 1}) {
			t.Errorf("the beat says %+v", b)
		}
		if b.Progress != nil {
			i++
		}
	}
	f.answer("result", http.StatusServiceUnavailable)
	close(goOn)
	for range 3 {
		f.result()
	}
	next(t, f.asked, "the first question")
	f.answer("result", 0)
	next(t, f.asked, "the next question, after the delivery")
	for len(f.results) > 0 {
		if _, e := f.result(); e.Fault != "" {
			t.Errorf("fault %q", e.Fault)
		}
	}
}

func TestResultOutlivesTheRunner(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job-1", 7)
	f.answer("result", http.StatusServiceUnavailable)
	c := f.config()
	measured := 0
	c.Measure = func(_ context.Context, job bundle.Job, scratch string, _ runners.Progress) (Outcome, error) {
		measured++
		file := filepath.Join(scratch, "a.cubin")
		return Outcome{Evidence: found(job), BuildLog: "warning", Artifacts: []string{file}}, os.WriteFile(file, []byte("code"), 0o600)
	}
	stop, _ := f.run(c)
	f.result()
	if err := stop(); err != nil {
		t.Error(err)
	}
	for len(f.results) > 0 {
		<-f.results
	}
	for len(f.asked) > 0 {
		<-f.asked
	}
	f.answer("result", 0)
	stop, _ = f.run(c)
	r, e := f.result()
	if r.Token != 7 || r.Log != "warning" || !slices.Equal(r.Artifacts, []string{"a.cubin"}) || e.Kernel != "twice" || e.Fault != "" {
		t.Errorf("delivered %+v about %+v", r, e)
	}
	next(t, f.asked, "the next job") // only after the delivery
	if err := stop(); err != nil {
		t.Error(err)
	}
	if measured != 1 {
		t.Errorf("measured %d times", measured)
	}
	if got := f.artifacts["a.cubintoken=7"]; got != "code" {
		t.Errorf("the artifact is %q of %v", got, f.artifacts)
	}
	for _, folder := range []string{"results", "work"} {
		if left, err := os.ReadDir(filepath.Join(c.StateDir, folder)); err != nil || len(left) != 0 {
			t.Errorf("%s holds %v, %v", folder, left, err)
		}
	}
}

// What the server will never take becomes a fault that it does take.
func TestResultThatIsRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job", 1)
	f.answer("result", http.StatusRequestEntityTooLarge)
	f.answer("artifact", http.StatusBadRequest)
	c := f.config()
	c.Measure = func(_ context.Context, job bundle.Job, scratch string, _ runners.Progress) (Outcome, error) {
		file := filepath.Join(scratch, "a.cubin")
		return Outcome{Evidence: found(job), Artifacts: []string{file}}, os.WriteFile(file, []byte("code"), 0o600)
	}
	f.run(c)
	r, e := f.result()
	if e.Fault != "" || len(r.Artifacts) != 0 || !strings.Contains(r.Log, "a.cubin was not kept: the server answers 400: no artifact") {
		t.Errorf("first %+v with fault %q", r, e.Fault)
	}
	if _, e = f.result(); e.Fault != "the result could not be delivered: the server answers 413: no result" || e.Kernel != "twice" {
		t.Errorf("then the fault %q about %q", e.Fault, e.Kernel)
	}
	// That was refused as well, and the runner goes on.
	f.answer("result", 0)
	f.hand("next", 1)
	if _, e = f.result(); e.Fault != "" {
		t.Errorf("the next job: %q", e.Fault)
	}
}

func TestEndOfAJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		ends   bool // the runner, not only the job
	}{{"lost", http.StatusConflict, false}, {"cancelled", http.StatusGone, false}, {"token withdrawn", http.StatusUnauthorized, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.hand("job", 1)
			c := f.config()
			first := true
			c.Measure = func(ctx context.Context, job bundle.Job, scratch string, p runners.Progress) (Outcome, error) {
				if !first {
					return quick(ctx, job, scratch, p)
				}
				first = false
				f.answer("beat", tt.status)
				<-ctx.Done()
				f.answer("beat", 0)
				// Too late, and complete all the same.
				return Outcome{Evidence: found(job)}, nil
			}
			_, ended := f.run(c)
			if tt.ends {
				if err := next(t, ended, "the runner's end"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "hand out a new one") {
					t.Error(err)
				}
				return
			}
			f.hand("next", 9)
			if r, _ := f.result(); r.Token != 9 {
				t.Errorf("the result of token %d was sent", r.Token)
			}
			if len(f.released) != 0 {
				t.Error("a job that is gone was released")
			}
		})
	}
}

func TestStopReleases(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job", 1)
	c := f.config()
	begun := make(chan struct{})
	c.Measure = func(ctx context.Context, _ bundle.Job, _ string, _ runners.Progress) (Outcome, error) {
		close(begun)
		<-ctx.Done()
		return Outcome{}, ctx.Err()
	}
	stop, _ := f.run(c)
	next(t, begun, "the measurement")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if id := next(t, f.released, "the release"); id != "job" || len(f.results) != 0 {
		t.Errorf("released %s, %d results", id, len(f.results))
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	taken := f.config()
	stop, _ := f.run(taken)
	next(t, f.asked, "the first runner")
	tests := []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"a state folder in use", func(c *Config) { c.StateDir = taken.StateDir }, "give each its own"},
		{"no state folder", func(c *Config) { c.StateDir = "" }, "it needs"},
		{"no name", func(c *Config) { c.Name = "" }, "it needs"},
		{"no labels", func(c *Config) { c.Labels = nil }, "it needs"},
		{"no token", func(c *Config) { c.Token = " " }, "there is no token"},
		{"a token in the clear", func(c *Config) { c.Server = "http://bot.example.com" }, "use https://"},
		{"another scheme", func(c *Config) { c.Server = "nats://bot" }, "neither unix:///path nor https://host"},
		{"a relative socket", func(c *Config) { c.Server = "unix://run/bot.sock" }, "neither unix:///path nor https://host"},
		{"no such certificate", func(c *Config) { c.CA = "/does/not/exist" }, "certificates to trust"},
		{"no certificate", func(c *Config) { c.CA = filepath.Join(taken.StateDir, "LOCK") }, "holds no certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := f.config()
			tt.change(&c)
			if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	over := httptest.NewTLSServer(f)
	defer over.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: over.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	f.hand("job", 1)
	c := f.config()
	c.Server, c.CA = over.URL, file
	f.run(c)
	f.result()
	if ask := next(t, f.asked, "the question"); ask.Runner != "ann" || ask.Host != "box" || ask.Version != "v1" || !slices.Equal(ask.Labels, []string{"l4"}) {
		t.Errorf("asked with %+v", ask)
	}
}

func TestKeep(t *testing.T) {
	s, lock, err := openStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	dir := t.TempDir()
	file := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	k, err := s.keep(LeaseAnswer{Job: "a-b-1", Token: 12}, Outcome{
		Evidence:  &gates.Evidence{Kernel: "twice"},
		BuildLog:  strings.Repeat("é", MaxLog),
		Artifacts: []string{file("good", 3), file("big", MaxArtifact+1), file("a name", 1), link, filepath.Join(dir, "none")},
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.all()
	if err != nil || !slices.Equal(all, []kept{k}) || k.job != "a-b-1" || k.token != 12 {
		t.Errorf("kept %+v, found %+v, %v", k, all, err)
	}
	if names, err := k.artifacts(); err != nil || !slices.Equal(names, []string{"good"}) {
		t.Errorf("artifacts %v, %v", names, err)
	}
	r, err := k.read()
	if err != nil || r.Token != 12 || len(r.Log) > MaxLog {
		t.Errorf("token %d, a log of %d bytes, %v", r.Token, len(r.Log), err)
	}
	for _, part := range []string{"bytes are left out", "big was not kept: it is 64 MiB long", "a name was not kept", "link was not kept", "none was not kept: it is not there"} {
		if !strings.Contains(r.Log, part) {
			t.Errorf("the log does not say %q", part)
		}
	}
	var e gates.Evidence
	if err := json.Unmarshal(r.Evidence, &e); err != nil || e.Kernel != "twice" {
		t.Errorf("%+v, %v", e, err)
	}
}
