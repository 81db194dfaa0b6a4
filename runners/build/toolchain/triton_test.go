package toolchain

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// realTritons is every Triton of this machine. Without one, or without a sandbox, tests are skipped, except in CI.
func realTritons(t *testing.T) []*Triton {
	t.Helper()
	found, err := foundTritons()
	if err == nil && !sandbox.Probe().Works() {
		err = sandbox.ErrUnsupported
	}
	if err == nil {
		var all []*Triton
		for _, c := range found {
			own := *c
			all = append(all, &own)
		}
		return all
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

// arguments are written as in x:*fp32/16.
func specialArguments(list string) []manifest.SpecialArgument {
	var all []manifest.SpecialArgument
	for _, word := range strings.Fields(list) {
		name, rest, _ := strings.Cut(word, ":")
		kind, hint, _ := strings.Cut(rest, "/")
		all = append(all, manifest.SpecialArgument{Name: name, Type: kind, Hint: hint})
	}
	return all
}

func special(constants map[string]float64, warps int, arguments string) manifest.Special {
	return manifest.Special{Constants: constants, Warps: warps, Stages: 3, CTAs: 1, Arguments: specialArguments(arguments)}
}

const softmaxArguments = "x:*fp32/16 y:*fp32/16 rows:i32/16 cols:i32/16"

func softmax(t *testing.T, text string) TritonBuild {
	t.Helper()
	if text == "" {
		text = read(t, "testdata/triton/softmax.py")
	}
	return TritonBuild{
		Dir: folder(t, map[string]string{"softmax.py": text}), Source: "softmax.py", Entry: "softmax_kernel", Arch: "sm_90", Scratch: t.TempDir(),
		Kinds: []manifest.Special{special(map[string]float64{"BLOCK": 1024}, 4, softmaxArguments)},
	}
}

func mustBuildTriton(t *testing.T, c *Triton, b TritonBuild) []*Cubin {
	t.Helper()
	cubins, err := c.Build(t.Context(), b)
	if err != nil {
		t.Fatalf("%v\n%s", err, logOf(err))
	}
	return cubins
}

func mustRefuseTriton(t *testing.T, c *Triton, b TritonBuild, want ...string) *output.CompileError {
	t.Helper()
	_, err := c.Build(t.Context(), b)
	refusal := &output.CompileError{}
	if !errors.As(err, &refusal) {
		t.Fatalf("error %v, want a refusal of the source", err)
	}
	for _, w := range want {
		if !strings.Contains(refusal.Summary, w) {
			t.Errorf("refused with %q, which does not say %q; log:\n%s", refusal.Summary, w, refusal.Log)
		}
	}
	if left, err := os.ReadDir(b.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v, %v", left, err)
	}
	return refusal
}

// Four kernels as they are in use, by all versions of Triton that are here, for two architectures: the launch is the metadata's
// and fits the code, and the figures are ptxas's own.
func TestTriton(t *testing.T) {
	tritons := realTritons(t)
	for _, k := range []struct {
		file, entry string
		kind        manifest.Special
		params      []int
	}{
		{"softmax.py", "softmax_kernel", special(map[string]float64{"BLOCK": 1024}, 4, softmaxArguments), []int{8, 8, 4, 4, 8, 8}},
		{"layer_norm.py", "layer_norm_kernel", special(map[string]float64{"BLOCK": 1024}, 4, "x:*fp16/16 weight:*fp16/16 bias:*fp16/16 y:*fp16/16 rows:i32 cols:i32/16 eps:fp32"), []int{8, 8, 8, 8, 4, 4, 4, 8, 8}},
		{"matmul.py", "matmul_kernel", special(map[string]float64{"TILE_M": 64, "TILE_N": 64, "TILE_K": 32}, 4, "a:*fp16/16 b:*fp16/16 c:*fp16/16 M:i32/16 N:i32/16 K:i32/16"), []int{8, 8, 8, 4, 4, 4, 8, 8}},
		{"attention.py", "attention_kernel", special(map[string]float64{"D": 64, "ROWS": 64, "KEYS": 64}, 4, "q:*fp16/16 k:*fp16/16 v:*fp16/16 o:*fp16/16 S:i32/16 scale:fp32"), []int{8, 8, 8, 8, 4, 4, 8, 8}},
	} {
		for i, c := range tritons {
			for _, arch := range []string{"sm_89", "sm_90"} {
				if i > 0 && (arch == "sm_89" || k.file != "matmul.py") {
					continue // another form of cubin shows in one
				}
				t.Run(k.entry+" "+c.Version+" "+arch, func(t *testing.T) {
					if arch != "sm_90" {
						long.Test(t)
					}
					t.Parallel()
					b := TritonBuild{Dir: folder(t, map[string]string{k.file: read(t, "testdata/triton/"+k.file)}), Source: k.file, Entry: k.entry, Arch: arch, Scratch: t.TempDir(), Kinds: []manifest.Special{k.kind}}
					cubin := mustBuildTriton(t, cached(t, c), b)[0]
					made, start := cubin.Kernels[0], cubin.Start
					if diff := cmp.Diff(k.params, mapped(made.Params, func(p Param) int { return p.Size })); diff != "" {
						t.Errorf("parameters (-want +got):\n%s", diff)
					}
					if start.Block != [3]int{128, 1, 1} || start.Cluster != 1 || len(start.Scratch) != 2 || len(start.Passed) != len(k.kind.Arguments) {
						t.Errorf("it is launched as %+v", start)
					}
					u := made.Usage
					if u.Registers == nil || *u.Registers < 8 || u.SpillStores == nil || u.Stack == nil || made.Line < 5 || cubin.Code == "" {
						t.Errorf("it is told as %+v", made)
					}
				})
			}
		}
	}
}

// cached is a Triton whose builds are kept from one run of the tests to the next, as everybody's are.
func cached(t *testing.T, c *Triton) *Triton {
	t.Helper()
	kept := *c
	kept.Cache = &Cache{Dir: toolchaintest.Builds(t)}
	return &kept
}

// What the just-in-time compiler would know makes other code, and a one is no parameter any more.
func TestTritonSpecialises(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	b := softmax(t, "")
	for _, arguments := range []string{"x:*fp32/16 y:*fp32/16 rows:i32 cols:i32", "x:*fp32/16 y:*fp32/16 rows:i32/1 cols:i32", "x:*fp32/16 y:*fp32/16 rows:i64 cols:i32/16"} {
		b.Kinds = append(b.Kinds, special(map[string]float64{"BLOCK": 1024}, 4, arguments))
	}
	cubins := mustBuildTriton(t, c, b)
	size := func(i int) int { return cubins[i].Kernels[0].CodeSize }
	if size(0) >= size(1) {
		t.Errorf("%d bytes of code with what is known of the arguments, %d without", size(0), size(1))
	}
	for i, want := range [][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 3}, {0, 1, 2, 3}} {
		if got := mapped(cubins[i].Start.Passed, func(p Passed) int { return p.Argument }); !slices.Equal(got, want) {
			t.Errorf("kind %d is passed %v, want %v", i, got, want)
		}
	}
	if got := mapped(cubins[3].Kernels[0].Params, func(p Param) int { return p.Size }); !slices.Equal(got, []int{8, 8, 8, 4, 8, 8}) {
		t.Errorf("a large integer is passed as %v", got)
	}
}

// A kernel that is wrong is told by its line.
func TestTritonRefuses(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	text := read(t, "testdata/triton/softmax.py")
	for name, test := range map[string]struct {
		from, to string
		change   func(*TritonBuild)
		want     string
	}{
		"a mistake in the kernel": {"tl.max(v, 0)", "tl.maxx(v, 0)", nil, "softmax.py:10: "},
		"a mistake of Python":     {"import triton\n", "import triton\nnothing()\n", nil, "softmax.py:2: NameError: name 'nothing' is not defined"},
		"no Python":               {"import triton\n", "import triton(\n", nil, "softmax.py:1: "},
		"no such kernel":          {"def softmax_kernel", "def other_kernel", nil, "has no kernel softmax_kernel: write the entry as one of these, or define it: other_kernel"},
		"no kernel":               {"@triton.jit\n", "", nil, "softmax_kernel is no Triton kernel (decorate it with @triton.jit)"},
		"another module":          {"import triton\n", "import triton\nimport nothing_of_that_name\n", nil, "write root: with the folder that the package lies in"},
		"no constant":             {"", "", func(b *TritonBuild) { b.Kinds[0].Constants = map[string]float64{} }, "softmax_kernel needs a value for BLOCK: write it under constants"},
		"a constant too many":     {"", "", func(b *TritonBuild) { b.Kinds[0].Constants["WIDTH"] = 1 }, "softmax_kernel has no parameter WIDTH"},
		"an argument too few":     {"", "", func(b *TritonBuild) { b.Kinds[0].Arguments = b.Kinds[0].Arguments[:3] }, "softmax_kernel has the parameter cols, and the manifest has only 3 arguments"},
		"an argument too many":    {"x, y, rows, cols,", "x, y, cols,", nil, "softmax_kernel takes no argument cols"},
		"too many kinds":          {"", "", func(b *TritonBuild) { b.Kinds = slices.Repeat(b.Kinds, maxKinds+1) }, "the kernel would be compiled 257 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := softmax(t, strings.Replace(text, test.from, test.to, 1))
			if test.change != nil {
				test.change(&b)
			}
			mustRefuseTriton(t, c, b, test.want)
		})
	}
}

