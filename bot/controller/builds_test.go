package controller_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

const twiceManifest = `version: 1
name: twice
mode: cuda
arch: [sm_89]
entry: twice
source: twice.cu
launch: {grid: ["ceildiv(N, 256)"], block: [256]}
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.cu, entry: twice_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.001}
shapes: {mission: {N: 1024}}
`

// twice is the kernel with a body.
func twice(body string) string {
	return "extern \"C\" __global__ void twice(const float* x, float* y, int N) {\n  int i = blockIdx.x * 256 + threadIdx.x;\n" + body + "\n}\n"
}

const doubles = "  if (i < N) y[i] = 2 * x[i];"

// newFleet is a world with a CUDA kernel and no runner: a host that compiles and one with a GPU are known, and not there yet.
func newFleet(t *testing.T) *world {
	t.Helper()
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); (err != nil || !sandbox.Probe().Works()) && os.Getenv("CI") == "" {
		t.Skipf("nvcc and a sandbox are needed: %v (run make setup)", err)
	}
	w := newWorld(t, worldOptions{retold: true, absent: true, others: map[string]fleet.Credential{
		"build1": fleet.NewCredential("build1's", "build-nvcc"), "gpu1": fleet.NewCredential("gpu1's", "gpu"),
	}})
	_, err := w.repo.Push("main", map[string]string{
		"kernels/twice/kernel.yaml": twiceManifest, "kernels/twice/twice.cu": twice(doubles),
		"kernels/twice/reference.cu": "extern \"C\" __global__ void twice_reference(const float* x, float* y, int N) { for (int i = threadIdx.x; i < N; i += 32) y[i] = 2 * x[i]; }\n",
		".github/kernelgate.yaml":    "version: 1\ndevices: [gpu]\ngates:\n  ptxas: {registers: \"<= 64\"}\n  correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}\nrules: [{name: default}]\n",
	}, "A kernel in CUDA")
	w.no(err)
	return w
}

// hire starts a runner, until the world ends.
func (w *world) hire(c agent.Config) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	c.Servers, c.Token, c.StateDir, c.Host = []string{"http://" + w.addr}, c.Name+"'s", w.TempDir(), c.Name
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, c) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			w.no(<-ended)
		}
	}
	w.Cleanup(stop)
	return stop
}

// shows waits for the required check of a commit to say something while it is open.
func (w *world) shows(sha, text string) {
	w.Helper()
	w.until(text+" at "+sha, func() bool {
		c, _ := w.repo.Check(sha, "kernelgate")
		return c.Status != "completed" && strings.Contains(c.Title+"\n"+c.Summary, text)
	})
}

// decided waits for the required check of a commit. What main waits for keeps the bot from coming to rest.
func (w *world) decided(sha, conclusion string) embedded.Check {
	w.Helper()
	var c embedded.Check
	w.until(conclusion+" at "+sha, func() bool {
		c, _ = w.repo.Check(sha, "kernelgate")
		return c.Status == "completed" && c.Conclusion == conclusion
	})
	return c
}

// rewrite opens a pull request that writes the kernel anew.
func (w *world) rewrite(branch, source string) *embedded.PR {
	w.Helper()
	return w.bring(branch, map[string]string{"kernels/twice/twice.cu": source})
}

// With a host that compiles and no GPU: equal machine code and code that does not compile get their verdicts. What must be measured
// waits for a GPU, and goes there with what was compiled.
func TestVerdictWithoutAGPU(t *testing.T) {
	w := newFleet(t)
	goOn := make(chan struct{})
	builder := measure.Config{Cache: toolchaintest.Builds(t), Getenv: os.Getenv, Name: "build1"}
	w.hire(agent.Config{Name: "build1", Labels: []string{"build-nvcc"}, Build: func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		if strings.Contains(job.Change.Title, "thrice") { // long enough to be seen
			p.Report(measuring.Event{Gate: gates.GateBuild, Text: "compiling"})
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return builder.Build(ctx, job, scratch, p)
	}})

	same := w.rewrite("remark", "// It doubles.\n"+twice(doubles))
	w.decided(same.HeadSHA(), "success")
	w.said(same, "the machine code is the same as the baseline's")
	w.said(same, "Compiled for sm_89.")

	broken := w.rewrite("broken", twice("  nonsense;"))
	if c := w.decided(broken.HeadSHA(), "failure"); !strings.Contains(c.Title, "DEFER (build)") {
		t.Errorf("the check says %q", c.Title)
	}
	w.said(broken, "identifier \"nonsense\" is undefined")

	other := w.rewrite("thrice", twice("  if (i < N) y[i] = 3 * x[i] - x[i];"))
	w.shows(other.HeadSHA(), "Building on build1")
	close(goOn)
	w.shows(other.HeadSHA(), "Built on build1, waiting for a runner labelled gpu: none is connected")

	seen := make(chan *gates.Evidence, 10)
	w.hire(agent.Config{Name: "gpu1", Labels: []string{"gpu"}, Measure: recordedGPU(t, seen)})
	w.decided(other.HeadSHA(), "success")
	w.said(other, "Compiled on build1.")
	if e := <-seen; !e.Baseline.Cached || !e.Candidate.Cached || e.SameCode {
		t.Errorf("the runner with a GPU has built %+v and %+v", e.Baseline, e.Candidate)
	}
}

