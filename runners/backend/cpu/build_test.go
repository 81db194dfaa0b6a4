package cpu

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// compiled takes sources through the build as a runner does, and judges it: a verdict without performance gates ends with it. What the
// same compiler has made of the same before is looked at again, and linked; refusals are the compiler's anew.
func compiled(t *testing.T, manifest func(string) string, files map[string]string) (*Worker, *gates.Evidence, *gates.Verdict) {
	t.Helper()
	return gathered(t, manifest, files, "")
}

// freshlyCompiled is the same where the compiler itself is at issue: it is called, whatever it has made before.
func freshlyCompiled(t *testing.T, files map[string]string) (*Worker, *gates.Evidence, *gates.Verdict) {
	t.Helper()
	return gathered(t, nil, files, "reference")
}

// gathered keeps the builds of one of the worker's folders only, or of all.
func gathered(t *testing.T, manifestYAML func(string) string, files map[string]string, only string) (*Worker, *gates.Evidence, *gates.Verdict) {
	t.Helper()
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if manifestYAML != nil {
		text = []byte(manifestYAML(string(text)))
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	_, p := languages(t)
	for i := range p.Rules {
		p.Rules[i].Gates.Performance = nil
	}
	root := t.TempDir()
	dir := filepath.Join(root, "head")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "reference.c"), []byte(reference), 0o644); err != nil {
		t.Fatal(err)
	}
	job := runners.Job{Manifest: m, Policy: p, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: m.DefaultVariant}}
	w, err := NewWorker(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), LaunchTimeout: time.Minute, Seed: 1, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	kept := keep(t, w.cc, w.cc.Version)
	kept.only = only
	w.compiler = kept
	e, err := gather.Gather(t.Context(), job, w, silent{})
	if err != nil {
		t.Fatalf("the code is to blame, but the runner says: %v", err)
	}
	return w, e, gates.Judge(p, "test.yaml", e)
}

const ordinary = "#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"

// assembly is a source with lines for the assembler beside the kernel.
func assembly(lines string) string {
	return ordinary + "__asm__(\"" + strings.ReplaceAll(strings.ReplaceAll(lines, `"`, `\"`), "\n", `\n`) + "\\n.text\\n\");\n"
}

