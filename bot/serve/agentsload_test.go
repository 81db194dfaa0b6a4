package serve_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// turns notes which jobs a runner begins, and whether a pull request's job waited then.
type turns struct {
	mu            sync.Mutex
	pulls, others int
	passed, most  int // submissions in a row that began while a pull request's job waited
}

func (o *turns) begin(submission, pullWaits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !submission:
		o.pulls, o.passed = o.pulls+1, 0
	case pullWaits:
		o.others, o.passed = o.others+1, o.passed+1
		o.most = max(o.most, o.passed)
	default:
		o.others, o.passed = o.others+1, 0
	}
}

// claimBefore counts claims of the kernel by other agents, on earlier days, and one by agent0 today.
func (a *agents) claimBefore(n int) {
	a.Helper()
	folder := sha256.Sum256([]byte("kernels/scale"))
	subject := fmt.Sprintf("submissionclaims-%d-%x", a.repo.ID(), folder[:8])
	var seq uint64
	for i := range n {
		var err error
		seq, err = a.s.Journal.Append(a.ctx, subject, seq, "submission_claimed", map[string]any{
			"handle": fmt.Sprintf("%012x", i), "token": fmt.Sprint("earlier", i%20), "kernel": "scale", "day": fmt.Sprint("day ", i/800), "code": fmt.Sprint("code ", i),
		})
		a.no(err)
	}
	_, err := a.s.Journal.Append(a.ctx, subject, seq, "submission_claimed", map[string]any{
		"handle": "today", "token": "agent0", "kernel": "scale", "day": time.Now().UTC().Format(time.DateOnly), "code": "today's",
	})
	a.no(err)
	if d := a.must("agent0", "describe", map[string]any{"kernel": "olga/kernels:scale"}); d.Data["budget"].(map[string]any)["claims_spent"] != 1.0 {
		a.Fatalf("the claims of before are not those of the kernel: %v", d.Data["budget"])
	}
}

// TestAgentsUnderLoad has 20 agents submit without end, and 200 poll and ask for their budget, on one core and one runner, for a
// kernel with 10,000 claims, while pull requests come. A pull request's job waits for two submissions at most, one that began when it came and one
// whose turn it is, and the memory of the server does not grow with what was submitted or asked.
func TestAgentsUnderLoad(t *testing.T) {
	long.Test(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in operation: make has garbage collected rarely
	const submitters, pollers, pulls, laps = 20, 200, 4, 2
	a := newAgents(t)
	var lines []string
	for n := range submitters {
		lines = append(lines, fmt.Sprintf("agent%d olga/kernels", n))
	}
	a.allow(lines...)
	a.app.SetHook(a.s.URL()+"/webhook", secret)
	// The pull requests are to another repository, whose jobs have a label of their own: so the backlog says
	// when one waits. One runner takes both.
	gated, err := a.hub.CreateRepo(embedded.RepoOptions{Owner: "otto", Name: "gated"})
	a.no(err)
	_, err = gated.Push("main", map[string]string{
		"kernels/scale/kernel.yaml": manifest, "kernels/scale/scale.c": fmt.Sprintf(kernel, "scale"), "kernels/scale/reference.c": fmt.Sprintf(kernel, "reference"),
		".github/kernelgate.yaml": strings.Replace(agentsPolicy, "devices: [cpu]", "devices: [pull]", 1),
	}, "Scale")
	a.no(err)
	_, err = a.app.Install(gated)
	a.no(err)
	a.claimBefore(10000)
	var order turns
	a.runAgent(agent.Config{
		Servers: []string{a.s.URL()}, Token: runnerToken, Name: "cpu1", Labels: []string{"cpu", "pull"}, StateDir: t.TempDir(),
		Measure: func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
			waits := slices.ContainsFunc(a.s.Jobs.Backlogs(), func(b jobs.Backlog) bool { return b.Label == "pull" && b.Waiting > 0 })
			order.begin(job.Part == runners.PartProbe, waits)
			return scripted.Runner{}.Measure(ctx, job, scratch, p)
		},
	})

	stop := make(chan struct{})
	var workers sync.WaitGroup
	var submitted, polls atomic.Int64
	last := make([]atomic.Value, submitters) // handles
	for n := range submitters {
		workers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				intent := []string{"probe", "probe", "probe", "claim"}[i%4]
				got := a.call(lines[n][:strings.Index(lines[n], " ")], "submit", files(intent, fmt.Sprintf("// speed 1.2\nint x%d_%d;\n", n, i)))
				switch {
				case !got.IsError:
					submitted.Add(1)
					last[n].Store(got.Data["handle"].(string))
				case !strings.Contains(got.Text, "not finished"):
					t.Errorf("a submission is refused: %s", got.Text)
					return
				default: // 16 wait: see how one of them is
					a.call(fmt.Sprintf("agent%d", n), "status", map[string]any{"handle": last[n].Load(), "wait_seconds": 1})
				}
			}
		})
	}
	for p := range pollers {
		workers.Go(func() {
			name := p % submitters
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
				if handle, ok := last[name].Load().(string); ok {
					got := a.call(fmt.Sprintf("agent%d", name), "status", map[string]any{"handle": handle, "wait_seconds": 1})
					if got.IsError {
						t.Errorf("a status is refused: %s", got.Text)
						return
					}
					polls.Add(1)
				}
				if got := a.call(fmt.Sprintf("agent%d", name), "describe", map[string]any{"kernel": "olga/kernels:scale"}); got.IsError {
					t.Errorf("a description is refused: %s", got.Text)
					return
				}
			}
		})
	}
	var most atomic.Uint64 // bytes of the heap
	workers.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapAlloc))
			}
		}
	})
	heap := func() uint64 { // what is in use, without the garbage that agents make while it is collected
		runtime.GC()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		return live[0].Value.Uint64()
	}
	var sizes []uint64
	for lap := range laps {
		a.until("the queue is full", func() bool { return submitted.Load() >= int64((lap+1)*submitters*2) })
		for n := range pulls {
			branch := fmt.Sprintf("change%d-%d", lap, n)
			_, err := gated.Push(branch, map[string]string{"kernels/scale/scale.c": fmt.Sprintf("// speed 1.5\nint y%d_%d;\n", lap, n)}, "Change")
			a.no(err)
			pr, err := gated.OpenPR(embedded.PROptions{Author: "otto", Title: "Change", Head: branch})
			a.no(err)
			a.no(a.hub.WaitFor(a.ctx, func() bool {
				c, ok := gated.Check(pr.HeadSHA(), "kernelgate")
				return ok && c.Status == "completed"
			}))
		}
		sizes = append(sizes, heap())
	}
	close(stop)
	workers.Wait()
	t.Logf("%d submissions and %d polls on one core; %d jobs of pull requests and %d of submissions were measured, at most %d in a row while a pull request waited; heap %.1f MiB after the first lap, %.1f MiB after the last, %.1f MiB at most",
		submitted.Load(), polls.Load(), order.pulls, order.others, order.most, float64(sizes[0])/(1<<20), float64(sizes[laps-1])/(1<<20), float64(most.Load())/(1<<20))
	if order.pulls < laps*pulls {
		t.Errorf("%d jobs of pull requests were measured, of %d", order.pulls, laps*pulls)
	}
	if order.most > 2 {
		t.Errorf("%d submissions in a row began while a pull request waited", order.most)
	}
	if order.others == 0 {
		t.Error("no submission was measured")
	}
	if most.Load() > 256<<20 {
		t.Errorf("the heap had %d MiB", most.Load()>>20)
	}
	if grown := int64(sizes[laps-1]) - int64(sizes[0]); grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}
