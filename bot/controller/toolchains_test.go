package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// twoTritons is the digests of the two that make setup fetches, by version.
func twoTritons(t *testing.T, cache string) map[string]string {
	t.Helper()
	list, err := toolchain.Installed{Getenv: os.Getenv, Cache: &toolchain.Cache{Dir: cache}}.List(t.Context())
	digests := map[string]string{}
	for _, c := range list {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		digests[c.Kind+" "+c.Version] = c.Digest
	}
	if (digests["triton 3.6.0"] == "" || digests["triton 3.9.0"] == "" || !sandbox.Probe().Works()) && os.Getenv("CI") == "" {
		t.Skipf("two versions of Triton and a sandbox are needed, and here are %v (%v): run make setup", digests, err)
	}
	return digests
}

// pointwise is kernels that differ in what they make of a number.
var pointwise = map[string]string{
	"copy": "v", "relu": "tl.maximum(v, 0.0)", "square": "v * v", "exp": "tl.exp(v)", "sigmoid": "1.0 / (1.0 + tl.exp(-v))",
	"silu": "v / (1.0 + tl.exp(-v))", "twice": "v + v", "logs": "tl.log(v * v + 1.0)", "root": "tl.sqrt(tl.abs(v))",
}

// pointwiseKernel is a kernel's folder: its problem, its reference and its source in Triton.
func pointwiseKernel(name, load, expression string) map[string]string {
	folder := "kernels/" + name + "/"
	return map[string]string{
		folder + "kernel.yaml": `version: 1
name: ` + name + `
mode: cuda
compiler: triton
entry: ` + name + `_kernel
arch: [sm_89]
source: kernel.py
constants: {BLOCK: 1024}
launch: {grid: ["ceildiv(N, 1024)"]}
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.001}
shapes: {mission: {N: 1048576}}
`,
		folder + "reference.cu": "extern \"C\" __global__ void reference(const float *x, float *y, int n) {}\n",
		folder + "kernel.py": `import triton
import triton.language as tl


@triton.jit
def ` + name + `_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = ` + load + `
    tl.store(y + at, ` + expression + `, mask=at < n)
`,
	}
}

const (
	masked  = "tl.load(x + at, mask=at < n)"
	pointed = "tl.load(tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(tl.program_id(0) * BLOCK,), block_shape=(BLOCK,), order=(0,)), boundary_check=(0,))"
)

// pinning is a policy that asks for what a compiler can tell, and pins Triton.
func pinning(version, digest string) string {
	return fmt.Sprintf("version: 1\ndevices: [cpu]\ntoolchains:\n  triton: {version: %s, digest: %q}\ngates:\n  ptxas: {registers: \"<= 64\", spill_stores: \"<= 0B\"}\nrules: [{name: default}]\n", version, digest)
}

