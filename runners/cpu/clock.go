package cpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// A cpuClock is the operating system's own account of how long a process has
// been running. On a machine that others use as well it tells the kernel's time
// from the scheduler's, and no process can turn it back.
type cpuClock struct {
	id int32
}

// clockOf is the clock of a process. The operating system makes its number of the
// process's: see clock_getcpuclockid.
func clockOf(pid int) cpuClock { return cpuClock{int32(^pid<<3 | 2)} }

// read is the running time so far; ok is false where there is no such process.
func (c cpuClock) read() (time.Duration, bool) {
	var t unix.Timespec
	if unix.ClockGettime(c.id, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
