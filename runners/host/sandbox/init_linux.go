package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInit is process 1 of the sandbox. It builds the root, starts the program and waits for it. It
// keeps its capabilities, which reach no further than the sandbox's namespaces. The program lives
// in a nested user namespace. There it has no power over the mounts or over process 1, and the
// kernel counts its processes separately.
func runInit() int {
	socket, err := stageFile()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Without a handler, a signal from inside would end process 1.
	signal.Notify(make(chan os.Signal, 1))

	var c config
	if err := gob.NewDecoder(socket).Decode(&c); err != nil {
		return 1 // the caller has died
	}
	go func() {
		// The caller sends nothing more. This returns when the caller dies or closes the socket.
		_, _ = io.Copy(io.Discard, socket)
		syscall.Exit(1)
	}()

	replies := gob.NewEncoder(socket)
	exit, err := c.supervise(func() { send(replies, report{}) })
	if err != nil {
		send(replies, report{Error: err.Error(), Unsupported: errors.As(err, new(kernelError)) && refusedByKernel(err)})
		return 1
	}
	send(replies, report{Exit: exit})
	return 0
}

func (c *config) supervise(started func()) (*exitReport, error) {
	if err := isolate(c.Host); err != nil {
		return nil, err
	}
	l, err := startLaunch(c)
	if err != nil {
		return nil, err
	}
	root, err := c.buildRoot()
	if err != nil {
		return nil, err
	}
	if err := l.awaitReady(); err != nil {
		return nil, err
	}
	if err := enter(); err != nil {
		return nil, err
	}
	if err := l.becomeProgram(c); err != nil {
		return nil, err
	}
	started()

	w := newWatch(c.Limits)
	go w.run()
	status, err := waitFor(l.pid)
	if err != nil {
		return nil, err
	}
	w.stop()
	if err := killRest(); err != nil {
		return nil, err
	}
	exit := &exitReport{Status: status, OutOfMemory: w.outOfMemory, Refused: w.refused()}
	if l.lookups != nil {
		exit.Lookups, exit.Opened, exit.LookupsCut = l.lookups.paths()
	}
	if status.Signaled() && status.Signal() == unix.SIGXFSZ {
		exit.Refused = append(exit.Refused, fmt.Sprintf("a file would have grown over the %s limit", sizeText(c.Limits.FileSize)))
	}
	if root.full() {
		exit.Refused = append(exit.Refused, fmt.Sprintf("the %s of disk were full", sizeText(c.Limits.Disk)))
	}
	if !exit.OutOfMemory {
		left, err := root.bringBack(c.Limits.Disk)
		if err != nil {
			return nil, err
		}
		exit.Refused = append(exit.Refused, left...)
	}
	return exit, nil
}

// launch is the launch part, as process 1 sees it.
type launch struct {
	pid     int
	socket  *os.File
	replies *gob.Decoder

	listeners *os.File // receives the descriptor that reports lookups; nil if Spec.Watch is not set
	lookups   *lookups
}

// startLaunch starts the launch part while the host's root is still mounted, because its binary may
// need libraries that the program will not see.
func startLaunch(c *config) (*launch, error) {
	near, far, err := socketpair()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{launchName, fmt.Sprint(3 + c.Files)},
		Env:         append(slices.Clone(stageEnv), "GODEBUG=asyncpreemptoff=1"), // see type ending
		Stdin:       os.Stdin,
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		SysProcAttr: c.IDs.userNamespace(0),
	}
	extra := make([]*os.File, c.Files)
	for i := range extra {
		extra[i] = os.NewFile(uintptr(3+i), "extra file")
	}
	cmd.ExtraFiles = append(extra, far)
	l := &launch{socket: near, replies: gob.NewDecoder(near)}
	if c.Watch {
		listeners, far, err := socketpair()
		if err != nil {
			return nil, err
		}
		l.listeners = listeners
		cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	}
	err = cmd.Start()
	// If process 1 also held the far ends of pipes, their readers would never see end of file.
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return nil, kernelError{fmt.Errorf("make the program's user namespace: %w", err)}
	}
	l.pid = cmd.Process.Pid
	return l, nil
}

// awaitReady waits until the launch part has loaded everything that it needs from the host.
func (l *launch) awaitReady() error {
	if err := l.replies.Decode(&report{}); err != nil {
		return fmt.Errorf("wait for the launch part: %w", err)
	}
	return nil
}

// becomeProgram lets the launch part continue, and returns when the launch part has become the
// program.
func (l *launch) becomeProgram(c *config) error {
	defer l.socket.Close()
	if err := gob.NewEncoder(l.socket).Encode(c); err != nil {
		return fmt.Errorf("tell the launch part what to run: %w", err)
	}
	if l.listeners != nil {
		var err error
		if l.lookups, err = receiveListener(l.listeners); err != nil {
			return err
		}
		if l.lookups != nil {
			go l.lookups.run()
		}
	}
	var r report
	switch err := l.replies.Decode(&r); {
	case errors.Is(err, io.EOF):
		return nil // the start of the program closed the socket
	case err != nil:
		return fmt.Errorf("wait for the program's start: %w", err)
	}
	return errors.New(r.Error)
}

// waitFor reaps every process that ends, until the program ends.
func waitFor(program int) (syscall.WaitStatus, error) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the program: %w", err)
		case pid == program:
			return s, nil
		}
	}
}

// killRest kills the processes that the program left running, so that nothing changes its files any
// more.
func killRest() error {
	for {
		// A process that is being forked can miss a signal to all processes. Send it again whenever
		// a process has ended.
		if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill what the program left running: %w", err)
		}
		switch _, err := syscall.Wait4(-1, nil, 0, nil); {
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("wait for what the program left running: %w", err)
		}
	}
}
