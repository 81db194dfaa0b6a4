package subprocess_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

const parentEnv = "KERNELGATE_TEST_CHILD_PARENT"

// TestMain is also a parent that starts a process and waits for its own end.
func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "1000")
	cmd.Stdout = os.Stdout
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("started")
	io.Copy(io.Discard, os.Stdin)
}

// The thread that asks for a process may end: the process goes on.
func TestOutlivesTheCallersThread(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	thread, failed := make(chan int), make(chan error, 1)
	for tid := os.Getpid(); tid == os.Getpid(); tid = <-thread { // the first thread never ends
		go func() {
			runtime.LockOSThread() // and never unlocks: the thread ends with the goroutine
			tid := unix.Gettid()
			if tid != os.Getpid() {
				failed <- subprocess.Start(cmd, syscall.SIGKILL)
				defer waitFor(tid, thread)
				return
			}
			thread <- tid
			select {}
		}()
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
}

// waitFor reports a thread once it is gone.
func waitFor(tid int, gone chan<- int) {
	go func() {
		for {
			if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid)); errors.Is(err, fs.ErrNotExist) {
				gone <- tid
				return
			}
			runtime.Gosched()
		}
	}()
}

// A process ends with its parent, even if that is killed.
func TestEndsWithTheParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent.Stdout = theirs
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	word := make([]byte, len("started\n"))
	if _, err := io.ReadFull(out, word); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()                                              // it was killed
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 { // the end comes when nobody has the pipe any more
		t.Errorf("%q, %v", rest, err)
	}
}

// What cannot be started is an error, as with exec.
func TestStartFails(t *testing.T) {
	if err := subprocess.Start(exec.Command("/nowhere/to/be/found"), syscall.SIGKILL); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Every process that shall end with its parent is started here.
func TestNobodyElseSetsTheSignal(t *testing.T) {
	err := fs.WalkDir(os.DirFS("../../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "runners/host/subprocess/") {
			return err
		}
		text, err := os.ReadFile("../../../" + path)
		if err == nil && strings.Contains(string(text), "Pdeathsig") {
			t.Errorf("%s sets Pdeathsig: start the process with subprocess.Start, which keeps the thread that the signal depends on", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
