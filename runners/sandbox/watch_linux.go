package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The watch looks every watchEvery. It sleeps longer if looking takes long, so as not to compete with what it watches,
// but never longer than watchLeast: a program must not win time by being costly to look at.
const (
	watchEvery = 20 * time.Millisecond
	watchLeast = 200 * time.Millisecond
)

// A watch holds all processes inside to Limits.Memory together, which no resource limit does, and notes
// whether they came up against Limits.Processes.
type watch struct {
	limits Limits
	done   chan struct{}
	over   sync.WaitGroup

	// Read after stop.
	outOfMemory bool
	held        int64
	crowded     bool
}

func newWatch(l Limits) *watch {
	w := &watch{limits: l, done: make(chan struct{})}
	w.over.Add(1)
	return w
}

// run looks until stop. It kills everything but process 1 when too much memory is held.
func (w *watch) run() {
	defer w.over.Done()
	timer := time.NewTimer(watchEvery)
	for {
		select {
		case <-w.done:
			return
		case <-timer.C:
		}
		began := time.Now()
		if w.look() {
			_ = syscall.Kill(-1, syscall.SIGKILL) // fails only when nothing is left
		}
		timer.Reset(min(max(watchEvery, 9*time.Since(began)), watchLeast))
	}
}

func (w *watch) stop() {
	close(w.done)
	w.over.Wait()
}

// look reports whether more memory is held than allowed. Pages that processes share are counted for each at
// first, which is quick; only when that is too much are they counted once.
func (w *watch) look() bool {
	pids, err := otherPids()
	if err != nil {
		return false
	}
	var memory, tasks int64
	for _, pid := range pids {
		s := procFields(pid, "status")
		memory += (s["RssAnon"] + s["RssShmem"] + s["VmSwap"]) << 10
		tasks += s["Threads"]
	}
	w.crowded = w.crowded || tasks >= int64(w.limits.Processes)
	if memory <= w.limits.Memory {
		return false
	}
	memory = 0
	for _, pid := range pids {
		s := procFields(pid, "smaps_rollup")
		memory += (s["Pss_Anon"] + s["Pss_Shmem"] + s["SwapPss"]) << 10
	}
	if memory <= w.limits.Memory {
		return false
	}
	w.outOfMemory, w.held = true, max(w.held, memory)
	return true
}

func (w *watch) refused() (refused []string) {
	if w.outOfMemory {
		refused = append(refused, fmt.Sprintf("killed for holding %s of memory, over the limit of %s", sizeText(w.held), sizeText(w.limits.Memory)))
	}
	if w.crowded {
		refused = append(refused, fmt.Sprintf("the limit of %d processes and threads was reached", w.limits.Processes))
	}
	return refused
}

// otherPids lists all processes inside but process 1.
func otherPids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid != 1 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// procFields reads the numbers in a file of "Name: number" lines about a process. A process that is gone has none.
func procFields(pid int, file string) map[string]int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil
	}
	fields := map[string]int64{}
	for line := range bytes.Lines(text) {
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if words := bytes.Fields(rest); ok && len(words) > 0 {
			if n, err := strconv.ParseInt(string(words[0]), 10, 64); err == nil {
				fields[string(name)] = n
			}
		}
	}
	return fields
}
