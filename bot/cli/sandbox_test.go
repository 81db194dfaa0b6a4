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

	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// The whole program starts processes, many at once, under a list of calls that its runtime could not live with, and dies of it not
// once.
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

// The sandbox's own parts run before the program's packages are set up: they have no use for them, and are started twice for every
// program in a sandbox. This one is given no socket, and ends.
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
