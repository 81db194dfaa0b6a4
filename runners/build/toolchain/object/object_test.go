package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

// versions is what this machine's compilers say of themselves.
var versions = map[string]func() (string, error){"cc": versionOf("cc"), "c++": versionOf("c++")}

func versionOf(compiler string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		out, err := exec.Command(compiler, "-v").CombinedOutput() // with what it was configured for
		return string(out), err
	})
}

// compiled is the object file that this machine's compiler makes of a text. What it has made once is kept, but for code that is for
// the processor at hand.
func compiled(tb testing.TB, name, source string, flags ...string) []byte {
	tb.Helper()
	compiler := "cc"
	if filepath.Ext(name) == ".cc" {
		compiler = "c++"
	}
	compile := func() []byte { return compiledBy(tb, compiler, name, source, flags) }
	if slices.Contains(flags, "-march=native") {
		return compile()
	}
	version, err := versions[compiler]()
	if err != nil {
		tb.Fatal(err)
	}
	return toolchaintest.Kept(tb, compile, append([]string{compiler, version, name, source}, flags...)...)
}

func compiledBy(tb testing.TB, compiler, name, source string, flags []string) []byte {
	tb.Helper()
	dir := tb.TempDir()
	out := filepath.Join(dir, "kernel.o")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o644); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(compiler, append(slices.Clone(flags), "-ffunction-sections", "-fno-ident", "-fno-common", "-w", "-c", name, "-o", out)...)
	cmd.Dir = dir
	if log, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, log)
	}
	image, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

func wholeObject(tb testing.TB, name string, flags ...string) []byte {
	tb.Helper()
	source, err := os.ReadFile(filepath.Join("testdata/objects", name))
	if err != nil {
		tb.Fatal(err)
	}
	return compiled(tb, name, string(source), flags...)
}

func mustParse(tb testing.TB, image []byte) Object {
	tb.Helper()
	o, err := parseObject(image, "scale")
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// What compilers make of ordinary sources is taken, at every level of optimisation.
func TestObjectsOfCompilers(t *testing.T) {
	for _, name := range []string{"whole.c", "whole.cc"} {
		for level, more := range map[string]string{
			"-O0": "-g", "-O1": "-fno-pie", "-O2": "-march=native", "-O3": "-fdata-sections", "-Os": "-fno-asynchronous-unwind-tables", "-Ofast": "-fno-plt",
		} {
			t.Run(name+level+more, func(t *testing.T) {
				t.Parallel()
				if name == "whole.cc" && level != "-O0" && level != "-O2" {
					t.Skip("C++ differs by its sections and symbols, not by the level, and takes its time")
				}
				o := mustParse(t, wholeObject(t, name, level, more))
				if o.CodeSize < 100 || o.CodeSize > 64<<10 {
					t.Errorf("%d bytes of code", o.CodeSize)
				}
				f, err := elf.NewFile(bytes.NewReader(o.Image))
				if err != nil {
					t.Fatal(err)
				}
				symbols, err := f.Symbols()
				if err != nil {
					t.Fatal(err)
				}
				for _, y := range symbols {
					if y.Section != elf.SHN_UNDEF && (elf.ST_BIND(y.Info) != elf.STB_LOCAL) != (y.Name == EntrySymbol) {
						t.Errorf("symbol %+v can be seen from outside", y)
					}
				}
			})
		}
	}
}

// Names and places of the source, its comments and debugging information are no part of the code; a constant, a string, a
// function that is called and the size of a variable are.
func TestCodeOfObjects(t *testing.T) {
	for name, changes := range map[string][][2]string{
		"whole.c":  {{"3.25f", "3.5f"}, {`"two"`, `"too"`}, {"sinf(", "cosf("}, {"kept[64]", "kept[65]"}, {"preset = 7", "preset = 8"}, {"= power;", "= fmaf;"}, {"7, 8}", "8, 7}"}, {"i % 9", "i % 8"}},
		"whole.cc": {{"return 2", "return 3"}, {"beyond the", "behind the"}, {"out_of_range &", "logic_error &"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata/objects", name))
			if err != nil {
				t.Fatal(err)
			}
			source := string(text)
			code := mustParse(t, compiled(t, name, source, "-O2")).Code
			same := "// a comment\n\n" + strings.ReplaceAll(source, "{\n", "{\n\n")
			if got := mustParse(t, compiled(t, "another_name"+filepath.Ext(name), same, "-O2", "-g")).Code; got != code {
				t.Error("a comment, moved lines, another name and -g make another code")
			}
			if got := mustParse(t, compiled(t, name, strings.ReplaceAll(source, "power", "potency"), "-O2")).Code; got != code {
				t.Error("the name of a static function makes another code")
			}
			for _, c := range changes {
				changed := strings.Replace(source, c[0], c[1], 1)
				if changed == source {
					t.Fatalf("no %s in %s", c[0], name)
				}
				if got := mustParse(t, compiled(t, name, changed, "-O2")).Code; got == code {
					t.Errorf("%s instead of %s makes the same code", c[1], c[0])
				}
			}
		})
	}
}

// State that the assembler hides from the symbols is told too.
func TestGlobalsWithoutNames(t *testing.T) {
	o := mustParse(t, compiled(t, "k.c", "static int n; float kept[32]; void scale(void) { n++; kept[n & 31]++; }\n"+
		"__asm__(\".pushsection .bss\\n.zero 4096\\n.popsection\\n\");\n", "-O0"))
	got := strings.Join(o.Globals, ", ")
	if !strings.Contains(got, "kept (128 B)") || !strings.Contains(got, "n (4 B)") || !strings.Contains(got, ".bss without a name (4096 B)") {
		t.Errorf("globals %s", got)
	}
}

func FuzzObject(f *testing.F) {
	f.Add(wholeObject(f, "whole.c", "-O2", "-g"))
	f.Add(wholeObject(f, "whole.cc", "-O1"))
	f.Add(compiled(f, "k.c", "void scale(void) { }\n"))
	f.Fuzz(func(t *testing.T, image []byte) {
		o, err := parseObject(image, "scale")
		if err != nil {
			if refusal := new(output.CompileError); !errors.As(err, &refusal) || strings.Contains(refusal.Summary, "\n") {
				t.Errorf("%v (%T)", err, err)
			}
			return
		}
		if len(o.Image) > 8*len(image)+4096 {
			t.Errorf("%d bytes are made of %d", len(o.Image), len(image))
		}
		// What is written is read as what was read.
		again, err := parseObject(o.Image, EntrySymbol)
		if err != nil || !bytes.Equal(again.Image, o.Image) || again.Code != o.Code || again.CodeSize != o.CodeSize {
			t.Errorf("read again: %v, the same: %v", err, bytes.Equal(again.Image, o.Image))
		}
	})
}
