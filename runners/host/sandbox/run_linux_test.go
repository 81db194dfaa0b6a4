package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunEnds(t *testing.T) {
	needSandbox(t)
	tests := []struct {
		name, script string
		code         int
		signal       syscall.Signal
		out          string
	}{
		{"success", "echo hello; echo there >&2", 0, 0, "hello\nthere\n"},
		{"exit code", "exit 37", 37, 0, ""},
		{"signal", "kill -SEGV $$", -1, syscall.SIGSEGV, ""},
		{"abort, which process 1 could not", "kill -ABRT $$", -1, syscall.SIGABRT, ""},
		{"working directory", "pwd; touch x", 0, 0, "/tmp\n"},
		{"no input", "cat", 0, 0, ""},
		{"signals to process 1", "for s in $(seq 1 31); do kill -$s 1 2>/dev/null; done; exit 5", 5, 0, ""},
		{"orphans are no children of the program", "(sleep 100 &) ; exit 3", 3, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, out := run(t, shell(test.script))
			if r.ExitCode != test.code || r.Signal != test.signal || out != test.out {
				t.Errorf("got %d, %v, %q, want %d, %v, %q", r.ExitCode, r.Signal, out, test.code, test.signal, test.out)
			}
			if len(r.Refused) > 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestRunTight gives the program less than the sandbox's own parts need.
func TestRunTight(t *testing.T) {
	needSandbox(t)
	s := shell("echo hello")
	s.Limits = Limits{Processes: 1, Memory: 2 << 20, OpenFiles: 5, Disk: 4096}
	if r, out := run(t, s); !r.OK() || out != "hello\n" {
		t.Errorf("got %+v, %q", r, out)
	}
	s.Args[2] = "env; echo survived"
	if r, out := run(t, s); r.OK() || !containsAny(out, "Cannot fork|Resource temporarily unavailable") {
		t.Errorf("with one process, got %+v, %q", r, out)
	}
}

func TestRunEnvironment(t *testing.T) {
	needSandbox(t)
	s := Spec{Args: []string{"env"}, Env: []string{"PATH=/usr/bin:/bin", "A=b c"}, Read: SystemPaths()}
	if _, out := run(t, s); out != "PATH=/usr/bin:/bin\nA=b c\n" {
		t.Errorf("environment is %q", out)
	}
}

func TestRunCompiler(t *testing.T) {
	needSandbox(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	src, out := t.TempDir(), t.TempDir()
	hello := filepath.Join(src, "hello.c")
	if err := os.WriteFile(hello, []byte("#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(out, "hello")
	r, text := run(t, Spec{
		Args: []string{"gcc", "-O2", "-o", program, hello}, Env: []string{"PATH=/usr/bin:/bin"},
		Read: append(SystemPaths(), src), Write: []string{out},
	})
	if !r.OK() || len(r.Refused) > 0 {
		t.Fatalf("gcc: %+v\n%s", r, text)
	}
	r, text = run(t, Spec{Args: []string{program}, Read: append(SystemPaths(), out)})
	if !r.OK() || text != "hello\n" {
		t.Errorf("hello: %+v\n%s", r, text)
	}
}

func TestRunErrors(t *testing.T) {
	needSandbox(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{"nothing", Spec{}, "no program given"},
		{"no such program", Spec{Args: []string{"/no/such"}}, "run /no/such: no such file"},
		{"not in the path", Spec{Args: []string{"nothing"}, Read: SystemPaths()}, "is it below a read path?"},
		{"no such path", Spec{Args: []string{"x"}, Read: []string{"/no/such/dir"}}, "read path /no/such/dir: lstat /no: no such file"},
		{"relative path", Spec{Args: []string{"x"}, Read: []string{"dir"}}, "read path dir: not absolute"},
		{"the whole host", Spec{Args: []string{"x"}, Read: []string{"/"}}, "would show the whole host"},
		{"the host's processes", Spec{Args: []string{"x"}, Read: []string{"/proc/self"}}, "a /proc and a /dev of its own"},
		{"a file to write", Spec{Args: []string{"x"}, Write: []string{file}}, "not a directory"},
		{"no device", Spec{Args: []string{"x"}, Devices: []string{file}}, "not a device"},
		{"working directory", Spec{Args: []string{"sh"}, Read: SystemPaths(), Dir: "/none"}, "enter the working directory /none"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Run(t.Context(), test.spec); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestRunUnsupported starts a sandbox inside a sandbox, where the kernel refuses it.
func TestRunUnsupported(t *testing.T) {
	needSandbox(t)
	r, out := run(t, self(t, "attack", "nest"))
	if want := "start true in a sandbox: the sandbox is not supported here: make the namespaces"; !r.OK() || !strings.Contains(out, want) {
		t.Errorf("got %+v, %q, want %q", r, out, want)
	}
	if want := "run outside it"; !strings.Contains(out, want) {
		t.Errorf("the remedy %q is not in %q", want, out)
	}
}

func TestRunContext(t *testing.T) {
	needSandbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := shell("echo ready; sleep 100")
	out, w := io.Pipe()
	s.Stdout = w
	p, err := Start(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	r, err := p.Wait()
	if !errors.Is(err, context.Canceled) || r.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("started with a context that is over: %v", err)
	}
}

func TestProbe(t *testing.T) {
	needSandbox(t)
	s := support()
	if !s.Works() || s.Landlock != landlockABI() {
		t.Errorf("got %+v", s)
	}
	none := Support{Checks: []Check{{Name: "sandbox", OK: true, Needed: true}, {Name: "landlock"}}}
	if !none.Works() {
		t.Error("without Landlock it does not work")
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1 KiB", 64 << 10: "64 KiB", 3 << 19: "1.5 MiB", 4 << 30: "4 GiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// BenchmarkStart compares the start of a program in the sandbox with its start outside.
func BenchmarkStart(b *testing.B) {
	needSandbox(b)
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	var plain, boxed time.Duration
	for b.Loop() {
		t0 := time.Now()
		if err := exec.Command(path).Run(); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if r, err := Run(b.Context(), Spec{Args: []string{path}, Read: SystemPaths()}); err != nil || !r.OK() {
			b.Fatal(r, err)
		}
		plain, boxed = plain+t1.Sub(t0), boxed+time.Since(t1)
	}
	b.ReportMetric(float64(boxed)/float64(plain), "x-plain")
	b.ReportMetric(float64(boxed.Microseconds())/float64(b.N)/1000, "ms/sandbox")
}
