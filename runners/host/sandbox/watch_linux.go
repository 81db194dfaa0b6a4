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

// The watch sleeps as long as the remaining memory can hardly be filled, so as not to disturb a
// measurement. It sleeps longer if the last look took long. But it never sleeps longer than
// longestSleep: a program must not gain time by being expensive to inspect.
const (
	shortestSleep = 20 * time.Millisecond
	longestSleep  = 200 * time.Millisecond
	fillRate      = 8 << 30 // bytes per second
)

// A watch keeps the memory of all processes inside together within Limits.Memory, which no resource
// limit does. It also records whether they reached Limits.Processes.
type watch struct {
	limits Limits
	done   chan struct{}
	over   sync.WaitGroup

	// The following are read after stop.
	outOfMemory bool
	held        int64
	crowded     bool
}

func newWatch(l Limits) *watch {
	w := &watch{limits: l, done: make(chan struct{})}
	w.over.Add(1)
	return w
}

// run looks at the processes until stop. It kills everything except process 1 when they hold too
// much memory.
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
			_ = syscall.Kill(-1, syscall.SIGKILL) // fails only if no process is left
		}
		filling := time.Duration(float64(w.limits.Memory-held) / fillRate * float64(time.Second))
		timer.Reset(min(max(filling, 9*time.Since(began), shortestSleep), longestSleep))
	}
}

func (w *watch) stop() {
	close(w.done)
	w.over.Wait()
}

// look returns how much memory the processes hold. The quick first count includes shared pages once
// for each process. Only if that is too much, look counts shared pages once.
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

// otherPids lists all processes inside except process 1.
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

// procFields reads the numbers in a file of "Name: number" lines about a process. It returns nil if
// the process has ended.
func procFields(pid int, file string) map[string]int64 {
	// On machines with many processors the file is longer, but the rest has no field counted here.
	text := make([]byte, 4096)
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

// readOnce avoids package os, which makes three times as many system calls for each file.
func readOnce(path string, into []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Read(fd, into)
}
