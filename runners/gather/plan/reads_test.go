package plan_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// shared is a kernel that may include from two folders.
var shared = map[string]string{
	".github/kernelgate.yaml": policyYAML, "common/a.h": "#include \"deep/b.h\"\n", "common/deep/b.h": "// b\n", "common/c.h": "// c\n", "other/d.h": "#include <c.h>\n", "other/e.h": "// e\n",
	"k/reference.c": "// truth\n",
}

func including(source string) map[string]string {
	files := map[string]string{"k/scale.c": source, "k/kernel.yaml": strings.Replace(manifestYAML, "source: scale.c\n", "source: scale.c\ninclude: [common, other]\n", 1)}
	for name, text := range shared {
		files[name] = text
	}
	return files
}

// TestHeadersThatAKernelReads checks that a change of a header elsewhere touches every kernel that
// reads it, however the include is written. It compares with what the compiler reads.
func TestHeadersThatAKernelReads(t *testing.T) {
	everything := []string{"common/a.h", "common/c.h", "common/deep/b.h", "other/d.h", "other/e.h"}
	type kernel struct {
		name, source string
		reads        []string
	}
	var cases []kernel
	for name, c := range map[string]struct {
		source string
		reads  []string
	}{
		"nothing":                     {"int x;\n", nil},
		"the system":                  {"#include <math.h>\n", nil},
		"a header and what it reads":  {"#include <a.h>\n", []string{"common/a.h", "common/deep/b.h"}},
		"in quotes":                   {"#include \"a.h\"\n", []string{"common/a.h", "common/deep/b.h"}},
		"from the other folder":       {"#include <d.h>\n", []string{"common/c.h", "other/d.h"}},
		"by way of its own header":    {"#include \"own.h\"\n", []string{"other/e.h"}},
		"a path":                      {"#include <deep/b.h>\n", []string{"common/deep/b.h"}},
		"a path with steps":           {"#include \"../common/./deep/../c.h\"\n", []string{"common/c.h"}},
		"spaces and a remark":         {" \t# \t include\t<c.h> // why\n", []string{"common/c.h"}},
		"a remark in it":              {"#/* */include <c.h>\n", everything},
		"a remark over two lines":     {"#/*\n*/ include <c.h>\n", everything},
		"a line that goes on":         {"#inc\\\nlude <c.h>\n", []string{"common/c.h"}},
		"a directive that goes on":    {"#include \\\n  <c.h>\n", []string{"common/c.h"}},
		"behind a text like a remark": {"const char *s = \"/*\";\n#include <c.h>\n", []string{"common/c.h"}},
		"a macro":                     {"#define H <c.h>\n#include H\n", everything},
		"a digraph":                   {"%:include <c.h>\n", []string{"common/c.h"}},
		"include_next":                {"#include_next <c.h>\n", everything},
		"import":                      {"#import <c.h>\n", everything},
		"asking for it":               {"#if __has_include(<c.h>)\n#include <c.h>\n#endif\n", []string{"common/c.h"}},
		"asking alone":                {"#if defined(__has_include) && __has_include ( \"c.h\" ) || __has_include(<e.h>)\nint x;\n#endif\n", []string{"common/c.h", "other/e.h"}},
		"asking whether it can ask":   {"#ifdef __has_include\n#if !__has_include(<deep/b.h>)\n#endif\n#endif\n", []string{"common/deep/b.h"}},
		"asking by a macro":           {"#define H <c.h>\n#if __has_include(H)\n#endif\n", everything},
		"asking by another name":      {"#define ASK __has_include\n#if ASK(<c.h>)\n#endif\n", everything},
		"asking for the next":         {"#if __has_include_next(<c.h>)\n#endif\n", everything},
		"asking in two lines":         {"#if __has_inc\\\nlude(<c.h>)\n#endif\n", []string{"common/c.h"}},
		"asking and including":        {"#if __has_include(<c.h>)\n#endif /*\n*/ # include <e.h>\n", everything},
		"past the folders' paths":     {"#include \".repository/common/c.h\"\n", everything},
		"the assembler":               {"__asm__(\".inc\" \"bin \\\".repository/common/c.h\\\"\");\n", everything},
		"a word put together":         {"#define P(a, b) a##b\nP(as, m)(\".incbin \\\".repository/common/c.h\\\"\");\n", everything},
		"carriage returns":            {"#include <c.h>\r\nint x;\r\n", []string{"common/c.h"}},
		"old ends of lines":           {"int x;\r#include <c.h>\r", everything},
		"in a remark":                 {"// #include <c.h>\n", everything},
		"a remark with the word":      {"/* headers that we include */\n// include\n", nil},
	} {
		cases = append(cases, kernel{name, c.source, c.reads})
	}
	r := newTree(t)
	files, changed := including("int x;\n"), map[string]string{}
	folder := func(i int) string { return fmt.Sprintf("k%d", i) }
	for i, c := range cases {
		files[folder(i)+"/scale.c"], files[folder(i)+"/kernel.yaml"], files[folder(i)+"/reference.c"] = c.source, files["k/kernel.yaml"], "// truth\n"
		if c.name == "by way of its own header" {
			files[folder(i)+"/own.h"] = "#include <e.h>\n"
		}
	}
	for _, header := range everything {
		changed[header] = shared[header] + "// changed\n"
	}
	base := r.commit(files)
	p := r.plan(plan.Options{Base: base, Head: r.commit(changed)})
	if _, err := p.Kernels(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		touching := slices.DeleteFunc(slices.Clone(everything), func(header string) bool { return !p.Touches(folder(i), []string{header}) })
		if !slices.Equal(touching, c.reads) {
			t.Errorf("%s: it is taken to read %v, want %v", c.name, touching, c.reads)
		}
		for _, header := range compilerReads(t, r.dir, folder(i)) {
			if !slices.Contains(touching, header) {
				t.Errorf("%s: the compiler reads %s", c.name, header)
			}
		}
	}
}

