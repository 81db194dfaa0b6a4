package controller_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// From the webhook to the verdict, with one runner that compiles and another that measures on a GPU what it was handed. It needs a GPU
// and the program, which KERNELGATE_GPU_PROGRAM names (see runners/backend/cuda/gpu.sh).
func TestBuildsMeasuredOnGPU(t *testing.T) {
	program := os.Getenv("KERNELGATE_GPU_PROGRAM")
	if program == "" {
		t.Skip("KERNELGATE_GPU_PROGRAM names no program: this is for a host with a GPU")
	}
	w := newFleet(t)
	const alone = "  if (threadIdx.x == 0) for (int j = i; j < i + 256 && j < N; j++) y[j] = 2 * x[j];"
	_, err := w.repo.Push("main", map[string]string{
		"kernels/twice/kernel.yaml": strings.NewReplacer("arch: [sm_89]", "arch: [sm_89, sm_90]", "N: 1024", "N: 1048576").Replace(twiceManifest),
		"kernels/twice/twice.cu":    twice(alone),
		".github/kernelgate.yaml": "version: 1\ndevices: [gpu]\ngates:\n  ptxas: {registers: \"<= 64\"}\n  correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}\n" +
			"  performance:\n    target: {shapes: all, speedup: \">= +100%\"}\n    control: 5%\nrules: [{name: default}]\n",
	}, "One thread of a block does it all")
	w.no(err)
	builder := measure.Config{Cache: toolchaintest.Builds(t), Getenv: os.Getenv, Name: "build1"}
	w.hire(agent.Config{Name: "build1", Labels: []string{"build-nvcc"}, Build: builder.Build})
	gpu := measure.Config{Worker: []string{program, "gpu-worker"}, Getenv: os.Getenv, Name: "gpu1"} // without a cache of its own
	var mu sync.Mutex
	seen := map[string]*gates.Evidence{} // by title
	w.hire(agent.Config{Name: "gpu1", Labels: []string{"gpu"}, Measure: func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		got, err := gpu.Measure(ctx, job, scratch, p)
		mu.Lock()
		defer mu.Unlock()
		seen[job.Change.Title] = got.Evidence
		return got, err
	}})

	measured := func(branch, body, conclusion, title string) *gates.Evidence {
		pr := w.rewrite(branch, twice(body))
		c := w.decided(pr.HeadSHA(), conclusion)
		if !strings.Contains(c.Title, title) {
			t.Errorf("%s: the check says %q", branch, c.Title)
		}
		w.said(pr, "Compiled on build1.")
		mu.Lock()
		e := seen[branch]
		mu.Unlock()
		if e == nil || e.Baseline == nil || e.Candidate == nil {
			t.Fatalf("%s: the evidence is %+v", branch, e)
		}
		if !e.Baseline.Cached || !e.Candidate.Cached || e.SameCode || !slices.Contains(e.Notes, "Compiled on build1.") || e.Device.Arch != "sm_90" {
			t.Errorf("%s: %+v: baseline %+v, candidate %+v, notes %q", branch, e.Device, e.Baseline, e.Candidate, e.Notes)
		}
		t.Logf("%s on %s: %s", branch, e.Device.Name, c.Title)
		return e
	}
	if e := measured("all", doubles, "success", "PASS"); e.Performance == nil {
		t.Error("nothing was timed")
	}
	if e := measured("thrice", "  if (i < N) y[i] = 3 * x[i];", "failure", "DEFER (correctness)"); e.Performance != nil {
		t.Error("what is wrong was timed")
	}
}