// Equal machine code is told as equal: a comment, another folder or a moved line is no change, an instruction is.
func TestTritonCode(t *testing.T) {
	text := read(t, "testdata/triton/softmax.py")
	for _, c := range realTritons(t) {
		t.Run(c.Version, func(t *testing.T) {
			t.Parallel()
			c := cached(t, c)
			code := func(text string) string { return mustBuildTriton(t, c, softmax(t, text))[0].Code }
			plain := code(text)
			if code("# Softmax of each row, and many words about it, so that lines and the sizes of sections move.\n\n\n"+text) != plain {
				t.Error("a comment makes other machine code")
			}
			if code(strings.Replace(text, "tl.exp(", "tl.exp2(", 1)) == plain {
				t.Error("another instruction makes equal machine code")
			}
		})
	}
}

// An environment's Python is a link to another, and has packages of its own.
func TestFindTriton(t *testing.T) {
	c := realTritons(t)[0]
	home := t.TempDir()
	environment := filepath.Join(home, "venv")
	if out, err := exec.Command(c.Python, "-m", "venv", "--without-pip", environment).CombinedOutput(); err != nil {
		t.Skipf("no environment can be made: %v %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages"))
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	getenv := func(name string) string {
		return map[string]string{"HOME": home, "KERNELGATE_PYTHON": filepath.Join(environment, "bin", "python3"), "PATH": os.Getenv("PATH")}[name]
	}
	if _, err := FindTriton(t.Context(), getenv); !errors.Is(err, ErrNoTriton) || !strings.Contains(err.Error(), "venv/bin/python") {
		t.Errorf("without one: %v", err)
	}
	// The package, and what tells Python of its backends.
	parts, err := filepath.Glob(filepath.Join(filepath.Dir(c.Folder), "triton*"))
	if err != nil || len(parts) < 2 {
		t.Fatal(parts, err)
	}
	for _, part := range parts {
		if err := os.Symlink(part, filepath.Join(packages[0], filepath.Base(part))); err != nil {
			t.Fatal(err)
		}
	}
	found, err := FindTriton(t.Context(), getenv)
	if err != nil || found.Version != c.Version {
		t.Fatal(found, err)
	}
	found.read = append(found.read, filepath.Dir(c.Folder)) // what the link points to
	b := softmax(t, "")
	if cubins := mustBuildTriton(t, found, b); len(cubins) != 1 {
		t.Error("nothing was built by the environment's own")
	}
	for name, env := range map[string]map[string]string{
		"no such program": {"KERNELGATE_PYTHON": "/nowhere/python3"},
		"no Python":       {"KERNELGATE_PYTHON": "/bin/true"},
	} {
		if _, err := FindTriton(t.Context(), func(name string) string { return env[name] }); err == nil {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
	wide := func(name string) string {
		return map[string]string{"HOME": filepath.Join(environment, "somebody"), "KERNELGATE_PYTHON": filepath.Join(environment, "bin", "python3")}[name]
	}
	if _, err := FindTriton(t.Context(), wide); err == nil || !strings.Contains(err.Error(), "a build would be shown all of "+environment) {
		t.Errorf("with the home in it: %v", err)
	}
}
