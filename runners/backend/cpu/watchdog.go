package cpu

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// starvation is how many times its timeout a side may take because it waits for a processor. After that the machine is at fault,
// and not the kernel.
const starvation = 20

// watchdog kills everything of the child when it takes too long. The time that it waited for a processor does not count: on a
// busy machine that says nothing about the kernel.
func (c *child) watchdog() (off func()) {
	start, before := time.Now(), c.queued()
	var t *time.Timer
	done := make(chan struct{})
	t = time.AfterFunc(c.timeout, func() {
		select {
		case <-done:
			return
		default:
		}
		if c.answered() {
			return // and nobody had the time to read it
		}
		waited := longest(c.queued(), before)
		left, starved := remaining(c.timeout, time.Since(start), waited)
		if left > 0 && !starved {
			t.Reset(left)
			return
		}
		if starved {
			c.starved.Store(int64(waited))
		} else {
			c.late.Store(true)
		}
		c.program.Kill()
	})
	return func() {
		close(done)
		t.Stop()
	}
}

// remaining is how much longer a side may take that has taken so long and waited for a processor so long of it. A starved one
// has waited too long, whatever remains to it.
func remaining(timeout, took, waited time.Duration) (left time.Duration, starved bool) {
	left = timeout - (took - waited)
	if left <= 0 {
		return 0, false
	}
	return max(left, time.Millisecond), took >= starvation*timeout
}

// answered reports whether there is an answer that was not read yet.
func (c *child) answered() bool {
	ready := []unix.PollFd{{Fd: int32(c.reply), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err == nil && n == 1 && ready[0].Revents&unix.POLLIN != 0
}

// queued returns how long each thread of the launcher and of its process has waited for a processor so far.
func (c *child) queued() map[string]time.Duration {
	waited := map[string]time.Duration{}
	launcher := childOf(c.program.Pid())
	for _, pid := range []int{launcher, childOf(launcher)} {
		if pid == 0 {
			continue
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, thread := range threads {
			var room [128]byte // time on a processor, time in its queue, turns
			fields := bytes.Fields(readOnce(thread, room[:]))
			if len(fields) < 2 {
				continue
			}
			if nanos, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				waited[thread] = time.Duration(nanos)
			}
		}
	}
	return waited
}

// longest is how long the thread waited that waited longest since before.
func longest(after, before map[string]time.Duration) (waited time.Duration) {
	for thread, total := range after {
		waited = max(waited, total-before[thread])
	}
	return waited
}
