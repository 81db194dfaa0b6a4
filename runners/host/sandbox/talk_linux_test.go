package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

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

// TestInherited opens a file as a careless parent of this process could have: without
// close-on-exec.
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
