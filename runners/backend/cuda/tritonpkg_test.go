package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// An edit replaces a text of a file of the package.
type packageEdit struct{ file, from, to string }

// packageKernels are kernels of testdata/tritonpkg, a Python package with the structure of public ones: each is made faster by
// an honest change, and wrong by one that loses a mask.
var packageKernels = []struct {
	name   string
	faster *packageEdit // nil takes the variant fast in place of slow
	wrong  packageEdit
}{
	{"cross_entropy", nil, packageEdit{"cross_entropy.py", `block = tl.load(x + at, mask=at < n_cols, other=float("-inf"))`, "block = tl.load(x + at)"}},
	{"rope", nil, packageEdit{"rope.py", "tl.store(out + row + half + at, b * c + a * s, mask=at < half)", "tl.store(out + row + half + at, b * c + a * s)"}},
	{"gated_delta", &packageEdit{"delta/configs.py", "[(64, 8)]", "[(64, 8), (8, 1)]"}, packageEdit{"delta/rule.py", "state * qt[:, None], 0), mask=values < V)", "state * qt[:, None], 0))"}},
	{"moe", nil, packageEdit{"moe.py", "mask=real[:, None] & (cols < N)[None, :])", "mask=(cols < N)[None, :])"}},
	{"decode", nil, packageEdit{"decode.py", `        score = tl.where(keys < end, score, float("-inf"))` + "\n", ""}},
	{"matmul", nil, packageEdit{"matmul.py", "a.load([row * BLOCK_M, start * BLOCK_K])", "a.load([row * BLOCK_M, 0])"}},
}

// A packageTrial is one of them against itself.
type packageTrial struct {
	kernel, policy      string
	baseline, candidate string // variants; "" is the default
	edit                *packageEdit
	manifest            func(text string) string
	arch                string // without a GPU
}

