package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// launchOn puts images of slots into the memory once a process waits, and has it run
// the kernel on each.
func (c *child) launchOn(images [][]byte) (interleave.Times, *gates.Failure, error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return interleave.Times{}, failure, err
	}
	c.memory.load(images)
	return c.launch(len(images[0]), len(images))
}

// launchInPlace has one process run the kernel on the images one after the other, all of them at the same place: a program
// that fills its buffers again does that. The function looks at the memory after each launch.
func (c *child) launchInPlace(images [][]byte, look func(image int)) (*gates.Failure, error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return failure, err
	}
	c.memory.load(images[:1])
	r, err := c.take()
	if err != nil {
		return nil, err
	}
	defer r.end()
	for i, image := range images {
		c.memory.load([][]byte{image})
		if _, failure, err := c.execute(r, 0, len(image), 1); err != nil || failure != nil {
			return failure, err
		}
		look(i)
	}
	return nil, nil
}

// launchEach has one process run the kernel on the images one after the other, and
// returns the median time of the launches but the first, which brings the code in. An image
// is put into the memory when the launch before it has answered and what that one wrote was
// copied: a launch whose output is not there by then is wrong, and what its process does
// later is charged to the next one. So no launch can do another's work.
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
	stopped := true
	for i, image := range images {
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
		if stopped, err = c.settle(r.pid); errors.Is(err, errDead) {
			failure, err := c.wrong(r.pid, 0)
			return t, failure, err
		} else if err != nil {
			return t, nil, err
		}
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

// settle makes the clock of a process that has answered say what it spent, and reports whether it had
// to stop the process. The system brings that clock up to date when the process gives up its
// processor, and else only every few milliseconds: a process that never waits would seem to spend
// nothing. A kernel with one thread waits for its next command, and is left alone. Its processor time
// shows whatever it does while the next image is copied. A kernel with threads is timed by the wall,
// so it is stopped: a thread that watches the memory would begin before the clock.
func (c *child) settle(pid int) (stopped bool, err error) {
	for range answering {
		if c.threads > 1 {
			break
		}
		if stateOf(pid).waits() {
			return false, nil
		}
		time.Sleep(pause)
	}
	return true, halt(pid)
}

// answering is how often a process is looked at that has answered. On a machine with few processors
// it may not have come to wait yet.
const answering = 3

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

// dying bounds the wait for the end of a process that was killed.
const dying = 10 * time.Second

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

// end kills the process and waits until it is dead. The system frees the memory of a dying process, which takes it tens of
// milliseconds for a gigabyte: without the wait, a process would still use the machine while the next side is timed.
func (r running) end() {
	defer unix.Close(r.exit)
	_ = unix.PidfdSendSignal(r.exit, unix.SIGKILL, nil, 0) // it fails only when the process is dead
	for deadline := time.Now().Add(dying); time.Now().Before(deadline); {
		fds := []unix.PollFd{{Fd: int32(r.exit), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(dying.Milliseconds())); !errors.Is(err, unix.EINTR) {
			return
		}
	}
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