// Whatever would make the linker or the loader do more than put the kernel's bytes into memory is the code's fault, and the
// verdict names the section or symbol.
func TestBuildRefuses(t *testing.T) {
	const constructor = "holds a constructor or destructor"
	for name, test := range map[string]struct{ source, says string }{
		"a constructor":            {ordinary + "__attribute__((constructor)) static void first(void) { for (;;) ; }\n", "section .init_array " + constructor},
		"one with a priority":      {ordinary + "__attribute__((constructor(101))) static void first(void) { for (;;) ; }\n", "section .init_array.00101 " + constructor},
		"a destructor":             {ordinary + "__attribute__((destructor)) static void last(void) { for (;;) ; }\n", "section .fini_array " + constructor},
		"an array of its own":      {assembly(".pushsection .init_array,\"aw\",%init_array\n.quad scale\n.popsection"), "section .init_array " + constructor},
		"an array by another name": {assembly(".pushsection .data.x,\"aw\",%init_array\n.quad scale\n.popsection"), "section .data.x " + constructor},
		"before the libraries":     {assembly(".pushsection .preinit_array,\"aw\",%preinit_array\n.quad scale\n.popsection"), "section .preinit_array " + constructor},
		"the old way":              {assembly(".pushsection .ctors,\"aw\",%progbits\n.quad scale\n.popsection"), "section .ctors " + constructor},
		"code of _init":            {assembly(".pushsection .init,\"ax\",%progbits\nnop\n.popsection"), "section .init " + constructor},
		"an indirect function":     {ordinary + "static void *pick(void) { return scale; }\nvoid other(void) __attribute__((ifunc(\"pick\")));\n", "symbol other is an indirect function"},
		"code in a note":           {assembly(".pushsection .note.slow,\"ax\",%note\nnop\n.popsection"), "section .note.slow is not one that compilers make"},
		"code elsewhere":           {ordinary + "__attribute__((section(\".mine\"))) void other(void) { }\n", "section .mine is not one that compilers make"},
		"data elsewhere":           {ordinary + "__attribute__((section(\"mine\"))) int other = 1;\n", "section mine is not one that compilers make"},
		"writable code":            {assembly(".pushsection .text.unlikely,\"awx\",%progbits\nnop\n.popsection"), "section .text.unlikely has the kind 0x1 and the flags 0x7"},
		"code among data":          {assembly(".pushsection .rodata.x,\"ax\",%progbits\nnop\n.popsection"), "section .rodata.x has the kind 0x1 and the flags 0x6"},
		"code as a note":           {assembly(".pushsection .text.x,\"ax\",%note\nnop\n.popsection"), "section .text.x has the kind 0x7"},
		"a section to keep":        {assembly(".pushsection .data.x,\"awR\",%progbits\n.quad 1\n.popsection"), "section .data.x has the kind 0x1 and the flags 0x200003"},
		"too much memory":          {ordinary + "char large[1 << 29];\n", "section .bss brings what is loaded to more than 268435456 bytes"},
		"alignment":                {ordinary + "_Alignas(1 << 20) char wide;\n", "section .bss wants an alignment of 1048576"},
		"a common symbol":          {assembly(".comm shared,64,8"), "symbol shared is a common one"},
		"a thread's variable":      {ordinary + "_Thread_local int mine; int *where(void) { return &mine; }\n", "section .tbss is thread-local"},
		"another's variable":       {ordinary + "extern _Thread_local int theirs; int *where(void) { return &theirs; }\n", "symbol theirs is thread-local"},
		"a version of a function":  {ordinary + "void *old(void *, const void *, unsigned long); __asm__(\".symver old,memcpy@GLIBC_2.2.5\");\nvoid other(char *x) { old(x, x + 1, 9); }\n", `symbol memcpy@GLIBC_2.2.5 is to come from a library`},
		"a warning":                {assembly(".pushsection .gnu.warning.write,\"\",%progbits\n.asciz \"hello\"\n.popsection"), "section .gnu.warning.write (kind 0x1) gives orders to the linker"},
		"a library":                {assembly(".pushsection .deplibs,\"MS\",%0x6fff4c04,1\n.asciz \"pthread\"\n.popsection"), "section .deplibs (kind 0x6fff4c04) gives orders to the linker"},
		"a compressed section":     {assembly(".pushsection .rodata.zz,\"0x802\",%progbits\n.long 1, 0\n.quad 64, 1\n.quad 0\n.popsection"), "section .rodata.zz is compressed"},
		"an executable stack":      {assembly(".pushsection .note.GNU-stack,\"x\",%progbits\n.popsection"), "section .note.GNU-stack asks for an executable stack"},
		"many sections":            {assembly(".macro more n\n.section .text.x\\\\@\nnop\n.endm\n.rept 33000\nmore 0\n.endr"), "sections, over the limit of 32768"},
		"very many sections":       {assembly(".macro more n\n.section .text.x\\\\@\nnop\n.endm\n.rept 70000\nmore 0\n.endr"), "the object file is malformed: 0 section headers"},
		"no entry":                 {"int other;\n", "scale.c: the source defines no function scale that can be called from outside"},
		"a static entry":           {"static void scale(void) { }\nvoid *other(void) { return scale; }\n", "the source defines no function scale"},
		"an address as entry":      {"__asm__(\".globl scale\\nscale = 4096\");\n", "scale is not a function with code of its own"},
		"data as entry":            {"const unsigned char scale[] = {0xc3};\n", "scale is not a function with code of its own"},
		"an entry without code":    {"__asm__(\".globl scale\\nscale:\");\n", "scale is not a function with code of its own"},
		"what is not loaded":       {assembly(".pushsection .hidden,\"\",%progbits\nunseen: .quad 1\n.popsection\n.pushsection .data.x,\"aw\",%progbits\n.quad unseen\n.popsection"), "section .data.x refers to section .hidden, which is not loaded"},
		"a garbled report":         {"#line 1 \"a\\tb\"\n" + ordinary, "the compiler's stack report is garbled"},
		"a file of the system":     {assembly(".incbin \"/etc/passwd\""), "does not build: file not found: /etc/passwd"},
		"a device":                 {assembly(".incbin \"/dev/zero\""), "/dev/zero"},
		"an unknown function":      {"void nowhere(void);\n" + strings.Replace(ordinary, "2 * x[i];", "2 * x[i]; nowhere();", 1), "the entry point scale does not link: undefined reference to `nowhere'"},
		"orders to the linker":     {"INPUT(/etc/passwd)\nENTRY(scale)\n", "scale.c:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, v := compiled(t, nil, map[string]string{"scale.c": test.source})
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, test.says) || strings.Contains(v.Summary, "\n") {
				t.Errorf("got %s (%s): %q\nwant a refusal of the build in one line that says %q", v.Outcome, v.Reason, v.Summary, test.says)
			}
		})
	}
}

