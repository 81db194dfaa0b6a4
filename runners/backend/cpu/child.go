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
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A child is one side's program over memory that it shares with the worker. Its
// launcher starts a process for every command, in which no kernel has run before
// and none will run after: whatever a kernel keeps ends with it.
//
// Both are stopped whenever it is not their turn. The launcher runs before the
// inputs of the next command are in the memory, and until its process waits for
// the command; the process runs from the command to its answer. So there is no
// moment at which something of the side runs, can see its inputs, and is not timed.
type child struct {
	program *sandbox.Process
	memory  *memory
	command int // blocking descriptors: the poller's wake-ups would be timed as well
	reply   int
	timeout time.Duration
	threads int // that the kernel declares; 1 is none beside its own
	ended   chan ending
	late    atomic.Bool
	starved atomic.Int64 // nanoseconds that it waited for a processor, if that was too long

	launcher int  // its process id
	begun    bool // the launcher was woken, or just started
	waiting  int  // id of the process that waits for its command, stopped; 0 when there is none
}

type ending struct {
	result sandbox.Result
	err    error
}

const (
	// lingering is how many the system may count for each thread: one that was waited for is still counted until the system has
	// cleaned up behind it, which under load takes longer than a launch. Who keeps more than were declared at work gains nothing:
	// the time of all is divided by what was declared.
	lingering = 16
	// threadSpace is what a thread's stack and its part of the heap take up, most of it never touched.
	threadSpace = 160 << 20
)

// programName is what every kernel's program is called in its sandbox.
const programName = "/kernel"

// startChild starts the executable in the sandbox over memory of the given size.
// It is allowed two processes, the launcher and the kernel's, and what threads a kernel declares twice: those that OpenMP keeps,
// and as many of its own.
func startChild(ctx context.Context, exe string, size, threads int, timeout time.Duration) (*child, error) {
	threads = max(threads, 1)
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
	limits := sandbox.CPUKernel.Limits()
	limits.Memory += int64(size)
	limits.AddressSpace += int64(size) + 2*int64(threads-1)*threadSpace
	limits.Processes += lingering * (threads - 1)
	p, err := sandbox.Start(ctx, sandbox.Spec{
		// Both sides have the same name: a kernel cannot tell which of them it is.
		Args: []string{programName}, Places: []sandbox.Place{{Host: exe, Inside: programName}},
		// A function's first call would look it up, in every process anew.
		Env:        []string{"LD_BIND_NOW=1", fmt.Sprintf("OMP_NUM_THREADS=%d", threads), "OMP_DYNAMIC=false"},
		Read:       sandbox.SystemPaths(),
		ExtraFiles: []*os.File{m.file, commands, replies},
		Calls:      launcherCalls(threads),
		Limits:     limits,
	})
	if err != nil {
		unix.Close(in[1])
		unix.Close(out[0])
		m.close()
		return nil, fmt.Errorf("starting a kernel's process: %w", err)
	}
	c := &child{program: p, memory: m, command: in[1], reply: out[0], timeout: timeout, threads: threads, ended: make(chan ending, 1), begun: true}
	go func() {
		r, err := p.Wait()
		c.ended <- ending{r, err}
	}()
	return c, nil
}

// begin lets the launcher start the next process, if there is none yet. What is in
// the memory must be read by then, and nothing new be in it.
func (c *child) begin() {
	if c.waiting == 0 && !c.begun {
		c.begun = true
		_ = unix.Kill(c.launcher, unix.SIGCONT) // that it is dead shows when it does not answer
	}
}

// ready has a process wait for its command, and stops it and its launcher. Only
// then may the memory be filled. A Failure is how the side went wrong; the child
// is of no more use then.
func (c *child) ready() (*gates.Failure, error) {
	if c.waiting != 0 {
		return nil, nil
	}
	defer c.watchdog()()
	c.begin()
	c.begun = false
	var answer [1]byte
	if n, err := read(c.reply, answer[:]); err != nil || n != 1 {
		return c.failure()
	}
	if c.launcher == 0 {
		c.launcher = childOf(c.program.Pid())
	}
	pid := childOf(c.launcher)
	if answer[0] != saysReady || c.launcher == 0 || pid == 0 {
		c.program.Kill()
		return &gates.Failure{Kind: gates.FailureCrash, Detail: "the kernel's process answered before it was asked"}, nil
	}
	if err := halt(c.launcher, pid); errors.Is(err, errDead) {
		return c.failure()
	} else if err != nil {
		return nil, err
	}
	c.waiting = pid
	return nil, nil
}

// wrong puts into words how a process ended that did not answer as it should.
func (c *child) wrong(pid int, answer byte) (*gates.Failure, error) {
	s := stateOf(pid)
	switch {
	case answer == saysRefused:
		name := "something"
		if rest := c.drain(); len(rest) >= 4 {
			name = callName(binary.NativeEndian.Uint32(rest))
		}
		return &gates.Failure{Kind: gates.FailureRefused, Detail: fmt.Sprintf("the kernel called %s, which the sandbox refuses", name)}, nil
	case answer == saysAborted:
		return crash(unix.SIGABRT), nil
	case answer != 0:
		return &gates.Failure{Kind: gates.FailureCrash, Detail: "the kernel's process gave an answer that was not asked for"}, nil
	case c.late.Load() || c.starved.Load() > 0 || s.letter != 'Z' || s.exit.Signaled() && s.exit.Signal() == unix.SIGKILL:
		return c.failure()
	case s.exit.Signaled():
		return crash(s.exit.Signal()), nil
	}
	return &gates.Failure{Kind: gates.FailureExit, Detail: fmt.Sprintf("the kernel ended its process (exit status %d) instead of returning", s.exit.ExitStatus())}, nil
}

func crash(signal unix.Signal) *gates.Failure {
	return &gates.Failure{Kind: gates.FailureCrash, Detail: fmt.Sprintf("the kernel crashed: %s (%s)", signal, unix.SignalName(signal))}
}

// failure puts the end of the whole program into words.
func (c *child) failure() (*gates.Failure, error) {
	// Its end is under way, unless it closed the pipe and lives on.
	patience := time.AfterFunc(time.Second, c.program.Kill)
	defer patience.Stop()
	e := <-c.ended
	c.ended <- e
	switch r := e.result; {
	case e.err != nil:
		return nil, fmt.Errorf("watching a kernel's process: %w", e.err)
	case c.starved.Load() > 0:
		return nil, fmt.Errorf("a kernel's process waited %v for a processor: the machine is too busy to judge anything (run less beside kernelgate, and measure again)", time.Duration(c.starved.Load()).Round(time.Millisecond))
	case c.late.Load():
		return &gates.Failure{Kind: gates.FailureTimeout, Detail: fmt.Sprintf("the kernel did not return within %v and was killed", c.timeout)}, nil
	case r.OutOfMemory:
		return &gates.Failure{Kind: gates.FailureOutOfMemory, Detail: "the kernel took more memory than it is allowed and was killed"}, nil
	case r.Signal != 0 && r.Signal != unix.SIGKILL:
		return crash(r.Signal), nil
	case r.Signal == 0:
		return &gates.Failure{Kind: gates.FailureExit, Detail: fmt.Sprintf("the kernel ended its process (exit status %d) instead of returning", r.ExitCode)}, nil
	}
	return &gates.Failure{Kind: gates.FailureCrash, Detail: "the kernel's process stopped answering and was killed"}, nil
}

// close ends the child and frees what it shared.
func (c *child) close() {
	c.program.Kill()
	e := <-c.ended
	c.ended <- e
	unix.Close(c.command)
	unix.Close(c.reply)
	c.memory.close()
}
