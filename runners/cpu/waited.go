package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A waiting is a stopwatch of the kernel's own: how long a process has been ready
// to run and was not let. No work is done in that time, so leaving it out gives a
// kernel no advantage; leaving it in gives one to whoever was lucky.
type waiting struct {
	stat *os.File // nil where the kernel does not tell
}

// watchWaiting finds the program under the sandbox's first process, which is the
// only one there.
func watchWaiting(first int) waiting {
	pid := first
	for next := childOf(pid); next > 0; next = childOf(pid) {
		pid = next
	}
	if pid == first {
		return waiting{} // its own waits are not the program's
	}
	stat, err := os.Open(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return waiting{}
	}
	return waiting{stat}
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

// total is the waiting time since the process began; 0 where it is not known.
func (w waiting) total() time.Duration {
	if w.stat == nil {
		return 0
	}
	var text [128]byte
	n, _ := w.stat.ReadAt(text[:], 0)
	fields := strings.Fields(string(text[:n])) // running, waiting, slices
	if len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(ns)
}

func (w waiting) close() {
	if w.stat != nil {
		w.stat.Close()
	}
}
