package serve_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

const (
	// normManifest is of a kernel whose author never heard of the gate.
	normManifest = `version: 1
name: rms_norm
mode: cuda
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: w, dtype: f32, access: in, shape: [C]}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - name: params
    access: struct
    fields:
      - {name: x, pointer: x}
      - {name: w, pointer: w}
      - {name: y, pointer: y}
      - {name: bias, pointer: none}
      - {name: cols, dtype: i32, value: C}
      - {name: epsilon, dtype: f32, value: 0.000001}
reference: {source: rms_reference.cu, entry: reference, launch: {grid: [R], block: [1]}}
tolerance: {abs: 0.001}
shapes: {mission: {R: 64, C: 1024}}
root: csrc/norm
include: [csrc/common]
entry: lib::norm::rms_norm<128, true>
arch: [sm_89, sm_90]
source: rms_norm.cu
launch: {grid: [R], block: [128], shared_memory: 512}
`
	normParams = `#pragma once
namespace lib { namespace norm {
struct Params { const float *x, *w; float *y; const float *bias; int cols; float epsilon; };
} }
`
	normReduce = `#pragma once
namespace lib {
template <int Threads> __device__ float block_sum(float value, float *room)
{
    room[threadIdx.x] = value;
    for (int n = Threads / 2; n > 0; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) room[threadIdx.x] += room[threadIdx.x + n];
    }
    __syncthreads();
    return room[0];
}
}
`
	normSource = `#include "params.h"
#include "../common/reduce.cuh"
namespace lib { namespace norm {
template <int Threads, bool Weighted> __global__ void rms_norm(Params p)
{
    extern __shared__ float room[];
    const float *x = p.x + (size_t)blockIdx.x * p.cols;
    float sum = 0;
    for (int c = threadIdx.x; c < p.cols; c += Threads) sum += x[c] * x[c];
    float scale = rsqrtf(block_sum<Threads>(sum, room) / p.cols + p.epsilon);
    for (int c = threadIdx.x; c < p.cols; c += Threads) p.y[(size_t)blockIdx.x * p.cols + c] = x[c] * scale * (Weighted ? p.w[c] : 1);
}
template __global__ void rms_norm<128, true>(Params);
} }
`
	normReference = "extern \"C\" __global__ void reference(const float *x, const float *w, float *y) {}\n"
	normPolicy    = `version: 1
devices: [l4]
gates: {ptxas: {shared_memory: {max: 16KiB}}}
rules: [{name: default}]
`
)

// normRepository keeps kernels, headers and gates in folders of their own: two kernels
// with one manifest each in the same one.
func normRepository() map[string]string {
	layer := strings.NewReplacer("rms_norm", "layer_norm", "rms_reference", "layer_reference")
	return map[string]string{
		".github/kernelgate.yaml": normPolicy,
		"gated/rms.kernel.yaml":   normManifest, "gated/rms_reference.cu": normReference,
		"gated/layer.kernel.yaml": layer.Replace(normManifest), "gated/layer_reference.cu": normReference,
		"csrc/norm/params.h": normParams, "csrc/norm/rms_norm.cu": normSource, "csrc/norm/layer_norm.cu": layer.Replace(normSource), "csrc/norm/bindings.cu": "// for Python\n",
		"csrc/common/reduce.cuh": normReduce, "csrc/common/unused.cuh": "#pragma once\n",
	}
}

