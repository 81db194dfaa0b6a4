package main

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// The whole program, whose packages keep its runtime busier than the sandbox's own
// tests do, starts a process under a list of calls that the runtime could not live with,
// and dies of it not once.
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
