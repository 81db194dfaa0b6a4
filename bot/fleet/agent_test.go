package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

func evidence(job runners.Job) *gates.Evidence {
	return &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: job.Manifest.Name, Provenance: job.Provenance, Notes: job.Notes}
}

// quick is a measurement that finds nothing.
func quick(_ context.Context, job runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
	return runners.Measured{Evidence: evidence(job)}, nil
}

func TestJobGoesThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "job-1")
	told := runners.Event{Gate: "performance", Text: "measuring", Done: 3, Total: 8, Unit: "rounds", Detail: "+1 %", Left: 12.5}
	goOn := make(chan struct{})
	stop := w.run("ann", func(_ context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		p.Report(runners.Event{Gate: "build"})
		p.Report(told)
		<-goOn
		file := filepath.Join(scratch, "a.cubin")
		return runners.Measured{Evidence: evidence(job), BuildLog: "warning", Artifacts: []string{file}}, os.WriteFile(file, []byte("code"), 0o600)
	}, func(c *agent.Config) {
		c.Now = func() time.Time { return time.Unix(1, 0) }
	})
	ann := Runner{Name: "ann", Host: "box", Version: "v1", Labels: []string{"l4"}}
	if got := next(t, w.results.started, "the start"); got.job != "job-1" || got.token != 1 || !cmp.Equal(got.by, ann) {
		t.Errorf("started: %+v", got)
	}
	for next(t, w.results.progress, "progress") != told {
	}
	ignore := cmpopts.IgnoreUnexported(RunnerState{}, Availability{})
	said := []runners.LogEntry{{At: time.Unix(1, 0).UTC(), Event: runners.Event{Gate: "build"}}, {At: time.Unix(1, 0).UTC(), Event: told}}
	want := []RunnerState{{Listed: Listed{Runner: ann, Job: "job-1", Kernel: "twice"}, Progress: &told, Said: said}, {Listed: Listed{Runner: Runner{Name: "bob", Labels: []string{"l4"}}}}}
	got := w.server.Runners()
	if got[0].Since.IsZero() || got[0].LastSeen.Before(got[0].Since) || !got[1].LastSeen.IsZero() {
		t.Errorf("times: %+v", got)
	}
	if diff := cmp.Diff(want, got, ignore, cmpopts.IgnoreFields(Listed{}, "Since", "LastSeen")); diff != "" {
		t.Error(diff)
	}
	close(goOn)

	done := next(t, w.results.finished, "the result")
	wantEvidence := gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: "twice", Notes: []string{"noted"},
		Provenance: gates.Provenance{Repository: "o/r", Time: time.Unix(1, 0).UTC(), Host: "box", Program: "v1"},
	}
	if diff := cmp.Diff(wantEvidence, done.evidence); diff != "" {
		t.Error(diff)
	}
	if done.job != "job-1" || done.token != 1 || done.by.Host != "box" || done.log != "warning" || !cmp.Equal(done.artifacts, []string{"job-1/1/a.cubin"}) {
		t.Errorf("finished: %+v", done)
	}
	content, _, err := w.journal.Artifacts.Get(w.ctx(), done.artifacts[0])
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(content); err != nil || string(data) != "code" {
		t.Errorf("the artifact is %q, %v", data, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.http.Close()
	if n := w.unfinished(); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
	if s := w.server.Runners()[0]; s.Job != "" {
		t.Errorf("ann still works on %s", s.Job)
	}
}

// One beat is enough to free the device.
func TestCancelEndsTheMeasurement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "unwanted")
	begun, ended, beat := make(chan string, 1), make(chan error, 1), make(chan time.Time)
	w.run("ann", func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		if len(w.results.started) == 2 {
			return quick(ctx, job, scratch, p)
		}
		begun <- scratch
		<-ctx.Done()
		ended <- ctx.Err()
		return runners.Measured{}, ctx.Err()
	}, func(c *agent.Config) {
		c.After = func(d time.Duration) <-chan time.Time {
			if d == time.Second {
				return beat
			}
			return hurried(d)
		}
	})
	scratch := next(t, begun, "the measurement")
	if ok, err := w.jobs.Cancel(w.ctx(), "unwanted"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.enqueue("l4", "wanted")
	beat <- time.Time{}
	next(t, ended, "the measurement's end")
	if got := next(t, w.results.finished, "the next job's result"); got.job != "wanted" || got.evidence.Fault != "" {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(scratch); !os.IsNotExist(err) {
		t.Errorf("the cancelled job's folder: %v", err)
	}
}

func TestRunnerSurvivesTheBotsRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		while bool // the bot is back before the measurement ends
	}{{"while measuring", true}, {"after measuring", false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 30*time.Second)
			w.enqueue("l4", "job")
			begun, goOn, measured := make(chan struct{}), make(chan struct{}), make(chan struct{})
			w.run("ann", func(ctx context.Context, job runners.Job, _ string, p runners.Progress) (runners.Measured, error) {
				p.Report(runners.Event{Text: "measuring"})
				close(begun)
				<-goOn
				defer close(measured)
				return runners.Measured{Evidence: evidence(job)}, ctx.Err()
			})
			next(t, begun, "the measurement")
			w.stop()
			if !tt.while {
				close(goOn)
				next(t, measured, "the measurement's end")
			}
			w.results = newRecorder()
			w.start()
			if tt.while {
				next(t, w.results.progress, "progress at the new bot")
				if s := w.server.Runners()[0]; s.Job != "job" || s.Kernel != "twice" {
					t.Errorf("the new bot knows %+v", s)
				}
				close(goOn)
			}
			if got := next(t, w.results.finished, "the result"); got.job != "job" || got.token != 1 || got.by.Name != "ann" || got.evidence.Fault != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A runner that is stopped gives its job back: nobody waits for the lease's end.
func TestStoppedRunnerReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	w.enqueue("l4", "job")
	begun := make(chan struct{})
	stop := w.run("ann", func(ctx context.Context, _ runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		close(begun)
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
	})
	next(t, begun, "the measurement")
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.run("bob", quick)
	if got := next(t, w.results.finished, "the result"); got.token != 2 || got.by.Name != "bob" {
		t.Errorf("%+v", got)
	}
}