// A job goes on to a GPU where the host that compiles brings nothing of use, or more than it can know; neither is a verdict.
func TestBuilderAtFault(t *testing.T) {
	w := newFleet(t)
	measured := recordedGPU(t, make(chan *gates.Evidence, 10))
	w.hire(agent.Config{Name: "build1", Labels: []string{"build-nvcc"}, Build: func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		if job.Change.Title == "forged" {
			return measured(ctx, job, scratch, p)
		}
		e := job.Fault(os.ErrPermission)
		e.Fault = "" // it says that all is well, and brings nothing
		return measuring.Measured{Evidence: e}, nil
	}})
	pr := w.rewrite("other", twice("  if (i < N) y[i] = x[i] + x[i];"))
	forged := w.rewrite("forged", twice("  if (i < N) y[i] = 4 * x[i] / 2;"))
	for _, pr := range []*embedded.PR{pr, forged} {
		w.shows(pr.HeadSHA(), "Waiting for a runner labelled gpu: none is connected")
	}
	seen := make(chan *gates.Evidence, 10)
	w.hire(agent.Config{Name: "gpu1", Labels: []string{"gpu"}, Measure: recordedGPU(t, seen)})
	w.decided(pr.HeadSHA(), "success")
	w.decided(forged.HeadSHA(), "success")
	if e := <-seen; slices.Contains(e.Notes, "Compiled on build1.") {
		t.Errorf("the notes are %q", e.Notes)
	}
	var faults []change.BuildFault
	_, err := w.running.journal.Replay(w.ctx, 0, func(e journal.Event) error {
		if e.Kind != "built" {
			return nil
		}
		event, err := change.Decode(e.Kind, e.Data)
		if err == nil {
			faults = append(faults, event.(change.Built).Fault)
		}
		return err
	})
	w.no(err)
	slices.Sort(faults)
	if faults = slices.Compact(faults); !slices.Equal(faults, []change.BuildFault{change.BuildMeasured, change.BuildOfOtherJob}) {
		t.Errorf("the journal has the faults %q", faults)
	}
}

// A gpu is one that compiles for real and compares nothing: it says that every output is right.
type gpu struct {
	*cuda.Backend
	job measuring.Job
}

func (g gpu) Device() gates.Device {
	d := g.Backend.Device()
	d.Name = "Recorded"
	return d
}

func (g gpu) Correctness(ctx context.Context, gate *policy.CorrectnessGate, _ measuring.Progress) (*gates.Correctness, error) {
	g.Prepare(ctx) // what comparing would take
	out := &gates.Correctness{Tolerance: gates.Tolerance{Abs: g.job.Manifest.Tolerance.Abs}}
	for _, c := range measuring.Cases(g.job, gate, rand.New(rand.NewPCG(1, 2))) {
		e := c.Evidence()
		e.Errors = &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
		e.Baseline = &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
		out.Cases = append(out.Cases, e)
	}
	return out, nil
}

// recordedGPU measures as a host with a GPU would, without one. Where builds were handed on, it has no compiler that could run.
func recordedGPU(t *testing.T, seen chan<- *gates.Evidence) func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error) {
	return func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		config := cuda.Config{Scratch: scratch, Arch: "sm_89", Seed: 1, Getenv: os.Getenv, Cache: toolchaintest.Builds(t)}
		if job.Builds != "" {
			config.Cache, config.Handover = "", &toolchain.Handover{Dir: job.Builds}
		}
		b, err := cuda.New(ctx, job, config)
		if err != nil {
			return measuring.Measured{}, err
		}
		e, err := gather.Gather(ctx, job, gpu{b, job}, p)
		if err != nil {
			return measuring.Measured{}, err
		}
		if h := config.Handover; h != nil {
			want := 3 // the candidate, the reference and the judge's own
			if job.Baseline != nil {
				want++
			}
			if n := h.Taken(); n != want {
				t.Errorf("%d of %d builds were handed on:\n%s", n, want, b.BuildLog())
			}
			e.Notes = append(e.Notes, "Compiled on "+job.Builder+".")
		}
		if job.Baseline != nil { // main's own history may be measured too
			seen <- e
		}
		return measuring.Measured{Evidence: e}, nil
	}
}
