package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// A pull is a change of the split attention in testdata/steps: texts of its manifest and of its
// source that are replaced, in pairs.
type pull struct {
	manifest, source []string
	file             string // another source than decode.cu
	policy           string
	arch             string // without a GPU
	timeout          time.Duration
}

// steps is a file of testdata/steps with some of it replaced.
func steps(t *testing.T, file string, words ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/steps", file))
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for i := 0; i+1 < len(words); i += 2 {
		if !strings.Contains(changed, words[i]) {
			t.Fatalf("%s has no %q", file, words[i])
		}
		changed = strings.ReplaceAll(changed, words[i], words[i+1])
	}
	return changed
}

func (p pull) gather(t *testing.T) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	base, own := steps(t, "kernel.yaml"), steps(t, "kernel.yaml", p.manifest...)
	m, err := manifest.Parse("kernel.yaml", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	head, err := manifest.Join("kernel.yaml", []byte(base), []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("test.yaml", []byte(p.policy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if p.file == "" {
		p.file = "decode.cu"
	}
	for file, text := range map[string]string{
		"base/decode.cu": steps(t, "decode.cu"), "base/reference.cu": steps(t, "reference.cu"), "head/" + p.file: steps(t, p.file, p.source...),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	job := runners.Job{
		Manifest: m, ManifestText: base, Policy: policy, Trusted: filepath.Join(root, "base"),
		Baseline:  &runners.Side{Dir: filepath.Join(root, "base"), Variant: m.DefaultVariant},
		Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: head.DefaultVariant, Manifest: head, ManifestText: own},
	}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord},
		Arch: p.arch, LaunchTimeout: p.timeout, Getenv: os.Getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(policy, "test.yaml", e)
}

// cooperative makes the manifest start both halves as one kernel.
var cooperative = []string{
	"source: decode.cu", "source: cooperative.cu",
	"launch:\n  steps:\n    - {entry: \"decode::split<64>\", grid: [SPLITS, H], block: [64], args: [q, k, v, partial, lse, H, S, scale]}\n    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H]}\n",
	"entry: decode_grid\nlaunch: {cooperative: true, grid: [SPLITS, H], block: [64], args: [q, k, v, o, H, S, scale, partial, lse]}\n",
}

const splitting = "SPLITS: {values: [2, 4, 16, 32], default: 4, layer: structure}"

func splits(n string) []string {
	return []string{splitting, strings.Replace(splitting, "default: 4", "default: "+n, 1)}
}

// A change of the split count brings its launch and its scratch, and every kernel of the launch is
// looked at.
func TestStepsAreBuilt(t *testing.T) {
	needsCompiler(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 64\", spill_stores: \"<= 0B\", blocks_per_sm: \">= 2\"}\nrules:\n  - name: default\n"
	for _, arch := range []string{"sm_89", "sm_90"} {
		e, v := pull{manifest: splits("16"), policy: policy, arch: arch}.gather(t)
		if v.Outcome != gates.Pass || e.SameCode {
			t.Fatalf("%s: %s (%s): %s\n%+v", arch, v.Outcome, v.Reason, v.Summary, e.Candidate)
		}
		var entries []string
		most := 0
		for _, k := range e.Candidate.Kernels {
			entries = append(entries, k.Entry)
			most = max(most, *k.Registers)
			if *k.BlockThreads != 64 || k.Line == 0 {
				t.Errorf("%s: %s has %d threads a block, in line %d", arch, k.Entry, *k.BlockThreads, k.Line)
			}
		}
		if !slices.Equal(entries, []string{"decode::split<64>", "combine"}) || *e.Candidate.Resources.Registers != most {
			t.Errorf("%s: kernels %q, %d registers", arch, entries, *e.Candidate.Resources.Registers)
		}
		if got, want := []int{*e.Baseline.Resources.Scratch, *e.Candidate.Resources.Scratch}, []int{4 * 4 * 8 * 65, 4 * 16 * 8 * 65}; !slices.Equal(got, want) {
			t.Errorf("%s: scratch of %v bytes, want %v", arch, got, want)
		}
		var rows []string
		for _, r := range v.Resources {
			rows = append(rows, r.Name)
		}
		for _, want := range []string{"registers", "decode::split<64>: registers", "combine: registers", "combine: blocks per SM", "scratch"} {
			if !slices.Contains(rows, want) {
				t.Errorf("%s: the table has no %s: %q", arch, want, rows)
			}
		}
		e, v = pull{manifest: cooperative, file: "cooperative.cu", policy: policy, arch: arch}.gather(t)
		if v.Outcome != gates.Pass || len(e.Candidate.Kernels) != 0 || len(e.Baseline.Kernels) != 2 {
			t.Errorf("%s, cooperative: %s (%s): %s\n%+v", arch, v.Outcome, v.Reason, v.Summary, e.Candidate.Error)
		}
	}
}

// The worst kernel of a launch decides, whichever it is, and its line is marked.
func TestWorstKernelDecides(t *testing.T) {
	needsCompiler(t)
	const policy = "version: 1\ngates:\n  ptxas: {registers: \"<= 40\"}\nrules:\n  - name: default\n"
	greedy := []string{"    float most = -CUDART_INF_F, sum = 0, out = 0;\n    for (int part = 0; part < SPLITS; part++)\n", `    float many[60];
    for (int i = 0; i < 60; i++)
        many[i] = partial[i * H];
    __syncthreads();
    float most = -CUDART_INF_F, sum = 0, out = 0;
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 60; j++)
            sum += many[i] * many[j] * 1e-30f;
    for (int part = 0; part < SPLITS; part++)
`}
	e, v := pull{source: greedy, policy: policy, arch: "sm_90"}.gather(t)
	if v.Reason != gates.ReasonResources || !strings.Contains(v.Summary, "Over budget: registers of combine ") {
		t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if len(v.Findings) != 1 || v.Findings[0].Line != e.Candidate.Kernels[1].Line || v.Findings[0].Line == e.Candidate.EntryLine {
		t.Errorf("findings %+v, want one in line %d", v.Findings, e.Candidate.Kernels[1].Line)
	}
}

// Each step's arguments are held against its own kernel's parameters before anything is launched.
func TestStepParameters(t *testing.T) {
	needsCompiler(t)
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"one too few": {[]string{"args: [partial, lse, o, H]", "args: [partial, lse, o]"}, "the kernel combine(float const*, float const*, float*, int) takes 4 parameters and the manifest passes 3"},
		"all of them": {[]string{", args: [partial, lse, o, H]}", "}"}, "the kernel combine(float const*, float const*, float*, int) takes 4 parameters and the manifest passes 7"},
		"another size": {[]string{"args: [q, k, v, partial, lse, H, S, scale]", "args: [q, k, v, partial, lse, H, S, o]"},
			"parameter 7 is 4 bytes at offset 48 in the code, o (pointer to f32): 8 bytes at offset 48 in the manifest"},
		"no such kernel": {[]string{"entry: combine", "entry: merge"}, "decode.cu has no kernel merge"},
	} {
		t.Run(name, func(t *testing.T) {
			e, v := pull{manifest: c.words, policy: onlyBuilt, arch: "sm_90"}.gather(t)
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || e.Candidate.OK || !strings.Contains(e.Candidate.Error, c.want) {
				t.Errorf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, e.Candidate.Error)
			}
		})
	}
}

// Equal machine code is the same only where every step of the launch and the scratch are.
func TestStepsAndEqualCode(t *testing.T) {
	needsCompiler(t)
	for name, c := range map[string]struct {
		words []string
		same  bool
	}{
		"nothing changed":   {nil, true},
		"a step left out":   {[]string{"    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H]}\n", "    - {memset: o}\n"}, false},
		"a memset more":     {[]string{"    - {entry: combine,", "    - {memset: o, value: 255}\n    - {entry: combine,"}, false},
		"other arguments":   {[]string{"args: [partial, lse, o, H]", "args: [lse, partial, o, H]"}, false},
		"larger scratch":    {[]string{"shape: [SPLITS, H]}", "shape: [SPLITS, H, 2]}"}, false},
		"another grid":      {[]string{"entry: combine, grid: [H]", "entry: combine, grid: [2*H]"}, false},
		"a cooperative one": {[]string{"entry: combine, grid: [H]", "entry: combine, cooperative: true, grid: [H]"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := pull{manifest: c.words, policy: onlyBuilt, arch: "sm_90"}.gather(t)
			if !e.Candidate.OK || e.Candidate.Code != e.Baseline.Code || e.SameCode != c.same {
				t.Errorf("taken for the same: %v; %s", e.SameCode, e.Candidate.Error)
			}
		})
	}
}
