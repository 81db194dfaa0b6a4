package toolchain

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// The report's names are the source's, and so may be what lies in its place.
func TestFrames(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(file string) error
		want string
	}{
		"garbled":  {func(file string) error { return os.WriteFile(file, []byte("a\tb.c:1:1:f\t16\tstatic\n"), 0o644) }, "stack report is garbled (stack usage line 1: has 4 columns, expected 3)"},
		"negative": {func(file string) error { return os.WriteFile(file, []byte("b.c:1:1:f\t-1\tstatic\n"), 0o644) }, `line 1: "-1" is not a size in bytes`},
		"missing":  {func(string) error { return nil }, "the compiler made no kernel.su of it"},
		"a folder": {func(file string) error { return os.Mkdir(file, 0o755) }, "the compiler made no kernel.su of it"},
		"a link":   {func(file string) error { return os.Symlink("/dev/zero", file) }, "the compiler made no kernel.su of it"},
		"too large": {func(file string) error {
			return errors.Join(os.WriteFile(file, nil, 0o644), os.Truncate(file, maxStackUsage+1))
		}, "over the limit of 16777216"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kernel.su")
			if err := test.put(file); err != nil {
				t.Fatal(err)
			}
			_, err := Frames(file)
			if refusal := new(output.CompileError); !errors.As(err, &refusal) || !strings.Contains(refusal.Summary, test.want) {
				t.Errorf("error %v (%T), want a refusal that says %q", err, err, test.want)
			}
		})
	}
	frames, err := parseStackUsage("k.c:12:6:sdpa\t1040\tstatic\nk.cc:1:1:void f(int)\t16\tdynamic\n\nk.c:12:6:sdpa\t8\tstatic\n")
	if err != nil || !maps.Equal(frames, map[string]int{"sdpa": 1040, "void f(int)": 16}) {
		t.Errorf("%v, %v", frames, err)
	}
}

func FuzzStackUsage(f *testing.F) {
	f.Add("k.c:12:6:sdpa\t1040\tstatic\n")
	f.Add("a\tb\n")
	f.Fuzz(func(t *testing.T, report string) {
		frames, err := parseStackUsage(report)
		for name, bytes := range frames {
			if err != nil || bytes < 0 || !strings.Contains(report, name) {
				t.Errorf("%q has %d bytes (%v)", name, bytes, err)
			}
		}
	})
}

// A compiler whose libraries are missing in the sandbox names them on its last line, which is no diagnostic.
func TestCompilerThatDoesNotStart(t *testing.T) {
	compiler := filepath.Join(t.TempDir(), "cc")
	script := "#!/bin/sh\necho 'cc1: error while loading shared libraries: libmpc.so.3: cannot open shared object file' >&2\nexit 127\n"
	if err := runnable.Write(compiler, []byte(script)); err != nil {
		t.Fatal(err)
	}
	_, err := CC{Path: compiler}.Run(t.Context(), Compile{Dir: t.TempDir(), Out: t.TempDir()})
	if tried := (CC{Path: compiler}).Try(t.Context()); tried == nil {
		t.Error("doctor finds nothing wrong with it")
	}
	if refusal := new(output.CompileError); !errors.As(err, &refusal) || !strings.Contains(refusal.Summary, "does not start in the sandbox: cc1: error while loading shared libraries: libmpc.so.3") {
		t.Errorf("error %v, want one that names the library", err)
	}
}

func TestTryCompiler(t *testing.T) {
	cc, err := FindCC(t.Context(), os.Getenv, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := cc.Try(t.Context()); err != nil {
		t.Error(err)
	}
}

// A compiler of its own folder finds the program that it wraps, its libraries and its headers there, and no other files.
func TestCompilerOutsideTheSystem(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		"bin/cc":      "#!/bin/sh\nexec \"$(dirname \"$0\")/cc-real\" \"$@\"\n",
		"bin/cc-real": "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/part\" && cat \"$(dirname \"$0\")/../secret\"\n",
		"lib/part":    "a part\n",
		"secret":      "a secret\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := runnable.Write(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	log, err := CC{Path: filepath.Join(home, "bin/cc")}.Run(t.Context(), Compile{Dir: t.TempDir(), Out: t.TempDir()})
	if err == nil || !strings.Contains(log, "a part") || strings.Contains(log, "a secret") {
		t.Errorf("%v: %s", err, log)
	}
}