// The pull requests of a repository that was not laid out for the gate: another launch,
// another template argument, a header that two kernels read, and a new default variant in a
// new file are built as the head says, for both architectures, and what is wrong with any of
// them is found. None is green unjudged.
func TestAnotherLayout(t *testing.T) {
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Parallel()
	w := newWorld(t)
	_, err := w.repo.Push("main", normRepository(), "Norms")
	w.no(err)
	w.repo.Protect("main", "kernelgate")
	o := w.options()
	o.LeaseFor = time.Minute // compilers may take all of the machine
	o.Config.Runners = []serve.RemoteRunner{{Name: "l4", Labels: []string{"l4"}}}
	o.Secrets.Runners = map[string]string{"l4": "a token of sixteen or more"}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	built := w.compiling(s.URL(), o.Secrets.Runners["l4"])

	staged := strings.Replace(normManifest, "source: rms_norm.cu\n", "variants:\n  plain: {source: rms_norm.cu}\n  fast: {source: fast/rms_fast.cu, flags: [--use_fast_math]}\ndefault_variant: fast\n", 1)
	fast := strings.Replace(strings.Replace(normSource, "\"params.h\"", "\"../params.h\"", 1), "../common", "../../common", 1)
	for name, c := range map[string]struct {
		files map[string]string
		gated string // kernels
		says  string // what fails it; it passes where that is empty
	}{
		"launch":           {map[string]string{"gated/rms.kernel.yaml": edit(t, normManifest, "shared_memory: 512", "shared_memory: 1024")}, "rms_norm", ""},
		"launch-greedy":    {map[string]string{"gated/rms.kernel.yaml": edit(t, normManifest, "shared_memory: 512", "shared_memory: 20480")}, "rms_norm", "shared memory"},
		"template":         {map[string]string{"gated/rms.kernel.yaml": edit(t, normManifest, "<128, true>", "<64, false>", "block: [128]", "block: [64]")}, "rms_norm", ""},
		"template-wrong":   {map[string]string{"gated/rms.kernel.yaml": edit(t, normManifest, "<128, true>", "<128, true, 7>")}, "rms_norm", "rms_norm"},
		"header":           {map[string]string{"csrc/common/reduce.cuh": edit(t, normReduce, "n /= 2", "n >>= 1")}, "layer_norm rms_norm", ""},
		"header-wrong":     {map[string]string{"csrc/common/reduce.cuh": edit(t, normReduce, "return room[0]", "return rooom[0]")}, "layer_norm rms_norm", "rooom"},
		"variant":          {map[string]string{"gated/rms.kernel.yaml": staged, "csrc/norm/fast/rms_fast.cu": fast}, "rms_norm", ""},
		"variant-wrong":    {map[string]string{"gated/rms.kernel.yaml": staged, "csrc/norm/fast/rms_fast.cu": fast + "}\n"}, "rms_norm", "rms_fast.cu"},
		"what nobody uses": {map[string]string{"csrc/common/unused.cuh": "#error\n", "csrc/norm/bindings.cu": "// better\n", "gated/README.md": "x\n"}, "", ""},
	} {
		branch := strings.ReplaceAll(name, " ", "-")
		_, err := w.repo.Push(branch, c.files, name)
		w.no(err)
		pr, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: name, Head: branch})
		w.no(err)
		check := w.completed(pr.HeadSHA())
		said := check.Title + check.Summary
		for _, kernel := range strings.Fields(c.gated) {
			own := w.completedCheck(pr.HeadSHA(), "kernelgate / "+kernel)
			said += own.Title + own.Summary
		}
		for _, kernel := range []string{"layer_norm", "rms_norm", "scale"} {
			if _, is := w.repo.Check(pr.HeadSHA(), "kernelgate / "+kernel); is && !strings.Contains(c.gated, kernel) {
				t.Errorf("%s: %s is gated", name, kernel)
			}
		}
		if passes := check.Conclusion == "success"; passes != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: it concludes %s, want %q said:\n%s", name, check.Conclusion, c.says, said)
		}
	}
	if got := built(); !slices.Equal(got, []string{"sm_89 layer_norm.cu", "sm_89 rms_norm.cu", "sm_89 fast/rms_fast.cu", "sm_90 layer_norm.cu", "sm_90 rms_norm.cu", "sm_90 fast/rms_fast.cu"}) {
		t.Errorf("candidates were built for %q", got)
	}
}

func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not there", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// compiling connects a runner that compiles for two architectures and measures nothing. It
// tells what was built as a candidate.
func (w *world) compiling(server, token string) (built func() []string) {
	w.Helper()
	cache, state := toolchaintest.Builds(w), w.TempDir()
	var mu sync.Mutex
	seen := map[string]bool{}
	one := func(ctx context.Context, arch string, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		out, err := measure.Config{Static: true, Arch: arch, Cache: cache}.Measure(ctx, job, scratch, p)
		if err == nil && out.Evidence.Candidate != nil && out.Evidence.Candidate.OK {
			mu.Lock()
			defer mu.Unlock()
			seen[arch+" "+out.Evidence.Candidate.Source] = true
		}
		return out, err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{Servers: []string{server}, Token: token, Name: "l4", Labels: []string{"l4"}, StateDir: state,
			Measure: func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
				out, err := one(ctx, "sm_89", job, scratch, p)
				if err != nil || out.Evidence.Candidate == nil || !out.Evidence.Candidate.OK {
					return out, err
				}
				if other, err := one(ctx, "sm_90", job, scratch, p); err != nil || other.Evidence.Candidate == nil || !other.Evidence.Candidate.OK {
					w.Errorf("%s is built for one architecture alone (%v): %+v", job.Key, err, other.Evidence)
				}
				return out, nil
			},
		})
	}()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		var all []string
		for _, arch := range []string{"sm_89", "sm_90"} {
			for _, source := range []string{"layer_norm.cu", "rms_norm.cu", "fast/rms_fast.cu"} {
				if seen[arch+" "+source] {
					all = append(all, arch+" "+source)
				}
			}
		}
		return all
	}
}