func (tr packageTrial) gather(t *testing.T) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	key := "gate/" + tr.kernel + ".kernel.yaml"
	text := readText(t, "testdata/tritonpkg", key)
	if tr.manifest != nil {
		was := text
		if text = tr.manifest(text); text == was {
			t.Fatal("the edit of the manifest changed nothing")
		}
	}
	m, err := manifest.Parse(key, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(tr.policy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	side := func(name, variant string, edit *packageEdit) runners.Side {
		if variant == "" {
			variant = m.DefaultVariant
		}
		s := runners.Side{Dir: filepath.Join(root, name), Variant: variant}
		for from, to := range map[string]string{"gate": ".", "src": manifest.RepositoryFolder + "/src"} {
			if err := os.CopyFS(filepath.Join(s.Dir, to), os.DirFS("testdata/tritonpkg/"+from)); err != nil {
				t.Fatal(err)
			}
		}
		if edit != nil {
			file := filepath.Join(s.Dir, manifest.RepositoryFolder, "src/kernelpkg", edit.file)
			was := readText(t, file)
			is := strings.Replace(was, edit.from, edit.to, 1)
			if err := os.WriteFile(file, []byte(is), 0o644); err != nil || is == was {
				t.Fatalf("the edit of %s changed nothing (%v)", edit.file, err)
			}
		}
		if s.Sources, err = folderhash.Sum(s.Dir); err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := side("base", tr.baseline, nil)
	job := runners.Job{Key: key, Manifest: m, ManifestText: text, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: side("head", tr.candidate, tr.edit)}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Arch: tr.arch, Getenv: os.Getenv,
	})
	if err != nil {
		t.Fatal(err)
	}
	if tr.arch != "" {
		if _, err := b.CheckReference(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(job.Policy, "test.yaml", e)
}

// faster is the honest change of a kernel.
func fasterTrial(i int) packageTrial {
	k := packageKernels[i]
	if k.faster != nil {
		return packageTrial{kernel: k.name, edit: k.faster}
	}
	return packageTrial{kernel: k.name, baseline: "slow", candidate: "fast"}
}

const packageStatic = "version: 1\ngates:\n  ptxas: {registers: \"<= 255\"}\nrules: [{name: default}]\n"

// All of them compile without a GPU, with both changes, and a change of a helper or of a configuration is never the same kernel.
func TestTritonPackageStatic(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	for i, k := range packageKernels {
		for name, trial := range map[string]packageTrial{"faster": fasterTrial(i), "wrong": {kernel: k.name, edit: &k.wrong}} {
			t.Run(k.name+" "+name, func(t *testing.T) {
				if k.name == "gated_delta" || k.name == "moe" || name == "wrong" {
					long.Test(t)
				}
				t.Parallel()
				trial.policy, trial.arch = packageStatic, "sm_90"
				e, v := trial.gather(t)
				if v.Outcome != gates.Pass || e.SameCode || e.Candidate.Code == e.Baseline.Code {
					t.Fatalf("%s (%s): %s, same %v", v.Outcome, v.Reason, v.Summary, e.SameCode)
				}
				tuning := e.Candidate.Tuning
				switch k.name {
				case "gated_delta":
					if offered := map[string]int{"faster": 4, "wrong": 2}[name]; tuning == nil || len(tuning.Offered) != offered || len(tuning.Picks) > 0 || len(tuning.Refused) > 0 {
						t.Errorf("its tuning is %+v", tuning)
					}
					if name == "faster" && !slices.Contains(e.Notes, "The change edits the configurations of @triton.autotune, from 2 configurations to 4 configurations: + BV=8, num_warps=1, num_stages=1, num_ctas=1; + BV=8, num_warps=1, num_stages=2, num_ctas=1.") {
						t.Errorf("the notes are %q", e.Notes)
					}
				case "matmul":
					if tuning == nil || len(tuning.Offered) != 3 || len(tuning.Chosen) != 1 || !strings.HasPrefix(tuning.Chosen[0], "BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3, num_ctas=1, its pre_hook is not called") {
						t.Errorf("its tuning is %+v", tuning)
					}
				case "decode":
					if len(e.Candidate.Kernels) != 2 || e.Candidate.Kernels[0].Entry != "split_kernel" || *e.Candidate.Kernels[0].BlockThreads != 128 || *e.Candidate.Kernels[1].BlockThreads != 32 {
						t.Errorf("its kernels are %+v", e.Candidate.Kernels)
					}
				default:
					if tuning != nil {
						t.Errorf("its tuning is %+v", tuning)
					}
				}
			})
		}
	}
}

// What is wrong with a choice, or with the package, is told with its place and what to do.
func TestTritonPackageMistakes(t *testing.T) {
	needsCompiler(t)
	needsTriton(t)
	replaced := func(from, to string) func(string) string {
		return func(text string) string { return strings.Replace(text, from, to, 1) }
	}
	for name, test := range map[string]struct {
		trial packageTrial
		want  string
	}{
		"all of nothing": {packageTrial{kernel: "moe", manifest: replaced("num_warps: 4", "autotune: all")}, "no kernel of the launch has @triton.autotune, and the manifest says autotune: all (delete it there)"},
		"a larger box":   {packageTrial{kernel: "matmul", manifest: replaced("BLOCK_K: 64}", "BLOCK_K: 32}")}, "@triton.autotune of matmul_kernel offers no configuration with {BLOCK_K: 32, BLOCK_M: 128, BLOCK_N: 128}"},
		"a name that none has": {packageTrial{kernel: "gated_delta", manifest: func(text string) string {
			return strings.NewReplacer("{all: {BV: 32}}", "{all: {BLOCK_V: 32}}", "ceildiv(V, BV)", "ceildiv(V, BLOCK_V)").Replace(text)
		}}, `the configuration BV=64, num_ctas=1, num_stages=1, num_warps=8 cannot be launched: "ceildiv(V, BLOCK_V)" has no value for BLOCK_V`},
		"a helper's mistake": {packageTrial{kernel: "gated_delta", edit: &packageEdit{"delta/gate.py", "tl.exp(g)", "tl.expp(g)"}}, "src/kernelpkg/delta/gate.py:7: "},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(test.trial.kernel, "gated_delta") {
				long.Test(t)
			}
			t.Parallel()
			test.trial.policy, test.trial.arch = packageStatic, "sm_90"
			_, v := test.trial.gather(t)
			if v.Outcome == gates.Pass || !strings.Contains(v.Summary, test.want) {
				t.Errorf("%s (%s): %s\nwant …%s…", v.Outcome, v.Reason, v.Summary, test.want)
			}
		})
	}
}
