package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
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
			if len(r.Refused) > 0 || r.Wall <= 0 || r.MaxRSS <= 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestRunCPULimit(t *testing.T) {
	needSandbox(t)
	t.Parallel()
	s := shell("while :; do :; done")
	s.Limits.Wall, s.Limits.CPU = 5*time.Minute, time.Second
	r, _ := run(t, s)
	if r.Signal != syscall.SIGXCPU || r.CPU < 500*time.Millisecond || !cmp.Equal(r.Refused, []string{"killed at the limit of 1s CPU time"}) {
		t.Errorf("got %+v", r)
	}
}

func TestRunEnvironmentAndInput(t *testing.T) {
	needSandbox(t)
	s := Spec{Args: []string{"env"}, Env: []string{"PATH=/usr/bin:/bin", "A=b c"}, Read: SystemPaths()}
	if _, out := run(t, s); out != "PATH=/usr/bin:/bin\nA=b c\n" {
		t.Errorf("environment is %q", out)
	}
	s = shell("cat")
	s.Stdin = strings.NewReader("some input")
	if _, out := run(t, s); out != "some input" {
		t.Errorf("input came back as %q", out)
	}
	s = shell("read line; echo $line")
	in, w := io.Pipe() // never closed: a program that ends must not wait for it
	go func() { _, _ = io.WriteString(w, "first\n") }()
	s.Stdin = in
	if _, out := run(t, s); out != "first\n" {
		t.Errorf("line came back as %q", out)
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

// TestRunUnsupported starts a sandbox in a sandbox, where the kernel refuses it.
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

func TestTalk(t *testing.T) {
	needSandbox(t)
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := shell("while read line <&3; do echo got $line >&4; done")
	s.ExtraFiles = []*os.File{inR, outW}
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(inW, word+"\n"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, len("got "+word+"\n"))
		if _, err := io.ReadFull(outR, buf); err != nil || string(buf) != "got "+word+"\n" {
			t.Fatalf("got %q, %v", buf, err)
		}
	}
	if err := syscall.Kill(p.Pid(), 0); err != nil {
		t.Errorf("no process %d: %v", p.Pid(), err)
	}
	inW.Close()
	if r, err := p.Wait(); err != nil || !r.OK() {
		t.Errorf("got %+v, %v", r, err)
	}
	if n, err := outR.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the answers' pipe is still open: %d, %v", n, err)
	}
}

func TestTalkKill(t *testing.T) {
	needSandbox(t)
	p, err := Start(t.Context(), shell("sleep 100"))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	r, err := p.Wait()
	if err != nil || r.Signal != syscall.SIGKILL || !cmp.Equal(r.Refused, []string{"killed by the caller"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestTalkSharedMemory(t *testing.T) {
	needSandbox(t)
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "shared")
	defer file.Close()
	if err := file.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	copy(mem, "from outside")
	s := self(t, "attack", "share")
	s.ExtraFiles = []*os.File{file}
	r, out := run(t, s)
	if !r.OK() || !strings.Contains(out, "from outside") || !bytes.HasPrefix(mem, []byte("from inside")) {
		t.Errorf("got %+v; it printed %q; the memory holds %q", r, out, mem[:16])
	}
}

// TestInherited opens a file the way a careless parent of this process could have: without close-on-exec.
func TestInherited(t *testing.T) {
	needSandbox(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(key, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), key)
	defer file.Close()
	s := self(t, "attack", "descriptors")
	if r, out := run(t, s); !r.OK() || !strings.Contains(out, "no descriptor leads to it") {
		t.Errorf("got %+v; it printed %q", r, out)
	}
	s.ExtraFiles = []*os.File{file}
	if _, out := run(t, s); !strings.Contains(out, "BREACH") {
		t.Errorf("a file that was handed over can not be read; it printed %q", out)
	}
}

func TestWritePaths(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "old")
	write("changed", "old")
	write("removed", "old")
	write("sub/deep", "old")
	if err := os.Symlink("kept", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("d/", 70)
	s := shell("cd " + dir + ` && cat link && echo new > changed && rm removed && mkdir made && echo new > made/file &&
		echo more >> sub/deep && ln -s /etc/passwd leak && mkfifo pipe && truncate -s 1G hole &&
		mkdir -p ` + deep + ` && mkdir $(printf '\377') && touch $(printf '\377')/x && chmod 0 made/file`)
	s.Write = []string{dir}
	s.Limits.Disk = 1 << 30
	r, out := run(t, s)
	if !r.OK() || out != "old" {
		t.Fatalf("got %+v; it printed %q", r, out)
	}
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.Type() != 0 || name == "hole" {
			got[name] = d.Type().String()
			return err
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		got[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kept": "old", "changed": "new\n", "removed": "old", "sub/deep": "oldmore\n", "made/file": "new\n", "link": "L---------",
	}
	refused := strings.Join(r.Refused, "\n")
	for _, name := range []string{"leak", "pipe", "\xff"} {
		if !strings.Contains(refused, filepath.Join(dir, name)+" was not brought back") {
			t.Errorf("%s is not named in %q", name, r.Refused)
		}
	}
	if !strings.Contains(refused, "it lies too deep") {
		t.Errorf("the deep directory is not named in %q", r.Refused)
	}
	delete(got, "hole")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("wrong files on the host (-want +got):\n%s", d)
	}
}

func TestWritePathsLimit(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	s := shell("cd " + dir + " && for i in 1 2 3; do truncate -s 3M hole$i; done")
	s.Write = []string{dir}
	s.Limits.Disk = 8 << 20
	r, _ := run(t, s)
	if want := []string{dir + "/hole3 was not brought back: it is too large"}; !cmp.Equal(r.Refused, want) {
		t.Errorf("got %q, want %q", r.Refused, want)
	}
}

func TestPaths(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	for _, d := range []string{"real/inner", "real/inner/out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real/inner/file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"one": "two", "two": filepath.Join(dir, "real")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	named := filepath.Join(dir, "one/inner")
	s := shell("cat " + named + "/file; ls " + dir + "; touch " + named + "/out/made; touch " + named + "/no 2>/dev/null || echo refused")
	s.Read = append(s.Read, named)
	s.Write = []string{filepath.Join(named, "out")}
	r, out := run(t, s)
	if !r.OK() || out != "textone\nreal\ntwo\nrefused\n" {
		t.Errorf("got %+v, %q", r, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "real/inner/out/made")); err != nil {
		t.Error(err)
	}
}

// TestDevices opens a terminal that nobody has: only its driver answers like this.
func TestDevices(t *testing.T) {
	needSandbox(t)
	s := shell("exec 3</dev/tty")
	s.Devices = []string{"/dev/tty"}
	if r, out := run(t, s); r.OK() || !strings.Contains(out, "No such device or address") {
		t.Errorf("got %+v, %q", r, out)
	}
}

func TestProbe(t *testing.T) {
	needSandbox(t)
	s := support()
	if !s.Works() || s.Landlock != landlockABI() || s.Complete() != (s.Landlock > 0) {
		t.Errorf("got %+v", s)
	}
	none := Support{Checks: []Check{{Name: "sandbox", OK: true, Needed: true}, {Name: "landlock"}}}
	if !none.Works() || none.Complete() {
		t.Errorf("without Landlock: works %v, complete %v", none.Works(), none.Complete())
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 10: "1 KiB", 64 << 10: "64 KiB", 3 << 19: "1.5 MiB", 4 << 30: "4 GiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// BenchmarkStart shows what the sandbox costs beside starting the same program without it.
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
