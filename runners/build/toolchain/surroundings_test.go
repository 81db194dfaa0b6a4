package toolchain

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// compileC compiles k.c of a folder as a worker does, in one of the surroundings.
func compileC(t *testing.T, files map[string]string, tree runners.Tree, in Surroundings, flags ...string) (object.Object, error) {
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
		Dir: folder(t, files), Tree: &tree, In: in, Source: "k.c", Out: out,
		Args: append(flags, "-O2", "-fno-ident", "-ffunction-sections", "-x", "c", "-c", "-o", file),
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
	tree := runners.Tree{Folder: "kernels/k", Shared: []string{"common", "proc"}, Differs: []runners.Difference{
		{Path: "kernels/k/tuning.txt", Why: "the change edits it"}, {Path: "kernels/k/link.h", Why: "it is a link"}, {Path: "common/odd.h", Why: "it is converted"}, {Path: "kernels/k/inc", Why: "it is a link"},
	}}
	beside := map[string]string{".repository/common/two.h": "#define FACTOR 2\n", ".repository/common/stdio.h": "#define FACTOR 3\n", ".repository/common/odd.h": "#define FACTOR 4\n", ".repository/proc/x.h": "", "own.h": "#define FACTOR 2\n"}
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
		"a file of the host":            {"#if __has_include(\"/etc/passwd\")\n#endif\n#define FACTOR 2\n", "it asks for /etc/passwd, which is a file of the host"},
		"what every host has":           {"#if __has_include(\"/proc/version\")\n#endif\n#define FACTOR 2\n", "k.c:1: it asks for /proc/version, which is a file of the host"},
		"a device":                      {"#if __has_include(\"/dev/null\")\n#endif\n#define FACTOR 2\n", "it asks for /dev/null"},
		"the machine's processors":      {"#if __has_include(\"/sys/devices/system/cpu/online\")\n#endif\n#define FACTOR 2\n", "it asks for /sys/devices/system/cpu/online"},
		"a temporary file":              {"#if __has_include(\"/tmp/cc123456.s\")\n#endif\n#define FACTOR 2\n", "it asks for /tmp/cc123456.s"},
		"a program of the host":         {"#if __has_include(\"/usr/bin/python3\")\n#endif\n#define FACTOR 2\n", "it asks for /usr/bin/python3"},
		"a library of the host":         {"#if __has_include(<../lib/os-release>)\n#endif\n#define FACTOR 2\n", "which is a file of the host"},
		"by the preprocessor's clock":   {"#pragma GCC dependency \"/usr/lib/os-release\"\n#define FACTOR 2\n", "it asks for /usr/lib/os-release"},
		"the host, by the assembler":    {"#define FACTOR 2\n__asm__(\".pushsection .data\\n.incbin \\\"/usr/lib/os-release\\\",0,1\\n.popsection\");\n", "it asks for /usr/lib/os-release"},
		"a folder with a host's name":   {"#if __has_include(\"../../proc/version\")\n#define FACTOR 3\n#else\n#define FACTOR 2\n#endif\n", "/proc/version, which is a file of the host"},
		"a system's header beside":      {"#include <../common/two.h>\n", ""},
		"its own process":               {"#if __has_include(\"/proc/self/cwd/own.h\")\n#endif\n#define FACTOR 2\n", "it asks for /proc/self/cwd/own.h"},
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

// What only the build that is measured has, no source can ask for: the second build refuses the
// question.
func TestAsksForTheFirstBuild(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Here.guard, Here.sets + "/cutlass/cutlass.h", Here.tmp + "/cc123456.s", Here.Root + "/kernels/k/k.c"} {
		t.Run(path.Base(name), func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"k.c": "#if __has_include(\"" + name + "\")\n#endif\n#define FACTOR 2\n" + twiceSource}
			if _, err := compileC(t, files, runners.Tree{Folder: "kernels/k"}, Elsewhere(1)); err == nil || !strings.Contains(err.Error(), "it asks for "+name) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// compileEverywhere compiles k.c as a worker does, here and elsewhere, and reports whether all of it
// is the same machine code.
func compileEverywhere(t *testing.T, files map[string]string, seed uint64) (same bool, err error) {
	t.Helper()
	tree := runners.Tree{Folder: "kernels/k"}
	here, err := compileC(t, files, tree, Here)
	if err != nil {
		return false, err
	}
	elsewhere := Elsewhere(seed)
	there, err := compileC(t, files, tree, elsewhere)
	if err == nil {
		return here.Code == there.Code, nil
	}
	for _, in := range elsewhere.ByName() {
		if there, err = compileC(t, files, tree, in); err != nil || there.Code != here.Code {
			return false, err
		}
	}
	return true, nil
}

// A source whose code depends on its place, on the date or on the host is refused; others are not.
func TestSurroundingsShow(t *testing.T) {
	t.Parallel()
	const today, wrong = "is not allowed: the merged kernel would have the date of a different build", "it depends on its place"
	for name, c := range map[string]struct{ source, want string }{
		"nothing":               {"#define FACTOR 2\n", ""},
		"a line":                {"#define FACTOR __LINE__\n", ""},
		"the file":              {"#define FACTOR (int)sizeof __FILE__\n", wrong},
		"the base file":         {"#define FACTOR (int)sizeof __BASE_FILE__\n", wrong},
		"a builtin":             {"#define FACTOR (int)__builtin_strlen(__builtin_FILE())\n", wrong},
		"the date":              {"#define FACTOR __DATE__[10]\n", "__DATE__ " + today},
		"the time it's of":      {"#define FACTOR __TIMESTAMP__[3]\n", "__TIMESTAMP__ " + today},
		"the time, pasted":      {"#define IN(a, b) a##b\n#define FACTOR IN(__TI, ME__)[3]\n", "__TIME__ " + today},
		"the level":             {"#define FACTOR (2 + __INCLUDE_LEVEL__)\n", ""},
		"assertions":            {"#include <assert.h>\nvoid f(int x);\nvoid f(int x) { assert(x); }\n#define FACTOR 2\n", wrong},
		"assertions that hold":  {"#include <assert.h>\nvoid f(int x);\nvoid f(int x) { assert(x | 1); }\n#define FACTOR 2\n", ""},
		"assertions, not used":  {"#include <assert.h>\n#define FACTOR 2\n", ""},
		"assertions left":       {"#define NDEBUG\n#include <assert.h>\nvoid f(int x);\nvoid f(int x) { assert(x); }\n#define FACTOR 2\n", ""},
		"a message, never said": {"int printf(const char *, ...);\nstatic inline void check(int x, const char *file) { if (!x) printf(\"%s\", file); }\nvoid f(void);\nvoid f(void) { check(1, __FILE__); }\n#define FACTOR 2\n", ""},
		"a counter of uses":     {"#define FACTOR (2 + __COUNTER__)\n", ""},
		// Without a warning, and in what looks like a system's header.
		"the date, quietly":      {"#pragma GCC diagnostic ignored \"-Wdate-time\"\n#define FACTOR (__builtin_memcmp(__DATE__, \"May 18 2033\", 11) ? 2 : 3)\n", "__DATE__ " + today},
		"the date, in a system":  {"#include \"system.h\"\n#define FACTOR (DATE[10] == 54 ? 2 : 3)\n", "__DATE__ " + today},
		"whether there is one":   {"#ifdef __DATE__\n#define FACTOR 2\n#endif\n", "__DATE__ " + today},
		"a date that is put by":  {"#pragma push_macro(\"__DATE__\")\n#undef __DATE__\n#pragma pop_macro(\"__DATE__\")\n#define FACTOR 2\n", "__DATE__ " + today},
		"two constant places":    {"#define STARTS(with) (__builtin_strncmp(__FILE__, with, sizeof with - 1) == 0)\n#define FACTOR (__builtin_strchr(__FILE__, '/') == 0 || STARTS(\"/repository/\") || STARTS(\"/srv/another/place/\") ? 2 : 3)\n", wrong},
		"a full path or none":    {"#define FACTOR (__FILE__[0] == '/' || __builtin_strchr(__FILE__, '/') == 0 ? 2 : 3)\n", wrong},
		"the path from the top":  {"#define FACTOR (__FILE__[0] != '/' ? 2 : 3)\n", wrong},
		"the file, as a text":    {"#define S(x) #x\n#define T(x) S(x)\n#define FACTOR (T(__FILE__)[1] != '/' ? 2 : 3)\n", wrong},
		"whether it is constant": {"#define FACTOR (__builtin_constant_p(__FILE__[0]) && __FILE__[0] == 'k' ? 2 : 3)\n", wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"k.c": c.source + twiceSource, "system.h": "#pragma GCC system_header\n#define DATE __DATE__\n"}
			same, err := compileEverywhere(t, files, 1)
			text := ""
			if err != nil {
				text = fmt.Sprint(err)
				if refusal, ok := errors.AsType[*output.CompileError](err); ok {
					text += refusal.Log
				}
			} else if !same {
				text = wrong
			}
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

// What a compiler was found to look up in one run does not depend on that run.
func TestUsualLookupsOfManySeeds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		if _, err := compileC(t, map[string]string{"k.c": "#include <stdint.h>\n#define FACTOR 2\n" + twiceSource}, runners.Tree{Folder: "kernels/k"}, Elsewhere(seed)); err != nil {
			t.Errorf("with the seed %d: %v", seed, err)
		}
	}
}

// No two runs build in the same surroundings, and a seed gives the same again.
func TestElsewhereIsDrawn(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		s := Elsewhere(seed)
		for _, v := range append([]string{s.Root, s.work, s.host, s.sets, s.tmp, s.guard}, s.env...) {
			if seen[v] && v != "CI=true" {
				t.Errorf("the seed %d gives %s again", seed, v)
			}
			seen[v] = true
		}
		if s.given == Here.given || s.forks == Here.forks || slices.Equal(s.python, Here.python) || !s.nameless {
			t.Errorf("the seed %d gives surroundings like those of the first build: %+v", seed, s)
		}
		if again := Elsewhere(seed); !reflect.DeepEqual(s, again) {
			t.Errorf("the seed %d gives %+v, then %+v", seed, s, again)
		}
		for _, in := range s.ByName() {
			if in.nameless || in.Root != s.Root || !strings.Contains(ErrSurroundings("k.c", in).Summary, s.Root) {
				t.Errorf("by name: %+v", in)
			}
		}
	}
}

// A folder of include_first replaces headers of the system and the toolkit, for the compilers and in the list of what it
// replaces.
func TestIncludeFirst(t *testing.T) {
	first := &manifest.Manifest{IncludeFirst: []string{"third"}}
	files := map[string]string{".repository/third/stdint.h": "#define FACTOR 7\n", ".repository/third/cuda_fp16.h": "#define FACTOR 7\n", ".repository/third/own.h": ""}
	tree := runners.Tree{Folder: "kernels/k", Shared: []string{"third"}}
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
	tree := runners.Tree{Folder: "kernels/k", Shared: []string{"common"}, Differs: []runners.Difference{{Path: "kernels/k/tuning.txt", Why: "the change edits it"}}}
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
		"the date":                   {"#define FACTOR __DATE__[10]", "__DATE__ is not allowed"},
		"what every host has":        {"#if __has_include(\"/proc/version\")\n#define FACTOR 3\n#else\n#define FACTOR 2\n#endif", "k.cu:1: it asks for /proc/version"},
		"a full path or none":        {"#define FACTOR (__builtin_strchr(__FILE__, 47) == 0 || __FILE__[0] == 47 ? 2 : 3)", "the machine code depends on where it is compiled"},
		"assertions, not used":       {"#include <cassert>\n#define FACTOR 2", ""},
		"host code that names files": {"#include <cstdio>\n#define CHECK(x) check((x), __FILE__, __LINE__)\nstatic void check(int e, const char *f, int l) { if (e) printf(\"%s:%d\", f, l); }\nvoid run() { CHECK(cudaGetLastError()); }\n#define FACTOR 2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a shared file" && name != "the file" && name != "what differs" {
				long.Test(t)
			}
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
			if name != "plain" && name != "the environment" {
				long.Test(t)
			}
			t.Parallel()
			source := "import os, sys\nimport triton\nimport triton.language as tl\n\nFACTOR = tl.constexpr(" + test.factor + ")\n\n@triton.jit\ndef k(x, n, BLOCK: tl.constexpr):\n" +
				"    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + at, FACTOR, mask=at < n)\n"
			differs := []runners.Difference{{Path: "kernels/k/tuned.json", Why: "the change edits it"}, {Path: "kernels/k/tests/test_k.py", Why: "the change edits it"}}
			if strings.Contains(test.factor, "helper") {
				differs = append(differs, runners.Difference{Path: "kernels/k/helper/__init__.py", Why: "the change adds it"})
			}
			b := TritonBuild{
				Dir: folder(t, map[string]string{"k.py": source, "tuned.json": "{}", "helper.py": "FACTOR = 2\n"}), Source: "k.py", Entry: "k", Arch: "sm_90", Scratch: t.TempDir(),
				Tree:  runners.Tree{Folder: "kernels/k", Differs: differs},
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
		tree runners.Tree
		want string
	}{
		"alone":              {runners.Tree{Folder: "kernels/k"}, "/repository/kernels/k /sets"},
		"no folder is known": {runners.Tree{}, "/repository/kernel /sets"},
		"beside":             {runners.Tree{Folder: "kernels/k", Shared: []string{"common"}}, "/repository/common /repository/kernels/k /sets"},
		"within it":          {runners.Tree{Folder: "kernels/k", Shared: []string{"kernels/k/inc"}}, "/repository/kernels/k /repository/kernels/k/inc /sets"},
		"around it":          {runners.Tree{Folder: "kernels/k", Shared: []string{"kernels"}}, "/repository/kernels /repository/kernels/k /sets"},
		"around another":     {runners.Tree{Folder: "other/k", Shared: []string{"kernels"}}, "/repository/kernels /repository/other/k /sets"},
		"what is not there":  {runners.Tree{Folder: "kernels/k", Shared: []string{"nothing"}}, "/repository/kernels/k /sets"},
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
