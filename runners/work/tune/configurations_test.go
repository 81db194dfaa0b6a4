package tune

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

const tunedManifest = `version: 1
name: scale
mode: cuda
compiler: triton
entry: scale_kernel
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
source: kernel.py
autotune: {BLOCK: 64, num_warps: 2} # the first one
launch: {grid: ["ceildiv(N, BLOCK)"]}
reference: {source: reference.cu, entry: reference, launch: {grid: ["ceildiv(N, 256)"], block: [256]}}
tolerance: {abs: 0.001}
shapes: {mission: {N: 10000}}
`

const tunedSource = `import triton
import triton.language as tl


@triton.autotune(configs=[
    triton.Config({"BLOCK": 64}, num_warps=2),
    triton.Config({"BLOCK": 128}, num_warps=4),
    triton.Config({"BLOCK": 1024}, num_warps=8),
    triton.Config({"BLOCK": 100}, num_warps=8),
], key=["n"])
@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
`

// tunedRunner is a runner for a kernel with configurations, on a bench that only compiles.
func tunedRunner(t *testing.T) (*runner, *arm.Bench) {
	t.Helper()
	if _, err := toolchain.FindTriton(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"kernel.py": tunedSource, "reference.cu": "extern \"C\" __global__ void reference(const float *x, float *y, int n) {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := manifest.Parse("kernel.yaml", []byte(tunedManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(scriptedPolicy))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := folderhash.Sum(dir)
	if err != nil {
		t.Fatal(err)
	}
	side := runners.Side{Dir: dir, Variant: m.DefaultVariant, Sources: sources}
	job := runners.Job{Manifest: m, ManifestText: tunedManifest, Policy: p, PolicyFile: "policy.yaml", Trusted: dir, Baseline: &side, Candidate: side}
	bench, err := arm.NewBench(measure.Config{Static: true, Arch: "sm_90", Cache: toolchaintest.Builds(t)}, job, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &runner{job: job, scratch: t.TempDir()}, bench
}

// TestConfigurations builds the configurations of @triton.autotune as candidates.
func TestConfigurations(t *testing.T) {
	r, bench := tunedRunner(t)
	offered, chosen, err := r.offered(t.Context(), bench)
	if err != nil {
		t.Fatal(err)
	}
	space, err := NewSpace(r.job.Manifest, r.job.Manifest.DefaultVariant, nil, []string{Autotune})
	if err == nil {
		err = space.tuned(offered, chosen)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(space.Configurations) != 4 || space.Size() != 4 || space.Own["default"][Autotune] != 0 || !strings.HasPrefix(space.Configurations[1], "BLOCK=128, num_warps=4, ") {
		t.Fatalf("the space is %+v", space)
	}
	lab := NewBenchLab(bench, nil, space, r.job, "none", filepath.Join(t.TempDir(), "arms"), nil)
	defer lab.Close()
	all, err := (grid{}).Propose(t.Context(), State{Space: space, Left: 10, Tried: []Tried{{ID: space.ID(Candidate{Variant: "default"})}}})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	codes := map[string]bool{}
	for i, c := range all {
		b, err := lab.Build(t.Context(), space.ID(c), c)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 { // 100 is no power of two
			if b.Refusal == nil || !strings.Contains(b.Refusal.String(), "power of 2") {
				t.Errorf("%s: %v", space.ID(c), b.Refusal)
			}
			continue
		}
		if b.Refusal != nil || b.Incumbent || b.Same == "" {
			t.Fatalf("%s: %+v", space.ID(c), b)
		}
		codes[b.Same] = true
		if threads := *b.Resources.BlockThreads; threads != []int{128, 256}[i] {
			t.Errorf("%s has blocks of %d threads", space.ID(c), threads)
		}
	}
	if len(codes) != 2 {
		t.Errorf("%d different codes of two configurations", len(codes))
	}
	if b, err := lab.Build(t.Context(), "own", Candidate{Variant: "default", Toggles: Settings{Autotune: 0}}); err != nil || !b.Incumbent {
		t.Errorf("the manifest's own configuration is not the incumbent: %+v %v", b, err)
	}
}

// TestConfigurationSpace checks which configurations of a decorator become part of the space, and how the
// manifest changes at the end.
func TestConfigurationSpace(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(tunedManifest))
	if err != nil {
		t.Fatal(err)
	}
	space, err := NewSpace(m, "default", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	offered := []string{"BLOCK=64, num_warps=2", "BLOCK=64, MODE=fast, num_warps=2", "BLOCK=128, EVEN=True, num_warps=4, its pre_hook is not called", "BLOCK=64, num_warps=2", "BLOCK=…"}
	if err := space.tuned(offered, []string{"BLOCK=64, num_warps=2"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{offered[0], offered[2]}; !slices.Equal(space.Configurations, want) {
		t.Errorf("the configurations are %q, want %q", space.Configurations, want)
	}
	c := Candidate{Variant: "default", Toggles: Settings{Autotune: 1}}
	search := Search{space: space, ids: map[string]*Tried{}}
	c = search.add(c).Candidate
	if c.Configuration != offered[2] || space.Short(c) != "default,autotune=1" || space.Short(c.untuned()) != "default" {
		t.Errorf("%+v is %q", c, space.Short(c))
	}
	golden(t, "edit-autotune.diff", Diff("kernel.yaml", []byte(tunedManifest), c, nil, nil))
	if err := (&Space{Toggles: []Toggle{{Name: Autotune}}}).tuned(offered, nil); err == nil {
		t.Error("a toggle of that name is taken for the configurations")
	}
	one := Space{Own: maps.Clone(space.Own)}
	if err := one.tuned(offered[:1], nil); err != nil || len(one.Toggles) > 0 {
		t.Errorf("one configuration leaves nothing to search, and the toggles are %v (%v)", one.Toggles, err)
	}
}
