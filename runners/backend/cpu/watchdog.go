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
		took := time.Since(start)
		waited := longest(c.queued(), before)
		switch left := c.timeout - (took - waited); {
		case c.answered():
			return // and nobody had the time to read it
		case left > 0 && took < starvation*c.timeout:
			t.Reset(max(left, time.Millisecond))
			return
		case left > 0:
			c.starved.Store(int64(waited))
		default:
			c.late.Store(true)
		}
		c.program.Kill()
	})
	return func() {
		close(done)
		t.Stop()
	}
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