// compilerReads returns the shared headers that a C compiler reads, in the layout of a side.
func compilerReads(t *testing.T, dir, folder string) []string {
	t.Helper()
	side := t.TempDir()
	for _, pair := range [][2]string{{folder, "."}, {"common", ".repository/common"}, {"other", ".repository/other"}} {
		if err := os.CopyFS(filepath.Join(side, pair[1]), os.DirFS(filepath.Join(dir, pair[0]))); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("cc", "-M", "-trigraphs", "-idirafter.repository/common", "-idirafter.repository/other", "scale.c")
	cmd.Dir = side
	out, err := cmd.Output() // it may refuse the source: what it reads until then counts
	if err != nil && len(out) == 0 {
		t.Logf("cc: %v", err)
	}
	var read []string
	for _, word := range strings.Fields(string(out)) {
		if rel, ok := strings.CutPrefix(filepath.Clean(word), ".repository/"); ok {
			read = append(read, rel)
		}
	}
	return read
}

// The system's headers may include what lies in a folder of include_first: all of it is the kernel's.
func TestHeadersSearchedFirst(t *testing.T) {
	r := newTree(t)
	files := including("#include <stddef.h>\n")
	files["k/kernel.yaml"] = strings.Replace(files["k/kernel.yaml"], "include:", "include_first:", 1)
	base := r.commit(files)
	p := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"common/c.h": "// changed\n"})})
	if _, err := p.Kernels(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.Touches("k", []string{"common/c.h"}) {
		t.Error("a change of a header that the system's may include is no change of the kernel")
	}
}

// Both graphs count: what the base read and what the head reads; and a header that comes
// first from now on is read too.
func TestHeadersOfBothSides(t *testing.T) {
	r := newTree(t)
	base := r.commit(including("#include <c.h>\n"))
	for name, c := range map[string]struct {
		edit map[string]string
		want string
	}{
		"a header that the base read":   {map[string]string{"common/c.h": ""}, "k"},
		"one that would come first":     {map[string]string{"other/c.h": "// mine\n"}, "k"},
		"one that nobody reads":         {map[string]string{"other/new.h": "// new\n"}, ""},
		"a folder that is not its own":  {map[string]string{"elsewhere/c.h": "// c\n"}, ""},
		"what the compiler takes alone": {map[string]string{"common/stdc-predef.h": "// mine\n"}, "k"},
	} {
		head := r.commit(c.edit)
		folders, err := r.plan(plan.Options{Base: base, Head: head}).Kernels(t.Context())
		if err != nil || strings.Join(folders, " ") != c.want {
			t.Errorf("%s: the change touches %v (%v), want %q", name, folders, err, c.want)
		}
		r.git("checkout", "--quiet", base)
	}
}

// TestIncludeSpeltOtherwise checks that the folders in include count, however the manifest spells
// the key.
func TestIncludeSpeltOtherwise(t *testing.T) {
	r := newTree(t)
	files := including("#include <c.h>\n")
	files["k/kernel.yaml"] = strings.Replace(files["k/kernel.yaml"], "include:", `"\x69nc\u006cude":`, 1)
	base := r.commit(files)
	keys, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"common/c.h": "// worse\n"})}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "k" {
		t.Errorf("the change touches %q (%v)", keys, err)
	}
}

