package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The watch sleeps as long as the memory left can hardly be filled, so as not to disturb a measurement, and longer
// if looking took long. But it never sleeps longer than longestSleep: a program must not win time by being costly
// to look at.
const (
	shortestSleep = 20 * time.Millisecond
	longestSleep  = 200 * time.Millisecond
	fillRate      = 8 << 30 // bytes a second
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
	timer := time.NewTimer(shortestSleep)
	for {
		select {
		case <-w.done:
			return
		case <-timer.C:
		}
		began := time.Now()
		held := w.look()
		if held > w.limits.Memory {
			w.outOfMemory, w.held = true, max(w.held, held)
			_ = syscall.Kill(-1, syscall.SIGKILL) // fails only when nothing is left
		}
		filling := time.Duration(float64(w.limits.Memory-held) / fillRate * float64(time.Second))
		timer.Reset(min(max(filling, 9*time.Since(began), shortestSleep), longestSleep))
	}
}

func (w *watch) stop() {
	close(w.done)
	w.over.Wait()
}

// look returns how much memory is held. Pages that processes share are counted for each at first, which is quick; only
// when that is too much are they counted once.
func (w *watch) look() int64 {
	pids, err := otherPids()
	if err != nil {
		return 0
	}
	var memory, tasks int64
	for _, pid := range pids {
		s := procFields(pid, "status")
		memory += (s["RssAnon"] + s["RssShmem"] + s["VmSwap"]) << 10
		tasks += s["Threads"]
	}
	w.crowded = w.crowded || tasks >= int64(w.limits.Processes)
	if memory <= w.limits.Memory {
		return memory
	}
	memory = 0
	for _, pid := range pids {
		s := procFields(pid, "smaps_rollup")
		memory += (s["Pss_Anon"] + s["Pss_Shmem"] + s["SwapPss"]) << 10
	}
	return memory
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
	text := make([]byte, 4096) // on machines with many processors there is more, but nothing that is counted here
	n, err := readOnce(fmt.Sprintf("/proc/%d/%s", pid, file), text)
	if err != nil {
		return nil
	}
	fields := map[string]int64{}
	for line := range bytes.Lines(text[:n]) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
		if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
			fields[string(name)] = n
		}
	}
	return fields
}

// readOnce does without the package os, which asks the kernel three times as much about each file.
func readOnce(path string, into []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Read(fd, into)
}