// A pull request moves the pin of Triton: every kernel is built by both, and judged. One does not compile any more, and is told
// first; once it is mended, and a maintainer agrees to the new policy, it passes. A compiler that the runner does not
// have is told, and brought by nobody.
func TestToolchainAsPullRequest(t *testing.T) {
	long.Test(t)
	cache := toolchaintest.Builds(t)
	digests := twoTritons(t, cache)
	python, err := exec.Command("python3", "-I", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { // a name that leads there by detours would be followed once a kernel
		if name == "KERNELGATE_PYTHON" {
			return cmp.Or(os.Getenv(name), strings.TrimSpace(string(python)))
		}
		return os.Getenv(name)
	}
	var mu sync.Mutex
	seen := map[string]*gates.Evidence{}
	w := newWorld(t, worldOptions{retold: true, measure: func(ctx context.Context, job measuring.Job, dir string, p measuring.Progress) (measuring.Measured, error) {
		b, err := cuda.New(ctx, job, cuda.Config{Scratch: dir, Cache: cache, Arch: "sm_89", Seed: 1, Getenv: getenv})
		if err != nil {
			return measuring.Measured{}, err
		}
		e, err := gather.Gather(ctx, job, b, p)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			seen[job.Manifest.Name] = e
		}
		return measuring.Measured{Evidence: e}, err
	}})
	files := map[string]string{".github/kernelgate.yaml": pinning("3.6.0", digests["triton 3.6.0"])}
	add := func(more map[string]string) {
		for name, text := range more {
			files[name] = text
		}
	}
	for name, expression := range pointwise {
		add(pointwiseKernel(name, masked, expression))
	}
	add(pointwiseKernel("blocks", pointed, "v + 1.0"))
	_, err = w.repo.Push("main", files, "Kernels in Triton")
	w.no(err)
	w.settle()

	pr := w.bring("triton-3.9", map[string]string{".github/kernelgate.yaml": pinning("3.9.0", digests["triton 3.9.0"])})
	w.concluded(pr.HeadSHA(), "failure")
	if len(seen) != len(pointwise)+1 {
		t.Errorf("%d kernels were built, want %d", len(seen), len(pointwise)+1)
	}
	for name, e := range seen {
		if e.Baseline == nil || e.Baseline.Compiler != "triton 3.6.0" || e.Candidate.Compiler != "triton 3.9.0" || e.Candidate.Digest != digests["triton 3.9.0"] || !e.Baseline.OK {
			t.Errorf("%s: %+v, %+v %s", name, e.Baseline, e.Candidate, e.Fault)
			continue
		}
		switch {
		case name == "blocks" && e.Candidate.OK:
			t.Error("block pointers are no more in 3.9, and this kernel compiles")
		case name == "copy" && !e.SameCode || name == "logs" && e.SameCode:
			t.Errorf("%s: the same code by both is %v", name, e.SameCode)
		case e.Candidate.OK && !e.SameCode && (e.MachineCode == nil || len(e.MachineCode.Changes) == 0):
			t.Errorf("%s: what differs is not shown: %+v", name, e.MachineCode)
		}
	}
	body := tableOf(w, pr)
	if !strings.Contains(body, "DEFER (build)") || !strings.HasPrefix(strings.SplitN(body, "\n", 4)[2], "| `blocks` ") || strings.Count(body, "triton 3.6.0 → 3.9.0") != len(pointwise)+1 || !strings.Contains(body[strings.LastIndex(body, "\n"):], "✅ PASS | the same code ") {
		t.Errorf("the table over all kernels is\n%s", body)
	}

	// The kernel is mended in the same pull request. Another compiler is a change of the rules, and waits for a maintainer.
	_, err = w.repo.Push("triton-3.9", pointwiseKernel("blocks", masked, "v + 1.0"), "Leave block pointers")
	w.no(err)
	head := pr.HeadSHA()
	c := w.concluded(head, "action_required")
	if !strings.Contains(c.Summary, "toolchains.triton") {
		t.Errorf("the check does not tell what is to be approved: %s", c.Summary)
	}
	w.comment(pr, "mara", "/approve-policy "+head)
	w.concluded(head, "success")
	w.no(pr.Merge("mara"))
	w.settle()

	// Nobody brings a compiler: a pin names one that the runner has, or nothing is built.
	lacks := w.bring("triton-3.7", map[string]string{".github/kernelgate.yaml": pinning("3.7.1", digests["triton 3.9.0"])})
	w.concluded(lacks.HeadSHA(), "failure")
	w.said(lacks, "the policy pins triton 3.7.1, which this host does not have (it has 3.9.0 in ")
}

// tableOf is the table over all kernels in the bot's comment.
func tableOf(w *world, pr *embedded.PR) string {
	w.Helper()
	w.said(pr, "| kernel | verdict | instructions ")
	for _, c := range pr.Comments() {
		if _, table, ok := strings.Cut(c.Body, "| kernel | verdict | instructions "); ok {
			table, _, _ = strings.Cut(table, "\n\n")
			return "| kernel | verdict | instructions " + table
		}
	}
	return ""
}