// TestIncludeFolders checks that each side is built with the headers of its own commit, and that
// the work tree's headers are used.
func TestIncludeFolders(t *testing.T) {
	r := newTree(t)
	base := r.commit(including("#include <a.h>\n"))
	head := r.commit(map[string]string{"common/deep/b.h": "// b, faster\n"})
	for rev, name := range map[string]string{head: "commit", "": "work tree"} {
		job, err := r.job(plan.Options{Base: base, Head: rev})
		if err != nil {
			t.Fatal(err)
		}
		const header = ".repository/common/deep/b.h"
		if was, is := r.read(job.Baseline.Dir, header), r.read(job.Candidate.Dir, header); was != "// b\n" || is != "// b, faster\n" {
			t.Errorf("%s: the baseline has %q and the candidate %q", name, was, is)
		}
	}
}

// TestHostileInclude checks that a forbidden include folder is reported with its line. Nothing
// leads out of the repository, and it replaces nothing in the reference's folder.
func TestHostileInclude(t *testing.T) {
	for name, c := range map[string]struct{ include, want string }{
		"above":        {"[../secrets]", `k/kernel.yaml:6: include[0]: "../secrets" is not a folder of the repository`},
		"absolute":     {"[/etc]", `k/kernel.yaml:6: include[0]: "/etc" is not a folder of the repository`},
		"a hidden one": {"[.git]", `k/kernel.yaml:6: include[0]: ".git" is not a folder of the repository`},
		"a flag":       {"[-Ifoo]", `k/kernel.yaml:6: include[0]: "-Ifoo" is not a folder of the repository`},
		"a comma":      {"['a,-fplugin=x']", `k/kernel.yaml:6: include[0]: "a,-fplugin=x" is not a folder of the repository`},
		"twice":        {"[common, common]", `k/kernel.yaml:6: include[1]: "common" is named twice`},
		"nowhere":      {"[missing]", "k/kernel.yaml:6: include: the head has no file in the folder missing"},
		"a link":       {"[outside]", "k/kernel.yaml:6: include: the head has no file in the folder outside"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(including("int x;\n"))
			if err := os.Symlink("/etc", filepath.Join(r.dir, "outside")); err != nil {
				t.Fatal(err)
			}
			head := r.commit(map[string]string{"k/kernel.yaml": strings.Replace(manifestYAML, "source: scale.c\n", "source: scale.c\ninclude: "+c.include+"\n", 1)})
			job, err := r.job(plan.Options{Base: base, Head: head})
			if err != nil || len(job.Broken) == 0 {
				t.Fatalf("it is taken (%v)", err)
			}
			if got := job.BrokenEvidence().Candidate.Error; !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	r := newTree(t)
	base := r.commit(including("int x;\n"))
	head := r.commit(map[string]string{
		"k/kernel.yaml": strings.Replace(manifestYAML, "source: scale.c\n", "source: scale.c\nsources: ['**']\ninclude: [k]\n", 1), "k/reference.c": "// a lie\n", "k/.repository/k/reference.c": "// another\n",
	})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil || len(job.Broken) > 0 {
		t.Fatalf("%v %v", err, job.Broken)
	}
	if r.read(job.Candidate.Dir, "reference.c") != "// truth\n" || r.read(job.Trusted, "reference.c") != "// truth\n" || r.read(job.Candidate.Dir, ".repository/k/reference.c") != "// a lie\n" {
		t.Error("the kernel's own folder as one to include from replaces what is trusted")
	}
}

// TestAskingUnseen checks that a source that pastes together a test for a header counts as testing
// for all headers. In a kernel for the GPU these are the only words that can be pasted together.
func TestAskingUnseen(t *testing.T) {
	for _, text := range []string{
		"#define ASK __has_inc##lude\n#if ASK(<c.h>)\n#endif\n",
		"#define P(a, b) a##b\n#define ALL P(__h,as_include)(<c.h>)\n#if ALL\n#endif\n",
		"#define P(a, b) a##b\n#if P(__has_includ, e)(<c.h>)\n#endif\n",
		"#define P(a, b) a ## b\n#define Q (<c.h>)\n#if P(_, _has_include) Q\n#endif\n",
		"#define P(a, b) a ## b\n#if P(__has_, embed)(<c.h>)\n#endif\n",
	} {
		if names, plain := plan.Included([]byte(text), false); plain {
			t.Errorf("it is taken to read %v alone:\n%s", names, text)
		}
	}
	for text, want := range map[string]int{"#define JOIN(a, b) a##b\n#include <c.h>\nint JOIN(x, y);\n": 1, "int has_include_path, __hash, x_;\n": 0} {
		if names, plain := plan.Included([]byte(text), false); !plain || len(names) != want {
			t.Errorf("it is taken to read %v, plainly %v:\n%s", names, plain, text)
		}
	}
}
