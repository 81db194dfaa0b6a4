// Package subprocess starts processes that do not outlive this one. It does not wait for them, and does not
// end them while this process lives: that is the caller's.
package subprocess

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start is cmd.Start for a process that the kernel sends a signal when this process ends, however it ends.
//
// The kernel sends the signal when the thread ends that started the process. A Go program's threads come
// and go: one ends whenever a goroutine returns that is locked to it. So the process is started from a
// thread of its own, which is kept until the process has ended.
func Start(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = signal
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		pid := cmd.Process.Pid // before anybody can wait for it
		started <- nil
		awaitEnd(pid)
	}()
	return <-started
}

// awaitEnd returns when a process has ended. It leaves the exit status to whoever waits for the process;
// where they were faster there is no such process any more, which is an end as well.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
