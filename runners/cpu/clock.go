package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A cpuClock is the operating system's own account of how long a process has
// been running. On a machine that others use as well it tells the kernel's time
// from the scheduler's, and no process can turn it back. A child has one thread
// and no other process to work for it, so what its kernel computes is in it.
type cpuClock struct {
	id int32 // 0: none
}

// clockOf finds the clock of the program under the sandbox's first process,
// which is the only one there.
func clockOf(first int) cpuClock {
	pid := first
	for next := childOf(pid); next > 0; next = childOf(pid) {
		pid = next
	}
	// The kernel makes a clock's number of the process's: see clock_getcpuclockid.
	clock := cpuClock{int32(^pid<<3 | 2)}
	if _, ok := clock.read(); !ok || pid == first {
		return cpuClock{}
	}
	return clock
}

// childOf is the only child of a process, or 0. Children are listed by the thread
// that started them.
func childOf(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		if child, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return child
		}
	}
	return 0
}

// read is the running time so far; ok is false where there is no such clock.
func (c cpuClock) read() (time.Duration, bool) {
	var t unix.Timespec
	if c.id == 0 || unix.ClockGettime(c.id, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
