package toolchain

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/sandbox"
	"github.com/kernelgate/kernelgate/runners/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/toolchain/output"
)

// compileC compiles k.c of a folder as a worker does, in one of the surroundings.
func compileC(t *testing.T, files map[string]string, tree Tree, in Surroundings, flags ...string) (object.Object, error) {
	t.Helper()
	if !sandbox.Probe().Works() {
		t.Skip("there is no sandbox here")
	}
	cc, err := FindCC(t.Context(), os.Getenv, false)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	file := filepath.Join(out, "kernel.o")
	_, err = cc.Run(t.Context(), Compile{
		Dir: folder(t, files), Tree: &tree, In: in, Source: "k.c", Out: out, Timeout: buildTimeout,
		Args: append(flags, "-O2", "-fno-ident", "-ffunction-sections", "-Werror=date-time", "-x", "c", "-c", "-o", file),
	})
	if err != nil {
		return object.Object{}, err
	}
	return object.Read(file, "k")
}

const twiceSource = "int k(int x) { return FACTOR * x; }\n"

// A source that reads a file which is not in the build as a checkout has it, or asks whether it is there, is refused, however it is
// written.
func TestAsksForWhatTheBuildHasNot(t *testing.T) {
	t.Parallel()
	tree := Tree{Folder: "kernels/k", Shared: []string{"common"}, Differs: []Difference{
		{"kernels/k/tuning.txt", "the change edits it"}, {"kernels/k/link.h", "it is a link"}, {"common/odd.h", "it is converted"}, {"kernels/k/inc", "it is a link"},
	}}
	beside := map[string]string{".repository/common/two.h": "#define FACTOR 2\n", ".repository/common/stdio.h": "#define FACTOR 3\n", ".repository/common/odd.h": "#define FACTOR 4\n", "own.h": "#define FACTOR 2\n"}
	for name, c := range map[string]struct{ source, want string }{
		"a file of its own":             {"#include \"own.h\"\n", ""},
		"a shared file":                 {"#include <two.h>\n", ""},
		"a shared file by its path":     {"#include \"../../common/two.h\"\n", ""},
		"one that is nowhere":           {"#if __has_include(\"nowhere.h\")\n#endif\n#define FACTOR 2\n", ""},
		"the system's":                  {"#include <stdint.h>\n#if __has_include(<nosuchheader.h>)\n#endif\n#define FACTOR 2\n", ""},
		"a probe of what differs":       {"#if __has_include(\"tuning.txt\")\n#include \"tuning.txt\"\n#endif\n#define FACTOR 2\n", "k.c:1: it asks for kernels/k/tuning.txt: the change edits it"},
		"a link":                        {"#define FACTOR 2\n#if __has_include(\"link.h\")\n#endif\n", "k.c:2: it asks for kernels/k/link.h: it is a link"},
		"behind a link to a folder":     {"#define FACTOR 2\n#if __has_include(\"inc/tuning.h\")\n#endif\n", "it asks for kernels/k/inc/tuning.h: it is a link"},
		"a shared file that differs":    {"#include <odd.h>\n", "it asks for common/odd.h: it is converted"},
		"outside, by a macro":           {"#define IN(x) #x\n#define FILE IN(../../docs/tuning.h)\n#if __has_include(FILE)\n#endif\n#define FACTOR 2\n", "it asks for docs/tuning.h, which is outside the kernel's folder"},
		"the folder of another side":    {"#if __has_include(\"../base/k.c\")\n#endif\n#define FACTOR 2\n", "it asks for kernels/base/k.c"},
		"a file of the host":            {"#if __has_include(\"/etc/passwd\")\n#endif\n#define FACTOR 2\n", "it asks for /etc/passwd, which no build can read"},
		"the judge's own folder":        {"#if __has_include(\".repository/common/two.h\")\n#endif\n#define FACTOR 2\n", "the judge's own folder"},
		"by the assembler":              {"#define FACTOR 2\n__asm__(\".pushsection .data\\n.incbin \\\"tuning.txt\\\"\\n.popsection\");\n", "tuning.txt"},
		"a header's name of the system": {"#include <stdio.h>\n#include <two.h>\n", "it includes <stdio.h> of the system, and common/stdio.h has the same name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(beside)
			files["k.c"] = c.source + twiceSource
			_, err := compileC(t, files, tree, Here, "-idirafter.repository/common")
			refusal, refused := errors.AsType[*output.CompileError](err)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!refused || !strings.Contains(refusal.Summary+refusal.Log, c.want)):
				t.Errorf("%v, want a refusal that says %q", err, c.want)
			}
		})
	}
}

