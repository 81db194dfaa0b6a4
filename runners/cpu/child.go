package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/interleave"
	"github.com/kernelgate/kernelgate/runners/sandbox"
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

	launcher int  // its process id
	begun    bool // the launcher was woken, or just started
	waiting  int  // id of the process that waits for its command, stopped; 0 when there is none
}

type ending struct {
	result sandbox.Result
	err    error
}

const (
	// childLife bounds a child whose worker forgot it.
	childLife = 30 * time.Minute
	// lingering is how many the system may count for each thread: one that was waited for is still counted until the system has
	// cleaned up behind it, which under load takes longer than a launch. Who keeps more than were declared at work gains nothing:
	// the time of all is divided by what was declared.
	lingering = 16
	// kernelMemory is what a kernel may have beside its arguments.
	kernelMemory = 1 << 30
	// programSpace is what the program and its libraries take up.
	programSpace = 64 << 20
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
	p, err := sandbox.Start(ctx, sandbox.Spec{
		// Both sides have the same name: a kernel cannot tell which of them it is.
		Args: []string{programName}, Places: []sandbox.Place{{Host: exe, Inside: programName}},
		// A function's first call would look it up, in every process anew.
		Env:        []string{"LD_BIND_NOW=1", fmt.Sprintf("OMP_NUM_THREADS=%d", threads), "OMP_DYNAMIC=false"},
		Read:       sandbox.SystemPaths(),
		ExtraFiles: []*os.File{m.file, commands, replies},
		Calls:      launcherCalls(threads),
		Limits: sandbox.Limits{
			Wall: childLife, Memory: int64(size) + kernelMemory, AddressSpace: int64(size) + kernelMemory + programSpace + 2*int64(threads-1)*threadSpace,
			Disk: 1 << 20, Processes: 2 + lingering*(threads-1), Output: 64 << 10,
		},
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

// watchdog kills everything of the child when it takes too long.
func (c *child) watchdog() (off func()) {
	t := time.AfterFunc(c.timeout, func() {
		c.late.Store(true)
		c.program.Kill()
	})
	return func() { t.Stop() }
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

// launchOn puts images of slots into the memory once a process waits, and has it run
// the kernel on each.
func (c *child) launchOn(images [][]byte) (interleave.Times, *gates.Failure, error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return interleave.Times{}, failure, err
	}
	c.memory.load(images)
	return c.launch(len(images[0]), len(images))
}

// launchEach has one process run the kernel on the images one after the other, and
// returns the median time of the launches but the first, which brings the code in. An image
// is put into the memory when the launch before it has answered and what that one wrote was
// copied: a launch whose output is not there by then is wrong, and what its process does
// later is charged to the next one. So no launch can do another's work. The processor time
// of a kernel with one thread shows whatever it does while the image is copied. One with
// threads is timed by the wall, so it is stopped meanwhile: a thread that watches the memory
// would begin before the clock.
func (c *child) launchEach(images [][]byte) (t interleave.Times, failure *gates.Failure, err error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return t, failure, err
	}
	c.memory.load(nil)
	r, err := c.take()
	if err != nil {
		return t, nil, err
	}
	defer r.end()
	defer c.watchdog()()
	before, known := c.spent(r.pid)
	var took, walls []time.Duration
	copies := make([][]byte, len(images))
	for i, image := range images {
		stopped := i == 0
		if !stopped && c.threads > 1 {
			if err := halt(r.pid); errors.Is(err, errDead) {
				failure, err := c.wrong(r.pid, 0)
				return t, failure, err
			} else if err != nil {
				return t, nil, err
			}
			stopped = true
		}
		slot := c.memory.reveal(image)
		start := time.Now()
		if err := c.send(slot, len(image), 1); err != nil {
			return t, nil, err
		}
		if stopped {
			if err := r.resume(); err != nil {
				failure, err := c.failure()
				return t, failure, err
			}
		}
		answer, err := c.await(r.exit)
		if err != nil {
			return t, nil, err
		}
		if answer != saysDone {
			failure, err := c.wrong(r.pid, answer)
			return t, failure, err
		}
		copies[i] = slices.Clone(c.memory.data[slot:c.memory.used])
		wall := time.Since(start)
		launch := wall
		if after, ok := c.spent(r.pid); known && ok {
			launch, before = after-before, after
		}
		if c.threads > 1 {
			launch = threaded(wall, launch, c.threads).Device
		}
		took, walls = append(took, max(launch, 1)), append(walls, wall)
	}
	if err := halt(r.pid); err != nil && !errors.Is(err, errDead) {
		return t, nil, err
	}
	c.drain()
	c.memory.load(copies)
	later := took[1:]
	return interleave.Times{Device: median(later), Wall: median(walls[1:]), First: took[0], Mean: mean(later)}, nil, nil
}

func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}

// median is the middle of some times.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// launch has the waiting process run the kernel once on each slot of the batch, and
// ends it. A Failure is how the kernel went wrong.
func (c *child) launch(stride, count int) (interleave.Times, *gates.Failure, error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return interleave.Times{}, failure, err
	}
	r, err := c.take()
	if err != nil {
		return interleave.Times{}, nil, err
	}
	defer r.end()
	return c.execute(r, 0, stride, count)
}

