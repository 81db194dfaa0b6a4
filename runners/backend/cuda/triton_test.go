package cuda

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// needsTriton skips a test where there is none, but not in CI, where `make setup` has fetched it.
func needsTriton(t *testing.T) {
	t.Helper()
	if _, err := toolchain.FindTriton(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// A tritonTrial is a Triton kernel of testdata against itself: other toggles, or another text.
type tritonTrial struct {
	kernel              string // of testdata/triton
	policy              string
	baseline, candidate string                     // variants
	edit                func(source string) string // of the candidate
	before              func(source string) string // of both
	arch                string                     // without a GPU
	manifest            func(text string) string
}

func readText(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// gather builds and judges; open is the backend before that.
func (tr tritonTrial) gather(t *testing.T) (*gates.Evidence, *gates.Verdict, runners.Job) {
	t.Helper()
	b, job := tr.open(t)
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(job.Policy, "test.yaml", e), job
}

func (tr tritonTrial) open(t *testing.T) (*Backend, runners.Job) {
	t.Helper()
	text := readText(t, "testdata", "triton", tr.kernel+".yaml")
	if tr.manifest != nil {
		text = tr.manifest(text)
	}
	source := readText(t, "..", "..", "build", "toolchain", "testdata", "triton", tr.kernel+".py")
	if tr.before != nil {
		source = tr.before(source)
	}
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(tr.policy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	side := func(name, source, variant string) runners.Side {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"kernel.py": source, "reference.cu": readText(t, "testdata", "triton", tr.kernel+".cu")} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		sources, err := folderhash.Sum(dir)
		if err != nil {
			t.Fatal(err)
		}
		return runners.Side{Dir: dir, Variant: variant, Sources: sources}
	}
	base := side("base", source, tr.baseline)
	if tr.edit != nil {
		was := source
		if source = tr.edit(source); source == was {
			t.Fatal("the edit changed nothing")
		}
	}
	job := runners.Job{Manifest: m, ManifestText: text, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: side("head", source, tr.candidate)}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Arch: tr.arch, Getenv: os.Getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, job
}

// A secret shape may need code that was not compiled before. Where the candidate has none for it, that is a case that failed.
func TestTritonCover(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	const policy = "version: 1\ngates: {}\nrules: [{name: default}]\n"
	small := func(text string) string {
		return strings.NewReplacer("secret: {C: 900..1100}\n", "", "  mission: {R: 6144, C: 8192}\n", "").Replace(text)
	}
	drawn := []worker.Case{{Case: runners.Case{Shape: manifest.Shape{Name: "ragged", Dims: manifest.Dims{{Name: "R", Value: 37}, {Name: "C", Value: 1000}}}}}, {Case: runners.Case{Shape: manifest.Shape{Name: "secret1", Dims: manifest.Dims{{Name: "R", Value: 37}, {Name: "C", Value: 301}}}, Secret: true}}}
	for name, edit := range map[string]func(string) string{
		"compiles": nil,
		"does not compile": func(s string) string {
			return strings.Replace(s, "    row =", "    tl.static_assert(BLOCK != 512, \"no such row\")\n    row =", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, job := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90", edit: edit, manifest: small}.open(t)
			if e, err := gather.Gather(t.Context(), job, b, silent{}); err != nil || !e.Candidate.OK {
				t.Fatal(err, e)
			}
			if n := len(b.kinds[runners.Candidate].cubins); n != 1 {
				t.Fatalf("%d kinds are compiled before anything is drawn, want 1", n)
			}
			failure, err := b.cover(t.Context(), nil, []manifest.Shape{drawn[1].Shape}) // timed, and no case
			if err != nil {
				t.Fatal(err)
			}
			if edit != nil {
				if failure == nil || failure.Kind != gates.FailureBuild || !strings.Contains(failure.Detail, "no such row") || b.uncovered(nil, []manifest.Shape{drawn[1].Shape}, failure).Shape != "secret1" || b.uncovered(drawn, nil, failure).Shape != "secret1" {
					t.Errorf("it failed with %+v at %+v", failure, b.uncovered(drawn, nil, failure))
				}
				return
			}
			var kinds map[string]sides.Built
			if err := json.Unmarshal([]byte(readText(t, b.sides[runners.Candidate].Kinds)), &kinds); err != nil || failure != nil || len(kinds) != 2 {
				t.Fatalf("%d kinds are told, want 2 (%v, %v)", len(kinds), failure, err)
			}
			special, err := job.Manifest.Specials("wide", drawn[1].Shape.Dims, nil, false)
			if built, ok := kinds[special[0].Key()]; err != nil || !ok || built.Start == nil || built.Start.Block[0] != 256 {
				t.Errorf("a launch finds %+v (%v)", built, err)
			}
		})
	}
}

// Without a GPU a Triton kernel still compiles for any architecture: its resources are judged, and equal code is told as equal.
func TestTritonStatic(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 64\", spill_stores: \"<= 0B\"}\nrules: [{name: default}]\n"
	t.Run("another tile", func(t *testing.T) {
		e, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "narrow", candidate: "wide", arch: "sm_90"}.gather(t)
		if v.Outcome != gates.Pass {
			t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
		base, cand := e.Baseline, e.Candidate
		if *base.Resources.BlockThreads != 32 || *cand.Resources.BlockThreads != 256 || base.Code == cand.Code || e.SameCode {
			t.Errorf("blocks of %d and %d threads, same code %v", *base.Resources.BlockThreads, *cand.Resources.BlockThreads, e.SameCode)
		}
		if !strings.HasPrefix(cand.Compiler, "triton 3.") || *cand.Resources.Registers < 8 || *cand.Resources.SpillStores != 0 || cand.EntryLine != 5 {
			t.Errorf("the build's evidence is not whole: %+v", cand)
		}
		if notes := strings.Join(v.Notes, " "); strings.Contains(notes, "own words") {
			t.Errorf("the author's word is taken: %s", notes)
		}
		m := e.MachineCode
		if m == nil || len(m.Changes) == 0 {
			t.Fatalf("nobody shows what differs: %+v", m)
		}
		if c := m.Changes[0]; c.Kernel != "softmax_kernel" || c.Baseline.Special == 0 || c.Candidate.Barrier == 0 || c.Baseline.Barrier != 0 || !strings.Contains(c.Diff, " kernel.py:") {
			t.Errorf("one warp %+v, eight %+v of %s:\n%s", c.Baseline, c.Candidate, c.Kernel, c.Diff)
		}
	})
	t.Run("the same text", func(t *testing.T) {
		e, _, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90"}.gather(t)
		if !e.SameCode || e.MachineCode != nil || len(e.Notes) > 0 {
			t.Errorf("the same sources are another kernel: %q", e.Notes)
		}
	})
	// No size that is compiled before anything is drawn has rows of this width.
	t.Run("wrong at other sizes", func(t *testing.T) {
		e, _, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string {
				return strings.Replace(s, "    tl.store(", "    if BLOCK == 512:\n        v = v + 1.0\n    tl.store(", 1)
			}}.gather(t)
		if e.Candidate.Code != e.Baseline.Code {
			t.Fatal("the attack shows in the code that is compiled")
		}
		if e.SameCode || !strings.Contains(strings.Join(e.Notes, " "), "it may differ at other sizes") {
			t.Errorf("a kernel that is wrong at other sizes is the same: %v, %q", e.SameCode, e.Notes)
		}
	})
	// The configuration that the manifest chooses is built, and a change of the others alone is told and counts as another kernel.
	t.Run("other configurations", func(t *testing.T) {
		tuned := func(warps string) func(string) string {
			return func(s string) string {
				return strings.Replace(s, "@triton.jit", "@triton.autotune(configs=[triton.Config({}, num_warps="+warps+"), triton.Config({}, num_warps=2, num_stages=2)], key=[\"cols\"])\n@triton.jit", 1)
			}
		}
		choosing := func(text string) string {
			return strings.Replace(text, "num_warps: WARPS\n", "autotune: {num_warps: \"min(WARPS, 2)\"}\n", 1)
		}
		trial := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90", before: tuned("4"), manifest: choosing, edit: func(s string) string { return strings.Replace(s, "num_warps=4", "num_warps=8", 1) }}
		e, _, _ := trial.gather(t)
		const want = "The change edits the configurations of @triton.autotune, from 2 configurations to 2 configurations: - num_warps=4, num_stages=3, num_ctas=1; + num_warps=8, num_stages=3, num_ctas=1.\n@triton.autotune offers 2 configurations. Measured is what the manifest chooses: num_warps=2, num_stages=2, num_ctas=1."
		if e.SameCode || e.Candidate.Code != e.Baseline.Code || !strings.Contains(strings.Join(e.Notes, "\n"), want) {
			t.Errorf("same %v, notes %q", e.SameCode, e.Notes)
		}
		trial.edit = nil
		if e, _, _ := trial.gather(t); !e.SameCode || !strings.Contains(strings.Join(e.Notes, "\n"), "@triton.autotune offers 2 configurations. Measured is what the manifest chooses: num_warps=2, ") {
			t.Errorf("same %v, notes %q", e.SameCode, e.Notes)
		}
	})
	t.Run("a mistake", func(t *testing.T) {
		_, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string { return strings.Replace(s, "tl.max(", "tl.maxx(", 1) }}.gather(t)
		if v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, "kernel.py:10: ") {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
	t.Run("another type", func(t *testing.T) {
		_, v, _ := tritonTrial{kernel: "softmax", policy: policy, baseline: "wide", candidate: "wide", arch: "sm_90",
			edit: func(s string) string { return strings.Replace(s, "rows, cols,", "rows, cols: \"*fp32\",", 1) }}.gather(t)
		if v.Reason != gates.ReasonBuild {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
}

// Kernels with tensor descriptors compile for GPUs with tensor maps and without, and what they are launched with is equal where
// the code is: another view of an array is another launch.
func TestTritonDescriptorStatic(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 255\"}\nrules: [{name: default}]\n"
	for _, k := range descriptorKernels {
		for _, arch := range []string{"sm_89", "sm_90"} {
			if arch == "sm_89" && k.name == "matmul_descriptor" {
				continue // it takes longest, and the form shows in the other
			}
			t.Run(k.name+" "+arch, func(t *testing.T) {
				t.Parallel()
				b, job := tritonTrial{kernel: k.name, policy: policy, baseline: "narrow", candidate: "narrow", arch: arch,
					edit: func(s string) string { return strings.Replace(s, k.from, k.with, 1) }}.open(t)
				e, err := gather.Gather(t.Context(), job, b, silent{})
				if err != nil {
					t.Fatal(err)
				}
				if v := gates.Judge(job.Policy, "test.yaml", e); v.Outcome != gates.Pass || e.SameCode {
					t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
				}
				for _, cubin := range b.kinds[runners.Candidate].cubins {
					for _, p := range cubin.Start.Passed {
						if d := p.Descriptor; p.Type != "i32" && (d == nil || (d.Map != nil) != (arch == "sm_90")) {
							t.Errorf("%s is passed as %+v", p.Type, d)
						}
					}
				}
			})
		}
	}
}

// A descriptor that the kernel does not take as one, or a manifest that does not call an array so, is a build failure with its line.
func TestTritonDescriptorMismatch(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 255\"}\nrules: [{name: default}]\n"
	for name, test := range map[string]struct {
		from, to string // in the source
		want     string
	}{
		"other axes":   {"a.load([row, start])", "a.load([row, start, 0])", "kernel.py:11: "},
		"an address":   {"a.load([row, start])", "tl.load(a + row)", "kernel.py:11: "},
		"another type": {"(a, b, c,", "(a: \"*fp16\", b, c,", "kernel.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, v, _ := tritonTrial{kernel: "matmul_descriptor", policy: policy, baseline: "narrow", candidate: "narrow", arch: "sm_90",
				edit: func(s string) string { return strings.Replace(s, test.from, test.to, 1) }}.gather(t)
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, test.want) {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
	// The other way around: the kernel asks an address to load a block, on both sides.
	_, v, _ := tritonTrial{kernel: "matmul_descriptor", policy: policy, baseline: "narrow", candidate: "narrow", arch: "sm_90",
		manifest: func(s string) string { return strings.Replace(s, ", tensor_map: {box: [TILE_M, TILE_K]}", "", 1) }}.gather(t)
	if v.Outcome != gates.Error || !strings.Contains(v.Summary, "kernel.py:11: ") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