// What tells one place, time or host from another gives other machine code in other surroundings, or none; what does not is the same.
func TestSurroundingsShow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		same   bool
	}{
		"nothing":           {"#define FACTOR 2\n", true},
		"a line":            {"#define FACTOR __LINE__\n", true},
		"the file":          {"#define FACTOR (int)sizeof __FILE__\n", false},
		"the base file":     {"#define FACTOR (int)sizeof __BASE_FILE__\n", false},
		"a builtin":         {"#define FACTOR (int)__builtin_strlen(__builtin_FILE())\n", false},
		"the date":          {"#define FACTOR __DATE__[10]\n", false},
		"the time it's of":  {"#define FACTOR __TIMESTAMP__[3]\n", false},
		"the level":         {"#define FACTOR (2 + __INCLUDE_LEVEL__)\n", true},
		"assertions":        {"#include <assert.h>\nvoid f(int x);\nvoid f(int x) { assert(x); }\n#define FACTOR 2\n", false},
		"assertions left":   {"#define NDEBUG\n#include <assert.h>\nvoid f(int x);\nvoid f(int x) { assert(x); }\n#define FACTOR 2\n", true},
		"a counter of uses": {"#define FACTOR (2 + __COUNTER__)\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"k.c": c.source + twiceSource}
			tree := Tree{Folder: "kernels/k"}
			here, err1 := compileC(t, files, tree, Here)
			there, err2 := compileC(t, files, tree, There)
			if same := err1 == nil && err2 == nil && here.Code == there.Code; same != c.same {
				t.Errorf("the same: %v, want %v (%v, %v)", same, c.same, err1, err2)
			}
		})
	}
}

// A folder of include_first replaces headers of the system and the toolkit, for the compilers and in the list of what it
// replaces.
func TestIncludeFirst(t *testing.T) {
	first := &manifest.Manifest{IncludeFirst: []string{"third"}}
	files := map[string]string{".repository/third/stdint.h": "#define FACTOR 7\n", ".repository/third/cuda_fp16.h": "#define FACTOR 7\n", ".repository/third/own.h": ""}
	tree := Tree{Folder: "kernels/k", Shared: []string{"third"}}
	files["k.c"] = "#include <stdint.h>\n" + twiceSource
	if _, err := compileC(t, files, tree, Here, first.IncludeFlags()...); err != nil {
		t.Error(err)
	}
	cc, err := FindCC(t.Context(), os.Getenv, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cc.Shadowed(t.Context(), folder(t, files), first); err != nil || !slices.Equal(got, []string{"stdint.h"}) {
		t.Errorf("replaced: %v (%v)", got, err)
	}
	c := realCUDA(t)
	files["k.cu"] = "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(int *x) { x[0] = FACTOR; }\n"
	delete(files, ".repository/third/stdint.h")
	b := NVCCBuild{Dir: folder(t, files), Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Tree: tree, Include: first.IncludeFlags()}
	mustBuild(t, c, b)
	if got, err := c.Shadowed(t.Context(), b.Dir, first); err != nil || !slices.Equal(got, []string{"cuda_fp16.h"}) {
		t.Errorf("replaced: %v (%v)", got, err)
	}
	b.Include = []string{"-idirafter.repository/third"}
	mustRefuseBuild(t, c, b, "FACTOR")
}

// The same of nvcc.
func TestSurroundingsOfNVCC(t *testing.T) {
	c := realCUDA(t)
	tree := Tree{Folder: "kernels/k", Shared: []string{"common"}, Differs: []Difference{{"kernels/k/tuning.txt", "the change edits it"}}}
	source := func(first string) NVCCBuild {
		return NVCCBuild{
			Dir:    folder(t, map[string]string{"k.cu": first + "\nextern \"C\" __global__ void k(int *x) { x[0] = FACTOR; }\n", ".repository/common/two.h": "#define FACTOR 2\n"}),
			Source: "k.cu", Entries: []string{"k"}, Arch: "sm_89", Tree: tree, Include: []string{"-idirafter.repository/common"},
		}
	}
	for name, test := range map[string]struct{ first, want string }{
		"a shared file":              {"#include <two.h>", ""},
		"what differs":               {"#if __has_include(\"tuning.txt\")\n#endif\n#define FACTOR 2", "k.cu:1: it asks for kernels/k/tuning.txt: the change edits it"},
		"the folder of another side": {"#if __has_include(\"../base/k.cu\")\n#endif\n#define FACTOR 2", "k.cu:1: it asks for kernels/base/k.cu"},
		"the file":                   {"#define FACTOR sizeof __FILE__", "the machine code depends on where it is compiled"},
		"the date":                   {"#define FACTOR __DATE__[10]", "__DATE__"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.want == "" {
				mustBuild(t, c, source(test.first))
				return
			}
			mustRefuseBuild(t, c, source(test.first), test.want)
		})
	}
}

