package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// compiled returns kernels of three compilers, one of them on the CPU.
func compiled(pins string) map[string]string {
	const problem = `version: 1
name: %s
mode: cuda
arguments: [{name: y, dtype: f32, access: out, shape: [N]}, {name: N, dtype: i32, access: scalar, value: N}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 4096}}
entry: fill
arch: [sm_89]
`
	return map[string]string{
		".github/kernelgate.yaml": "version: 1\n" + pins + "gates: {}\nrules: [{name: default}]\n",
		"cpu/kernel.yaml":         manifestYAML, "cpu/scale.c": "// base\n", "cpu/reference.c": "// truth\n",
		"fill/kernel.yaml": fmt.Sprintf(problem, "fill") + "source: fill.cu\nlaunch: {grid: [1], block: [32]}\n", "fill/fill.cu": "// fill\n", "fill/reference.cu": "// truth\n",
		"py/kernel.yaml": fmt.Sprintf(problem, "py") + "source: kernel.py\ncompiler: triton\nlaunch: {grid: [1]}\n", "py/kernel.py": "# fill\n", "py/reference.cu": "// truth\n",
	}
}

func pinsOf(j runners.Job) string {
	before := "none"
	if j.Baseline != nil {
		before = j.Baseline.Toolchains.NVCC.String() + ", " + j.Baseline.Toolchains.Triton.String()
	}
	return before + "; " + j.Candidate.Toolchains.NVCC.String() + ", " + j.Candidate.Toolchains.Triton.String()
}

// TestToolchainsArePinned checks that a changed pin makes every kernel that the compiler builds a
// candidate: the baseline with the base's pin, the candidate with the head's. Nothing else of the
// head's policy applies.
func TestToolchainsArePinned(t *testing.T) {
	const own = "the runner's own"
	for name, c := range map[string]struct {
		before, after string // the policy's pins
		edit          map[string]string
		want          string // kernels
		pins          string // of the first kernel
	}{
		"another Triton":         {"toolchains: {triton: {version: 3.6.0}}\n", "toolchains: {triton: {version: 3.9.0}}\n", nil, "py", own + ", 3.6.0; " + own + ", 3.9.0"},
		"the first pin":          {"", "toolchains: {triton: {version: 3.9.0}}\n", nil, "py", own + ", " + own + "; " + own + ", 3.9.0"},
		"no pin any more":        {"toolchains: {nvcc: {version: 13.0.88}}\n", "", nil, "fill", "13.0.88, " + own + "; " + own + ", " + own},
		"both":                   {"toolchains: {nvcc: {version: 13.0.88}}\n", "toolchains: {nvcc: {version: 12.9.86}, triton: {version: 3.9.0}}\n", nil, "fill py", "13.0.88, " + own + "; 12.9.86, 3.9.0"},
		"a source with it":       {"toolchains: {nvcc: {version: 13.0.88}}\n", "toolchains: {nvcc: {version: 12.9.86}}\n", map[string]string{"cpu/scale.c": "// head\n"}, "cpu fill", "13.0.88, " + own + "; 12.9.86, " + own},
		"a source without":       {"toolchains: {nvcc: {version: 13.0.88}}\n", "toolchains: {nvcc: {version: 13.0.88}}\n", map[string]string{"fill/fill.cu": "// head\n"}, "fill", "13.0.88, " + own + "; 13.0.88, " + own},
		"the policy's other":     {"toolchains: {nvcc: {version: 13.0.88}}\n", "toolchains: {nvcc: {version: 13.0.88}}\ndevices: [l4]\n", nil, "", ""},
		"a mistake":              {"toolchains: {nvcc: {version: 13.0.88}}\n", "toolchains: {nvcc: {version: ../x}}\n", map[string]string{"fill/fill.cu": "// head\n"}, "fill", "13.0.88, " + own + "; 13.0.88, " + own},
		"spelt in another way":   {"", "\"toolch\\x61ins\": {triton: {version: 3.9.0}}\n", nil, "py", own + ", " + own + "; " + own + ", 3.9.0"},
		"a digest that is added": {"toolchains: {triton: {version: 3.6.0}}\n", "toolchains: {triton: {version: 3.6.0, digest: 'sha256:" + strings.Repeat("a", 64) + "'}}\n", nil, "py", own + ", 3.6.0; " + own + ", 3.6.0 (sha256:aaaaaaaaaaaa)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(compiled(c.before))
			edit := map[string]string{".github/kernelgate.yaml": compiled(c.after)[".github/kernelgate.yaml"]}
			for file, text := range c.edit {
				edit[file] = text
			}
			if c.before == c.after {
				delete(edit, ".github/kernelgate.yaml")
			}
			p := r.plan(plan.Options{Base: base, Head: r.commit(edit)})
			keys, err := p.Kernels(t.Context())
			if err != nil || strings.Join(keys, " ") != c.want {
				t.Fatalf("touches %v (%v), want %s", keys, err, c.want)
			}
			if len(keys) == 0 {
				return
			}
			job, err := p.Job(t.Context(), keys[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := pinsOf(job); got != c.pins {
				t.Errorf("%s is built by %s, want %s", keys[0], got, c.pins)
			}
			if told := strings.Contains(strings.Join(job.Notes, "\n"), "the compiler is under the gate"); told != (keys[0] != "cpu" && name != "a source without" && name != "a mistake") {
				t.Errorf("notes: %q", job.Notes)
			}
		})
	}
}

// TestPinsOfTheBaseHold checks that pins that the base branch has moved since the head branched off
// are not the head's change, and that the head cannot go back to an old compiler.
func TestPinsOfTheBaseHold(t *testing.T) {
	r := newTree(t)
	left := r.commit(compiled("toolchains: {triton: {version: 3.6.0}}\n"))
	trusted := r.commit(map[string]string{".github/kernelgate.yaml": compiled("toolchains: {triton: {version: 3.9.0}}\n")[".github/kernelgate.yaml"]})
	r.git("checkout", "--quiet", left)
	head := r.commit(map[string]string{"py/kernel.py": "# better\n", ".github/kernelgate.yaml": compiled("toolchains: {triton: {version: 3.6.0}, nvcc: {version: 13.0.88}}\n")[".github/kernelgate.yaml"]})
	p := r.plan(plan.Options{Base: left, Trusted: trusted, Head: head})
	if keys, err := p.Kernels(t.Context()); err != nil || strings.Join(keys, " ") != "fill py" {
		t.Fatalf("%v, %v", keys, err)
	}
	job, err := p.Job(t.Context(), "py")
	if err != nil {
		t.Fatal(err)
	}
	if got := pinsOf(job); got != "the runner's own, 3.9.0; 13.0.88, 3.9.0" {
		t.Error(got)
	}
}

// TestToolchainsByHand compares two compilers on one state at the caller's request.
func TestToolchainsByHand(t *testing.T) {
	r := newTree(t)
	r.commit(compiled("toolchains: {triton: {version: 3.6.0}}\n"))
	p := r.plan(plan.Options{After: policy.Toolchains{Triton: &policy.Toolchain{Version: "3.9.0"}}})
	keys, err := p.Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "py" {
		t.Fatalf("%v, %v", keys, err)
	}
	job, err := p.Job(t.Context(), "py")
	if err != nil {
		t.Fatal(err)
	}
	if got := pinsOf(job); got != "the runner's own, 3.6.0; the runner's own, 3.9.0" {
		t.Error(got)
	}
	if want := "kernelgate check --toolchain new=triton@3.9.0 py"; job.Provenance.Command != want {
		t.Errorf("%s, want %s", job.Provenance.Command, want)
	}
}