// A compressed section of relocations that claims three gigabytes: whoever unpacks it, pays.
func TestBombIsNotUnpacked(t *testing.T) {
	const claimed = 3 << 30
	var bomb bytes.Buffer
	packer := zlib.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 64 { // it is enough to be unpacked at all
		if _, err := packer.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	header := binary.LittleEndian.AppendUint64([]byte{1, 0, 0, 0, 0, 0, 0, 0}, claimed)
	header = binary.LittleEndian.AppendUint64(header, 1)
	source := assembly(".pushsection .rela.rodata.zz,\"0x800\",%4\n.incbin \"bomb.h\"\n.popsection\n.pushsection .rodata.zz,\"a\"\n.long 1\n.popsection")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, v := freshlyCompiled(t, map[string]string{"scale.c": source, "bomb.h": string(header) + bomb.String()})
	runtime.ReadMemStats(&after)
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, "section .rela.rodata.zz is compressed") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("the build took %d MiB of the runner's memory", grown>>20)
	}
}

// A kernel may have functions with the names of the C library's. It calls its own, and the stub the library's.
func TestKernelReplacesNothing(t *testing.T) {
	const ends = "{ __builtin_trap(); }\n"
	source := "#include <stdint.h>\n#include <stddef.h>\n" +
		"long read(int a, void *b, size_t c) " + ends + "long write(int a, const void *b, size_t c) " + ends +
		"void *mmap(void *a, size_t b, int c, int d, int e, long f) " + ends + "int fstat(int a, void *b) " + ends +
		"void *memcpy(void *a, const void *b, size_t c) " + ends + "int main(void) " + ends + "void _start(void) " + ends +
		"void _init(void) " + ends + "void _fini(void) " + ends + "int __libc_start_main(void) " + ends + "void *malloc(size_t a) " + ends +
		"int __cxa_finalize(void *a) " + ends + "void exit(int a) " + ends + "void __gmon_start__(void) " + ends + "void _ITM_registerTMCloneTable(void) " + ends +
		"__attribute__((weak)) int all(void) " + ends + "void call(void) " + ends +
		"__attribute__((noinline)) float expf(float x) { __asm__ volatile(\"\"); return 2 * x; }\n" +
		"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = expf(x[i]); }\n"
	_, _, v := compiled(t, func(manifest string) string {
		return strings.Replace(manifest, "flags: [-O2]", "flags: [-O2, -fno-builtin]", 1)
	},
		map[string]string{"scale.c": source})
	if v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// What ordinary kernels need of the compiler's own library, of the C library and of each other still links.
func TestOrdinaryKernelsLink(t *testing.T) {
	for name, test := range map[string]struct{ source, flag string }{
		"the processor's features": {"#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { int n = 0; if (__builtin_cpu_supports(\"sse2\")) n = 1; for (int i = 0; i < N; i++) y[i] = (1 + n) * x[i]; }\n", "-O2"},
		"helpers of the compiler":  {"#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { volatile __int128 a = 8; a /= 4; for (int i = 0; i < N; i++) y[i] = (float)a * x[i]; }\n", "-O2"},
		"tables of pointers":       {"#include <stdint.h>\n#include <string.h>\n#include <stdio.h>\nstatic const char *const names[] = {\"a\", \"bb\"};\nstatic float one(float x) { return x; }\nstatic float two(float x) { return 2 * x; }\nstatic float (*const functions[])(float) = {one, two};\nvoid scale(const float *x, float *y, int32_t N) { if (N < 0) puts(names[0]); for (int i = 0; i < N; i++) y[i] = functions[strlen(names[1]) - 1](x[i]); }\n", "-O0"},
		"recursion and state":      {"#include <stdint.h>\nint depth; static int calls = 3;\nvoid scale(const float *x, float *y, int32_t N) { if (N == 0) return; depth++; calls += depth; y[0] = 2 * x[0]; scale(x + 1, y + 1, N - 1); depth--; }\n", "-O1"},
		"a stack protector":        {"#include <stdint.h>\n#include <string.h>\n__attribute__((optimize(\"stack-protector-all\"))) void scale(const float *x, float *y, int32_t N) { char room[64]; memset(room, N, sizeof room); __asm__ volatile(\"\" :: \"r\"(room)); for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n", "-O2"},
		"debugging":                {ordinary, "-g"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOARCH != "amd64" && name == "the processor's features" {
				t.Skip("not on this processor")
			}
			_, _, v := compiled(t, func(manifest string) string { return strings.Replace(manifest, "-O2", test.flag, 1) }, map[string]string{"scale.c": test.source})
			if v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// Code that has to be changed while it is loaded would have to be writable.
func TestCodeIsNeverWritable(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the instruction is x86-64's")
	}
	_, _, v := compiled(t, nil, map[string]string{"scale.c": "void *other(void);\n" + strings.Replace(ordinary, "2 * x[i];", "2 * x[i]; other();", 1) + "void *other(void) { void *p; __asm__ volatile(\"movabs $scale, %0\" : \"=r\"(p)); return p; }\n"})
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, "the entry point scale does not link") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// A file of a library has functions that call the rest of the library. The kernel does not need them.
func TestUnusedFunctionsNeedNotLink(t *testing.T) {
	_, _, v := compiled(t, nil, map[string]string{"scale.c": ordinary + "void nowhere(void);\nvoid other(void) { nowhere(); }\n"})
	if v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// An entry stands in for nothing either, whatever the manifest calls it.
func TestEntryReplacesNothing(t *testing.T) {
	for _, entry := range []string{"__libc_start_main", "_start", "_init", "malloc", "__cxa_finalize"} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			_, _, v := compiled(t, func(manifest string) string {
				return strings.Replace(manifest, "entry: scale\n", "entry: "+entry+"\n", 1)
			},
				map[string]string{"scale.c": strings.Replace(ordinary, "scale", entry, 1)})
			if v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// A source is compiled in the language that its name has in every other build: one that asks for its
// language gives the same code there.
func TestLanguageIsThatOfTheName(t *testing.T) {
	for ending, language := range map[string]string{".c": "C", ".cxx": "C++", ".c++": "C++"} {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			source := "#ifdef __cplusplus\nextern \"C\"\n#else\n#error C\n#endif\n"
			if language == "C" {
				source = "#ifdef __cplusplus\n#error C++\n#endif\n"
			}
			_, e, v := compiled(t, func(manifest string) string { return strings.Replace(manifest, "scale.c\n", "scale"+ending+"\n", 1) },
				map[string]string{"scale" + ending: "#include <stdint.h>\n" + source + strings.TrimPrefix(ordinary, "#include <stdint.h>\n")})
			if v.Outcome != gates.Pass {
				t.Errorf("%s: %s", v.Outcome, e.Candidate.Error)
			}
		})
	}
}

// C++ brings groups, tables of virtual functions, weak symbols and tables for exceptions.
func TestCXX(t *testing.T) {
	source := `#include <cstdint>
#include <stdexcept>
#include <vector>
namespace {
struct Shape { virtual ~Shape() {} virtual float by() const { return 1; } };
struct Twice : Shape { float by() const override { return 2; } };
__attribute__((noinline)) Shape *make(int n) { if (n >= 0) return new Twice; return new Shape; }
template <class T> __attribute__((noinline)) T item(const std::vector<T> &v, int i) { if (i >= (int)v.size()) throw std::out_of_range("end"); return v[i]; }
}
extern "C" void scale(const float *x, float *y, int32_t N)
{
    static int once = N;
    std::vector<float> copy(x, x + N);
    Shape *shape = make(once);
    try {
        for (int i = 0;; i++)
            y[i] = shape->by() * item(copy, i);
    } catch (const std::out_of_range &) {
    }
    delete shape;
}
`
	for _, flag := range []string{"-O0", "-O2"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			_, e, v := compiled(t, func(manifest string) string {
				return strings.Replace(strings.Replace(manifest, "scale.c\n", "scale.cc\n", 1), "-O2", flag, 1)
			}, map[string]string{"scale.cc": source})
			if v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if globals := strings.Join(e.Candidate.Resources.Globals, ", "); !strings.Contains(globals, "once (4 B)") {
				t.Errorf("globals %s", globals)
			}
		})
	}
}

// A slow expf beside an unchanged kernel: the kernel's own bytes are the baseline's, and so is the order of its symbols. What
// it calls is not.
func TestSameCodeIsAllOfIt(t *testing.T) {
	const kernel = "#include <stdint.h>\n#include <math.h>\nvoid scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = x[i] + x[i] + 0 * expf(1 + 0 * x[i]); }\n"
	_, base, _ := compiled(t, nil, map[string]string{"scale.c": kernel})
	_, same, _ := compiled(t, nil, map[string]string{"scale.c": "/* a comment */\n\n" + strings.ReplaceAll(kernel, "; i++)", ";\n i++)")})
	if !base.Candidate.OK || base.Candidate.Code == "" || base.Candidate.Code != same.Candidate.Code {
		t.Errorf("a comment changes the code: %+v, %+v", base.Candidate, same.Candidate)
	}
	for section, builds := range map[string]bool{".text.slow": true, ".text": true, ".note.slow": false, ".eh_frame": false, ".note.gnu.property": false} {
		slow := "__asm__(\".globl scale, expf\\n.pushsection " + section + ",\\\"ax\\\",%progbits\\nexpf:\\n.rept 1000\\nnop\\n.endr\\nret\\n.popsection\\n\");\n"
		_, e, _ := compiled(t, nil, map[string]string{"scale.c": kernel + slow})
		if e.Candidate.OK != builds || e.Candidate.Code == base.Candidate.Code {
			t.Errorf("a slow expf in %s builds: %v (%s), and is the same code: %v", section, e.Candidate.OK, e.Candidate.Error, e.Candidate.Code == base.Candidate.Code)
		}
	}
}

// What the assembler can read of its own process is not the runner's.
func TestAssemblerSeesNoSecret(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	t.Setenv("KERNELGATE_TEST_SECRET", secret)
	w, _, v := freshlyCompiled(t, map[string]string{"scale.c": assembly(".pushsection .rodata.x,\"a\",%progbits\n.incbin \"/proc/self/environ\"\n.popsection")})
	if v.Outcome == gates.Error {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	found := 0
	err := filepath.WalkDir(w.config.Scratch, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the runner's environment is in %s", path)
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d files, %v", found, err)
	}
}

// What the source's compiler left behind is not beside the program when it is linked.
func TestProgramIsMadeOfKnownFiles(t *testing.T) {
	w, _, v := freshlyCompiled(t, map[string]string{"scale.c": ordinary})
	if v.Outcome != gates.Pass {
		t.Fatal(v.Summary)
	}
	files, err := os.ReadDir(filepath.Join(w.config.Scratch, string(runners.Candidate), "program"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != "kernel kernel.o main.c" {
		t.Errorf("the program's folder has %s", got)
	}
}