// A kernel in Python can look at more, and is compared the same way.
func TestSurroundingsOfTriton(t *testing.T) {
	c := realTritons(t)[0]
	for name, test := range map[string]struct{ factor, want string }{
		"plain":                         {"2", ""},
		"the environment":               {"2 if 'CI' not in os.environ else 3", "the machine code depends on where it is compiled"},
		"the folder":                    {"2 if os.getcwd() == '/repository/kernels/k' else 3", "the machine code depends on where it is compiled"},
		"the host":                      {"2 if os.uname().nodename == 'sandbox' else 3", "the machine code depends on where it is compiled"},
		"the interpreter":               {"2 if sys.flags.isolated else 3", "the machine code depends on where it is compiled"},
		"the arguments":                 {"2 if sys.argv[0].startswith('/build') else 3", "the machine code depends on where it is compiled"},
		"what differs":                  {"len(open(os.path.join(os.path.dirname(__file__), 'tuned.json')).read())", "it asks for kernels/k/tuned.json: the change edits it"},
		"a file outside":                {"2 if not os.path.exists('../../pyproject.toml') else 3", "it asks for pyproject.toml, which is outside the kernel's folder"},
		"a package that hides a module": {"__import__('helper').FACTOR", "it looks for modules in kernels/k, where kernels/k/"},
		"a link out of it":              {"2 if not (os.symlink('/repository/docs', '/tmp/x') or os.path.exists('/tmp/x/a')) else 3", "docs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "import os, sys\nimport triton\nimport triton.language as tl\n\nFACTOR = tl.constexpr(" + test.factor + ")\n\n@triton.jit\ndef k(x, n, BLOCK: tl.constexpr):\n" +
				"    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + at, FACTOR, mask=at < n)\n"
			differs := []Difference{{"kernels/k/tuned.json", "the change edits it"}, {"kernels/k/tests/test_k.py", "the change edits it"}}
			if strings.Contains(test.factor, "helper") {
				differs = append(differs, Difference{"kernels/k/helper/__init__.py", "the change adds it"})
			}
			b := TritonBuild{
				Dir: folder(t, map[string]string{"k.py": source, "tuned.json": "{}", "helper.py": "FACTOR = 2\n"}), Source: "k.py", Entry: "k", Arch: "sm_90", Scratch: t.TempDir(),
				Tree:  Tree{Folder: "kernels/k", Differs: differs},
				Kinds: []manifest.Special{special(map[string]float64{"BLOCK": 64}, 4, "x:*fp32/16 n:i32")},
			}
			_, err := c.Build(t.Context(), b)
			refusal, refused := errors.AsType[*output.CompileError](err)
			if test.want == "" && err != nil || test.want != "" && (!refused || !strings.Contains(refusal.Summary, test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Folders are shown where a checkout has them as long as they can be.
func TestPlacesOfFolders(t *testing.T) {
	dir := folder(t, map[string]string{
		"k.c": "", "inc/a.h": "", ".repository/common/a.h": "", ".repository/kernels/k/inc/a.h": "", ".repository/kernels/a.h": "", ".sets/cutlass/a.h": "",
	})
	for name, c := range map[string]struct {
		tree Tree
		want string
	}{
		"alone":              {Tree{Folder: "kernels/k"}, "/repository/kernels/k /sets"},
		"no folder is known": {Tree{}, "/repository/kernel /sets"},
		"beside":             {Tree{Folder: "kernels/k", Shared: []string{"common"}}, "/repository/common /repository/kernels/k /sets"},
		"within it":          {Tree{Folder: "kernels/k", Shared: []string{"kernels/k/inc"}}, "/repository/kernels/k /repository/kernels/k/inc /sets"},
		"around it":          {Tree{Folder: "kernels/k", Shared: []string{"kernels"}}, "/repository/kernels /repository/kernels/k /sets"},
		"around another":     {Tree{Folder: "other/k", Shared: []string{"kernels"}}, "/repository/kernels /repository/other/k /sets"},
		"what is not there":  {Tree{Folder: "kernels/k", Shared: []string{"nothing"}}, "/repository/kernels/k /sets"},
	} {
		var got []string
		for _, p := range Here.places(dir, &c.tree) {
			got = append(got, p.Inside)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), c.want)
		}
	}
}
