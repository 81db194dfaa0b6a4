package cli

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// TestStartUnderAList starts many sandboxed processes at once under a list of system calls that the
// Go runtime itself could not run with, and checks that none of them dies because of it.
func TestStartUnderAList(t *testing.T) {
	var calls []sandbox.Call
	for n := range uintptr(460) {
		if !slices.Contains([]uintptr{unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_TGKILL, unix.SYS_CLONE, unix.SYS_CLONE3}, n) {
			calls = append(calls, sandbox.Call{Number: n})
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				var said bytes.Buffer
				r, err := sandbox.Run(t.Context(), sandbox.Spec{
					Args: []string{"/bin/true"}, Read: sandbox.SystemPaths(), Calls: calls, Stderr: &said,
					Limits: sandbox.Limits{AddressSpace: 1 << 30, Processes: 2},
				})
				if err != nil || !r.OK() {
					t.Errorf("%+v, %v: %.100s", r, err, said.String())
					return
				}
			}
		})
	}
	all.Wait()
}

// TestSandboxComesFirst checks that the sandbox's launcher runs before the program's packages are
// initialized. It does not need them, and it starts twice for every sandboxed program. This one
// gets no socket, so it ends.
func TestSandboxComesFirst(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	part := exec.Cmd{Path: self, Args: []string{"sandbox-launch", "99"}, Env: []string{"GODEBUG=inittrace=1"}, Stderr: &said}
	if err := part.Run(); err == nil || part.ProcessState.ExitCode() != 1 {
		t.Errorf("%v\n%s", err, said.String())
	}
	if !strings.Contains(said.String(), "init encoding/gob @") {
		t.Fatalf("it is not told what was set up:\n%s", said.String())
	}
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "init regexp") || strings.HasPrefix(line, "init github.com/kernelgate/kernelgate/kernels/manifest ") {
			t.Errorf("before the sandbox: %s", line)
		}
	}
}
