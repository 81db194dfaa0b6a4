// Package sdpatest tests the shipped FP8 attention kernels. Every variant is compiled for every architecture that it names, and
// the gate judges the compiler's report by the policy's budgets. The reference is compared with float64.
package sdpatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// folder holds the kernels.
const folder = "../../../../kernels/sdpa_fp8/"

type silent struct{}

func (silent) Report(runners.Event) {}

func readManifest(t *testing.T) (*manifest.Manifest, string) {
	t.Helper()
	text, err := os.ReadFile(folder + manifest.FileName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(manifest.FileName, text)
	if err != nil {
		t.Fatal(err)
	}
	return m, string(text)
}

// hopper is for variants that are built for one block an SM with all of its registers.
const hopper = `version: 1
gates:
  ptxas: {registers: "<= 224", shared_memory: "<= 227KiB", spill_stores: "<= 0B", spill_loads: "<= 0B", blocks_per_sm: ">= 1"}
rules:
  - name: default
`

// compiledOnly is a policy without the gates that need a GPU.
func compiledOnly(t *testing.T, file string, text []byte) *policy.Policy {
	t.Helper()
	p, err := policy.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Rules {
		g := &p.Rules[i].Gates
		g.Correctness, g.Performance, g.Profile = nil, nil, nil
	}
	return p
}

// judge compiles a variant for an architecture and lets the gate judge it.
func judge(t *testing.T, p *policy.Policy, variant, arch string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	job, b := backend(t, p, variant, arch)
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "budget_test", e)
}

// judgeOnce is judge without the second build, which shows that the source does not depend on where it is compiled.
func judgeOnce(t *testing.T, p *policy.Policy, variant, arch string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	job, b := backend(t, p, variant, arch)
	build, err := b.BuildArm(t.Context(), variant, job.Candidate, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := job.NoEvidence()
	e.Abilities, e.Device, e.Candidate = new(b.Abilities()), b.Device(), &build
	if e.Shapes, err = job.ShapesOnRecord(); err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "budget_test", e)
}

func backend(t *testing.T, p *policy.Policy, variant, arch string) (runners.Job, *cuda.Backend) {
	t.Helper()
	m, text := readManifest(t)
	dir, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	// Shared by all runs: what has not changed is compiled once.
	cache := toolchaintest.Builds(t)
	job := runners.Job{Manifest: m, ManifestText: text, Policy: p, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: variant}}
	b, err := cuda.New(t.Context(), job, cuda.Config{Scratch: t.TempDir(), Cache: cache, Arch: arch, Seed: 1, Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return job, b
}

// needs skips a test for which something is missing, but not in CI, where `make setup` has fetched it.
func needs(t *testing.T, missing error) {
	t.Helper()
	if missing != nil && os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	if missing != nil {
		t.Skip(missing)
	}
}

// needsCompiler skips a test where there is no nvcc or no sandbox.
func needsCompiler(t *testing.T) {
	t.Helper()
	_, err := toolchain.FindCUDA(t.Context(), os.Getenv)
	if err == nil && !sandbox.Probe().Works() {
		err = sandbox.ErrUnsupported
	}
	needs(t, err)
}

// Every variant is within its budget on every architecture that it names. A source is built twice for the first of them.
func TestBudgets(t *testing.T) {
	needsCompiler(t)
	l4, err := os.ReadFile("../../../../policies/l4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := readManifest(t)
	twice := map[string]bool{}
	for _, v := range m.Variants {
		for _, arch := range m.ArchOf(v.Name) {
			judge := judge
			if file := m.SourceFile(v); twice[file] {
				judge = judgeOnce
			} else {
				twice[file] = true
			}
			t.Run(v.Name+" "+string(arch), func(t *testing.T) {
				t.Parallel()
				p := compiledOnly(t, "hopper.yaml", []byte(hopper))
				if arch == "sm_89" {
					p = compiledOnly(t, "l4.yaml", l4)
				}
				e, verdict := judge(t, p, v.Name, strings.TrimSuffix(string(arch), "a"))
				if verdict.Outcome != gates.Pass {
					t.Fatalf("%s (%s): %s %s", verdict.Outcome, verdict.Reason, verdict.Summary, e.Fault)
				}
				r := e.Candidate.Resources
				if e.Candidate.Arch != string(arch) || r.Registers == nil || *r.Registers == 0 || r.SpillStores == nil || r.SpillLoads == nil {
					t.Fatalf("the build's evidence is not whole: %+v", e.Candidate)
				}
				for _, w := range r.Warnings {
					t.Errorf("ptxas warns: %s", w)
				}
				shared := 0
				for _, part := range []*int{r.StaticShared, r.DynamicShared} {
					if part != nil {
						shared += *part
					}
				}
				t.Logf("%d registers, %d bytes of shared memory", *r.Registers, shared)
			})
		}
	}
}

// The gate must be able to say no: as many blocks an SM as the registers never allow.
func TestBudgetsAreJudged(t *testing.T) {
	needsCompiler(t)
	p := compiledOnly(t, "strict.yaml", []byte(strings.Replace(hopper, ">= 1", ">= 9", 1)))
	m, _ := readManifest(t)
	_, verdict := judge(t, p, m.DefaultVariant, "sm_89")
	if verdict.Outcome != gates.Defer || verdict.Reason != gates.ReasonResources {
		t.Errorf("%s (%s): %s", verdict.Outcome, verdict.Reason, verdict.Summary)
	}
}

// Variants that were written for the first problem alone, or for one D, are not run on others.
func TestLimits(t *testing.T) {
	m, _ := readManifest(t)
	dims := func(d, causal int) manifest.Dims {
		return manifest.Dims{{Name: "B", Value: 1}, {Name: "H", Value: 2}, {Name: "S", Value: 100}, {Name: "D", Value: d}, {Name: "causal", Value: causal}}
	}
	first := map[string]bool{"stage0": true, "stage1": true, "stage2": true, "stage3a": true, "stage3a_xor": true}
	only := map[string]int{"stage7": 64, "stage7_unshared": 64, "stage7_wide": 128, "stage7_wide3": 128} // causal or not
	for _, v := range m.Variants {
		for _, d := range []int{64, 128} {
			for _, causal := range []int{0, 1} {
				want := d == 64 && causal == 0 || !first[v.Name]
				if size, ok := only[v.Name]; ok {
					want = d == size
				}
				if got := m.Supports(v.Name, dims(d, causal)); got != want {
					t.Errorf("%s at %s: supported %v, want %v", v.Name, dims(d, causal), got, want)
				}
			}
		}
		size := max(only[v.Name], 64)
		if _, err := m.Steps(v.Name, dims(size, 0), nil); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
