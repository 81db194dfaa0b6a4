package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// A child is a process that runs one side's kernel on command. The worker keeps
// the clock: a launch lasts from the command's write to the reply's arrival.
type child struct {
	process *sandbox.Process
	memory  *memory
	command int // blocking descriptors: the poller's wake-ups would be timed as well
	reply   int
	timeout time.Duration
	ended   chan ending
	late    atomic.Bool
	clock   cpuClock
}

type ending struct {
	result sandbox.Result
	err    error
}

// childLife bounds a child whose worker forgot it.
const childLife = 30 * time.Minute

// startChild starts the executable in the sandbox over memory of the given size.
// It is allowed one thread: with a second one it could work while no clock runs.
func startChild(ctx context.Context, exe string, size int, timeout time.Duration) (*child, error) {
	m, err := newMemory(size)
	if err != nil {
		return nil, err
	}
	var in, out [2]int
	if err := errors.Join(unix.Pipe2(in[:], unix.O_CLOEXEC), unix.Pipe2(out[:], unix.O_CLOEXEC)); err != nil {
		m.close()
		return nil, fmt.Errorf("making pipes for a kernel's process: %w", err)
	}
	commands, replies := os.NewFile(uintptr(in[0]), "commands"), os.NewFile(uintptr(out[1]), "replies")
	defer commands.Close()
	defer replies.Close()
	p, err := sandbox.Start(ctx, sandbox.Spec{
		Args:       []string{exe},
		Read:       append(sandbox.SystemPaths(), exe),
		ExtraFiles: []*os.File{m.file, commands, replies},
		Limits:     sandbox.Limits{Wall: childLife, Memory: int64(size) + 1<<30, Processes: 1, Output: 64 << 10},
	})
	if err != nil {
		unix.Close(in[1])
		unix.Close(out[0])
		m.close()
		return nil, fmt.Errorf("starting a kernel's process: %w", err)
	}
	c := &child{process: p, memory: m, command: in[1], reply: out[0], timeout: timeout, ended: make(chan ending, 1)}
	go func() {
		r, err := p.Wait()
		c.ended <- ending{r, err}
	}()
	return c, nil
}

// launch runs the kernel once on each slot of the batch. A Failure is how the
// kernel went wrong; the child is dead then.
func (c *child) launch(first, stride, count int) (time.Duration, *gates.Failure, error) {
	var message [24]byte
	binary.NativeEndian.PutUint64(message[0:], uint64(first))
	binary.NativeEndian.PutUint64(message[8:], uint64(stride))
	binary.NativeEndian.PutUint64(message[16:], uint64(count))
	watchdog := time.AfterFunc(c.timeout, func() {
		c.late.Store(true)
		c.process.Kill()
	})
	defer watchdog.Stop()
	var answer [1]byte
	start := time.Now()
	_, err := unix.Write(c.command, message[:])
	n := 0
	if err == nil {
		n, err = read(c.reply, answer[:])
	}
	took := time.Since(start)
	if err == nil && n == 1 && answer[0] == 'k' {
		return took, nil, nil
	}
	failure, err := c.failure()
	return took, failure, err
}

func read(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// failure puts a dead child's end into words.
func (c *child) failure() (*gates.Failure, error) {
	// Its end is under way, unless it closed the pipe and lives on.
	patience := time.AfterFunc(time.Second, c.process.Kill)
	defer patience.Stop()
	e := <-c.ended
	c.ended <- e
	switch r := e.result; {
	case e.err != nil:
		return nil, fmt.Errorf("watching a kernel's process: %w", e.err)
	case c.late.Load():
		return &gates.Failure{Kind: "timeout", Detail: fmt.Sprintf("the kernel did not return within %v and was killed", c.timeout)}, nil
	case r.OutOfMemory:
		return &gates.Failure{Kind: "out-of-memory", Detail: "the kernel took more memory than it is allowed and was killed"}, nil
	case r.Signal != 0 && r.Signal != unix.SIGKILL:
		return &gates.Failure{Kind: "crash", Detail: fmt.Sprintf("the kernel crashed: %s (%s)", r.Signal, unix.SignalName(r.Signal))}, nil
	case r.Signal == 0:
		return &gates.Failure{Kind: "exit", Detail: fmt.Sprintf("the kernel ended its process (exit status %d) instead of returning", r.ExitCode)}, nil
	}
	return &gates.Failure{Kind: "crash", Detail: "the kernel's process stopped answering and was killed"}, nil
}

// close ends the child and frees what it shared.
func (c *child) close() {
	c.process.Kill()
	e := <-c.ended
	c.ended <- e
	unix.Close(c.command)
	unix.Close(c.reply)
	c.memory.close()
}