// Whatever prevents a measurement is the runner's fault, and is told.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "good")
	junk := fmt.Sprintf("%x", sha256.Sum256([]byte("not a bundle")))
	for _, name := range []string{junk, "swapped"} {
		if _, err := w.journal.Bundles.Put(w.ctx(), name, strings.NewReader("not a bundle")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, id, bundle, says string }{
		{"another digest", "swapped", "swapped", "damaged in transit, or belongs to a different job"},
		{"no bundle at all", "junk", junk, "unpacking a bundle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.put(tt.id, tt.bundle, "cpu")
			stop := w.run("ann", func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
				return runners.Measured{}, errors.New("was measured all the same")
			}, func(c *agent.Config) { c.Labels = []string{"cpu"} })
			got := next(t, w.results.finished, "the result")
			if got.job != tt.id || !strings.Contains(got.evidence.Fault, tt.says) || got.evidence.Kernel == "" {
				t.Errorf("%s: fault %q about %q, want %q", got.job, got.evidence.Fault, got.evidence.Kernel, tt.says)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
	w.http.Close()                   // waits for requests that nobody waits for any more
	if n := w.unfinished(); n != 1 { // the good one
		t.Errorf("%d jobs are left", n)
	}
}

func TestSeveralLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	for _, id := range []string{"1", "2", "3"} {
		w.enqueue("l4", "gpu-"+id)
		w.enqueue("cpu", "cpu-"+id)
	}
	w.run("ann", quick, func(c *agent.Config) { c.Labels = []string{"l4", "cpu", "l4"} })
	seen := map[string]bool{}
	for range 6 {
		seen[next(t, w.results.finished, "a result").job] = true
	}
	if len(seen) != 6 {
		t.Errorf("done: %v", seen)
	}
}

func TestAgentIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	over := httptest.NewServer(w.server.Handler())
	defer over.Close()
	for _, tt := range []struct {
		name   string
		change func(*agent.Config)
		says   string
	}{
		{"a wrong token", func(c *agent.Config) { c.Token = "bob" }, "does not know the token"},
		{"another's token", func(c *agent.Config) { c.Token = "bob's" }, `belongs to the runner "bob", not to "ann"`},
		{"a label too many", func(c *agent.Config) { c.Labels = []string{"l4", "h200"} }, `may not take jobs of the label "h200" (its token is for l4, cpu)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := agent.Config{Servers: []string{over.URL}, Token: "ann's", Name: "ann", Labels: []string{"l4"}, StateDir: t.TempDir(), Measure: quick}
			tt.change(&c)
			err := agent.Run(w.ctx(), c)
			if !errors.Is(err, agent.ErrRefused) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}
