package agent

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

func TestFaultsAreDelivered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		measure func(runners.Job) (runners.Measured, error)
		says    string
	}{
		{"an error", func(runners.Job) (runners.Measured, error) { return runners.Measured{}, errors.New("no GPU here") }, "no GPU here"},
		{"a panic", func(runners.Job) (runners.Measured, error) { panic("index out of range") }, "the runner's program failed: index out of range"},
		{"nothing", func(runners.Job) (runners.Measured, error) { return runners.Measured{}, nil }, "returned no evidence"},
		{"no number", func(j runners.Job) (runners.Measured, error) {
			e := found(j)
			e.Device.Bandwidth = math.NaN()
			return runners.Measured{Evidence: e}, nil
		}, "cannot be written"},
		{"somebody else's cancellation", func(runners.Job) (runners.Measured, error) { return runners.Measured{}, context.Canceled }, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.hand("job", 3)
			c := f.config()
			c.Measure = func(_ context.Context, j runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
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

// TestPatience checks that the agent retries a server that is away, less and less often, for as
// long as it takes.
func TestPatience(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer("lease", http.StatusBadGateway)
	c := f.config()
	pauses := make(chan time.Duration, 1000)
	c.After = func(d time.Duration) <-chan time.Time { pauses <- d; return hurried(0) }
	stop, _ := f.run(c)
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, lastPause, lastPause} {
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

// TestPauseBetweenQuestions checks that the agent pauses if a server answers immediately that there
// is nothing to do.
func TestPauseBetweenQuestions(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.answer("lease", http.StatusNoContent)
	c := f.config()
	c.Now = func() time.Time { return time.Unix(1, 0) }
	pauses, goOn := make(chan time.Duration), make(chan time.Time)
	c.After = func(d time.Duration) <-chan time.Time { pauses <- d; return goOn }
	stop, _ := f.run(c)
	for range 3 {
		next(t, f.asked, "a question")
		if d := next(t, pauses, "a pause"); d != minPoll {
			t.Errorf("paused for %v", d)
		}
		if len(f.asked) != 0 {
			t.Error("asked during the pause")
		}
		goOn <- time.Time{}
	}
	go func() {
		for range pauses {
		}
	}()
	if err := stop(); err != nil {
		t.Error(err)
	}
	close(pauses)
}

// TestServerAwayWhileMeasuring checks that a silent server ends no measurement, and that the result
// is delivered when the server is back.
func TestServerAwayWhileMeasuring(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job", 1)
	c := f.config()
	begun, goOn := make(chan struct{}), make(chan struct{})
	c.Measure = func(ctx context.Context, job runners.Job, _ string, p runners.Progress) (runners.Measured, error) {
		p.Report(runners.Event{Text: "first"})
		p.Report(runners.Event{Text: "second", Left: 1})
		close(begun)
		<-goOn
		return runners.Measured{Evidence: found(job)}, ctx.Err()
	}
	f.answer("beat", http.StatusInternalServerError)
	f.run(c)
	next(t, begun, "the measurement")
	for i := 0; i < 20; { // longer than the lease
		b := next(t, f.beats, "a beat")
		if b.Token != 1 || b.Progress != nil && *b.Progress != (runners.Event{Text: "second", Left: 1}) {
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
	c.Measure = func(_ context.Context, job runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
		measured++
		file := filepath.Join(scratch, "a.cubin")
		return runners.Measured{Evidence: found(job), BuildLog: "warning", Artifacts: []string{file}}, os.WriteFile(file, []byte("code"), 0o600)
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

// TestResultThatIsRefused checks that a result that the server will never accept becomes a fault
// that it does accept.
func TestResultThatIsRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.hand("job", 1)
	f.answer("result", http.StatusRequestEntityTooLarge)
	f.answer("artifact", http.StatusBadRequest)
	c := f.config()
	c.Measure = func(_ context.Context, job runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
		file := filepath.Join(scratch, "a.cubin")
		return runners.Measured{Evidence: found(job), Artifacts: []string{file}}, os.WriteFile(file, []byte("code"), 0o600)
	}
	f.run(c)
	r, e := f.result()
	if e.Fault != "" || len(r.Artifacts) != 0 || !strings.Contains(r.Log, "a.cubin was not kept: the server answers 400: no artifact") {
		t.Errorf("first %+v with fault %q", r, e.Fault)
	}
	if _, e = f.result(); e.Fault != "the result could not be delivered: the server answers 413: no result" || e.Kernel != "twice" {
		t.Errorf("then the fault %q about %q", e.Fault, e.Kernel)
	}
	// The fault was refused as well, and the runner continues.
	f.answer("result", 0)
	f.hand("next", 1)
	if _, e = f.result(); e.Fault != "" {
		t.Errorf("the next job: %q", e.Fault)
	}
}

// TestGoneBeforeItCame checks that a job that is gone before its bundle arrives is nobody's fault.
func TestGoneBeforeItCame(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusConflict, http.StatusGone} {
		f := newFake(t)
		f.answer("bundle", status)
		f.hand("job", 1)
		c := f.config()
		dropped := make(chan struct{}, 10)
		c.Log = slog.New(slog.NewTextHandler(dropping{dropped}, nil))
		f.run(c)
		next(t, dropped, "the end of the job")
		f.answer("bundle", 0)
		f.hand("next", 9)
		if r, e := f.result(); r.Token != 9 || e.Fault != "" {
			t.Errorf("%d: the result of token %d was sent: %s", status, r.Token, e.Fault)
		}
	}
}

// dropping is a log that signals when a job was dropped.
type dropping struct{ told chan struct{} }

func (d dropping) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "job dropped") {
		d.told <- struct{}{}
	}
	return len(line), nil
}

func TestEndOfAJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		ends   bool // the runner ends, not only the job
	}{{"lost", http.StatusConflict, false}, {"cancelled", http.StatusGone, false}, {"token withdrawn", http.StatusUnauthorized, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.hand("job", 1)
			c := f.config()
			first := true
			c.Measure = func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
				if !first {
					return quick(ctx, job, scratch, p)
				}
				first = false
				f.answer("beat", tt.status)
				<-ctx.Done()
				f.answer("beat", 0)
				// Too late, but complete.
				return runners.Measured{Evidence: found(job)}, nil
			}
			_, ended := f.run(c)
			if tt.ends {
				if err := next(t, ended, "the runner's end"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "ask the operator of the bot for a new one") {
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
	c.After = time.After // a hurried one ends the request on a busy machine
	begun := make(chan struct{})
	c.Measure = func(ctx context.Context, _ runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		close(begun)
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
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