// A running process was waiting for its command. It is killed at its end.
type running struct{ pid, exit int }

// take is the process that waits; another one is started after it.
func (c *child) take() (running, error) {
	r := running{pid: c.waiting}
	c.waiting = 0
	var err error
	if r.exit, err = unix.PidfdOpen(r.pid, 0); err != nil {
		return r, fmt.Errorf("watching a kernel's process: %w", err)
	}
	return r, nil
}

func (r running) resume() error { return unix.PidfdSendSignal(r.exit, unix.SIGCONT, nil, 0) }

// send commands the process: launch on count slots, so far apart, from an offset on.
func (c *child) send(first, stride, count int) error {
	var message [24]byte
	for i, word := range []int{first, stride, count} {
		binary.NativeEndian.PutUint64(message[8*i:], uint64(word))
	}
	if _, err := unix.Write(c.command, message[:]); err != nil {
		return fmt.Errorf("commanding a kernel's process: %w", err)
	}
	return nil
}

func (r running) end() {
	_ = unix.PidfdSendSignal(r.exit, unix.SIGKILL, nil, 0) // it fails only when the process is dead
	unix.Close(r.exit)
}

// execute has a stopped process run the kernel on count slots from an offset on, and stops
// it again. The time is what the processor spent on the side from the moment at
// which both its processes were stopped with the inputs in place, to the moment at
// which they are again; of a kernel that declares threads, what passed between the two.
func (c *child) execute(r running, first, stride, count int) (interleave.Times, *gates.Failure, error) {
	var times interleave.Times
	if err := c.send(first, stride, count); err != nil {
		return times, nil, err
	}
	defer c.watchdog()()
	before, known := c.spent(r.pid)
	start := time.Now()
	if err := r.resume(); err != nil {
		failure, err := c.failure()
		return times, failure, err
	}
	answer, err := c.await(r.exit)
	times.Wall = time.Since(start)
	if err != nil {
		return times, nil, err
	}
	if err := halt(r.pid); err != nil && !errors.Is(err, errDead) {
		return times, nil, err
	}
	halted := time.Since(start)
	after, still := c.spent(r.pid)
	times.Device = times.Wall
	if known && still && after > before {
		times.Device = after - before
	}
	if c.threads > 1 {
		times = threaded(halted, times.Device, c.threads)
	}
	if answer == saysDone {
		c.drain()
		return times, nil, nil
	}
	failure, err := c.wrong(r.pid, answer)
	return times, failure, err
}

// threaded is the time of a kernel with threads: what passed until all of them were stopped, for one that answers need not be the
// last to write; and where more processors have worked than the kernel declares, what so many would have taken.
func threaded(wall, spent time.Duration, threads int) interleave.Times {
	t := max(wall, spent/time.Duration(threads))
	return interleave.Times{Device: t, Wall: t}
}

// spent is the processor time of both processes. The launcher's stands still,
// and is added so that it need not be believed.
func (c *child) spent(pid int) (time.Duration, bool) {
	kernel, ok := runningTime(pid)
	launcher, okToo := runningTime(c.launcher)
	return kernel + launcher, ok && okToo
}

// await is the process's answer; 0 when it ended without one.
func (c *child) await(exit int) (byte, error) {
	fds := []unix.PollFd{{Fd: int32(c.reply), Events: unix.POLLIN}, {Fd: int32(exit), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("waiting for a kernel's process: %w", err)
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			var answer [1]byte
			_, err := read(c.reply, answer[:])
			return answer[0], err
		}
		if fds[0].Revents != 0 || fds[1].Revents != 0 {
			return 0, nil
		}
	}
}

// drain takes what the process has said beyond its answer out of the next one's
// way, and returns the beginning of it.
func (c *child) drain() []byte {
	var first []byte
	for {
		fds := []unix.PollFd{{Fd: int32(c.reply), Events: unix.POLLIN}}
		if n, _ := unix.Poll(fds, 0); n <= 0 || fds[0].Revents&unix.POLLIN == 0 {
			return first
		}
		rest := make([]byte, 4096)
		n, err := read(c.reply, rest)
		if n <= 0 || err != nil {
			return first
		}
		if first == nil {
			first = rest[:n]
		}
	}
}

func read(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
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
	case answer != 0:
		return &gates.Failure{Kind: gates.FailureCrash, Detail: "the kernel's process gave an answer that was not asked for"}, nil
	case c.late.Load() || s.letter != 'Z' || s.exit.Signaled() && s.exit.Signal() == unix.SIGKILL:
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
