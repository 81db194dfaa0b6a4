package doctor

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// known holds the known kernels, one folder for each kind of device, and the policies that say how much of
// them is measured.
//
//go:embed known
var known embed.FS

// A SelfTest makes a runner measure a known kernel, as it measures everything else. The kernel
// comes with the program and is compared with itself. Its result must be right, its two sides must
// not differ (A/A), and it must take about as long as it took on this host before. A host that
// fails this would report wrong results about other kernels.
type SelfTest struct {
	Kind    string // of the device: gates.DeviceCPU or gates.DeviceGPU
	Device  string // whose history is used: the GPU's UUID; "" means the CPU
	History string // file of earlier times
	// Timeout bounds the whole test; default 10 min, because the first start of a compiler may take
	// long.
	Timeout time.Duration
	// Measure gathers evidence, as for any other job.
	Measure func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error)
}

// Possible returns what a host lacks for the test. A host that measures only with repositories' own
// harnesses needs no compiler, and is fit without one.
func (t SelfTest) Possible(ctx context.Context, getenv func(string) string) error {
	var err error
	if t.Kind == gates.DeviceGPU {
		_, err = toolchain.FindCUDA(ctx, getenv)
	} else {
		_, err = toolchain.FindCC(ctx, getenv, false)
	}
	return err
}

// bounds are the requirements for the known kernel of a kind of device.
type bounds struct {
	apart  float64 // the largest difference of the sides, as a share of the time
	wide   float64 // the largest half-width of the difference's interval
	slower float64 // the largest factor on the usual time; as much faster is also wrong
}

// Only one process measures on a GPU. A CPU is shared: slow or noisy times are no fault of the
// host, and only a difference beyond doubt is one.
var bound = map[string]bounds{
	gates.DeviceGPU: {apart: 0.02, wide: 0.1, slower: 1.5},
	gates.DeviceCPU: {apart: 0.1, wide: math.Inf(1), slower: 5},
}

// Run tests the host, with scratch as a private folder. The caller adds the time of the test.
func (t SelfTest) Run(ctx context.Context, scratch string) protocol.SelfTest {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Timeout, 10*time.Minute))
	defer cancel()
	var result protocol.SelfTest
	if err := t.run(ctx, scratch, &result); err != nil {
		result.Why = err.Error()
		return result
	}
	result.Passed = true
	return result
}

func (t SelfTest) run(ctx context.Context, scratch string, r *protocol.SelfTest) error {
	job, err := t.job(filepath.Join(scratch, "kernel"))
	if err != nil {
		return fmt.Errorf("preparing the known kernel: %w", err)
	}
	r.Kernel = job.Manifest.Name
	build := filepath.Join(scratch, "build")
	if err := os.Mkdir(build, 0o755); err != nil {
		return fmt.Errorf("preparing the known kernel: %w", err)
	}
	found, err := t.Measure(ctx, job, build, silent{})
	if err != nil {
		return err // the error says which step failed
	}
	if err := judge(job.Policy, found.Evidence, bound[t.Kind], r); err != nil {
		return err
	}
	return t.compare(bound[t.Kind].slower, r)
}

// job writes the known kernel into a folder.
func (t SelfTest) job(dir string) (runners.Job, error) {
	files, err := fs.Sub(known, "known/"+t.Kind)
	if err != nil {
		return runners.Job{}, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return runners.Job{}, err
	}
	text, err := fs.ReadFile(files, "kernel.yaml")
	if err != nil {
		return runners.Job{}, err
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		return runners.Job{}, err
	}
	rules, err := fs.ReadFile(known, "known/policy.yaml")
	if err != nil {
		return runners.Job{}, err
	}
	p, err := policy.Parse("policy.yaml", rules)
	if err != nil {
		return runners.Job{}, err
	}
	side := runners.Side{Dir: dir, Variant: m.DefaultVariant}
	return runners.Job{
		Manifest: m, ManifestText: string(text), Policy: p, PolicyFile: "policy.yaml", PolicyText: string(rules), Trusted: dir,
		Baseline: &side, Candidate: side, Noise: true,
	}, nil
}

// judge says what is wrong with the evidence about a kernel compared with itself, and stores the
// figures.
func judge(p *policy.Policy, e *gates.Evidence, b bounds, r *protocol.SelfTest) error {
	v := gates.Judge(p, "policy.yaml", e)
	if len(v.Comparisons) != 1 || v.Comparisons[0].Baseline == nil || v.Comparisons[0].Speedup.Lower == nil || v.Comparisons[0].Speedup.Upper == nil {
		return fmt.Errorf("the known kernel was not measured to the end: %s", v.Summary)
	}
	c := v.Comparisons[0]
	// Use the fastest launch: other work on the host slows launches down, but rarely all of them.
	r.Micros = min(c.Baseline.Min, c.Candidate.Min)
	r.Difference, r.Low, r.High = c.Speedup.Value, *c.Speedup.Lower, *c.Speedup.Upper
	switch {
	case v.Outcome != gates.Pass:
		return fmt.Errorf("the known kernel was measured as %s: %s", v.Outcome, v.Summary)
	case r.Low > b.apart || r.High < -b.apart:
		return fmt.Errorf("the known kernel differs from itself by %+.1f %% (%+.1f %% to %+.1f %%), and %.0f %% is allowed: something else uses the device, or its clocks change", 100*r.Difference, 100*r.Low, 100*r.High, 100*b.apart)
	case r.High-r.Low > 2*b.wide:
		return fmt.Errorf("the known kernel's difference from itself is only known to lie between %+.1f %% and %+.1f %%: something else uses the device, or its clocks change", 100*r.Low, 100*r.High)
	}
	return nil
}

type silent struct{}

func (silent) Report(runners.Event) {}
