package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// An event is something that the system counts while a process runs.
type event struct {
	counter string // its name in evidence
	kind    uint32 // of perf_event_open
	config  uint64
}

// cacheMiss is the configuration of the misses of loads in a cache.
func cacheMiss(cache uint64) uint64 {
	return cache | unix.PERF_COUNT_HW_CACHE_OP_READ<<8 | unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16
}

// events is everything that is counted, under names that Linux has on every processor. Those of hardware need a processor, or
// a virtual machine, that counts.
var events = []event{
	{why.CPUPageFaults, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
	{why.CPUSwitches, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
	{why.CPUWork, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK},
	{why.CPUCycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	{why.CPUInstructions, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	{why.CPUBranchMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES},
	{why.CPUMemoryMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
	{why.CPUL1Misses, unix.PERF_TYPE_HW_CACHE, cacheMiss(unix.PERF_COUNT_HW_CACHE_L1D)},
	{why.CPUTLBMisses, unix.PERF_TYPE_HW_CACHE, cacheMiss(unix.PERF_COUNT_HW_CACHE_DTLB)},
}

// A counters is the open counters of one process.
type counters struct {
	files   [][]int // of each event, one for each thread; none where the system does not count it
	refused []error // of each event, why the system does not count it
}

// countIn begins to count in the threads of a process, which must be stopped, and in those that they start. What a processor does for
// the system is left out, and so needs no permission where the system is set up as usual. The error is for a system that counts
// nothing here.
func countIn(threads []int, events []event) (*counters, error) {
	c := &counters{}
	for _, e := range events {
		files, err := e.open(threads)
		c.files, c.refused = append(c.files, files), append(c.refused, err)
		if err != nil && !isRefusal(err) {
			c.close()
			return nil, fmt.Errorf("counting %s: %w", e.counter, err)
		}
	}
	if !slices.ContainsFunc(c.files, func(files []int) bool { return len(files) > 0 }) {
		if err := worst(c.refused); err != nil {
			return nil, &uncountable{err}
		}
		return nil, errors.New("a kernel's process has no threads")
	}
	return c, nil
}

// open begins to count an event in threads.
func (e event) open(threads []int) ([]int, error) {
	attr := unix.PerfEventAttr{
		Type: e.kind, Config: e.config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:        unix.PerfBitInherit | unix.PerfBitExcludeHv,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if e.counter != why.CPUSwitches { // which are always the system's
		attr.Bits |= unix.PerfBitExcludeKernel
	}
	var files []int
	for _, thread := range threads {
		fd, err := unix.PerfEventOpen(&attr, thread, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) {
			continue // a thread that has ended is listed for a while
		}
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, fd)
	}
	return files, nil
}

// isRefusal reports whether the system does not count an event, rather than not now.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOENT, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENODEV, unix.EINVAL}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// worst is the refusal that a permission would lift, or else the first; nil where nothing was refused.
func worst(refused []error) error {
	var found error
	for _, err := range refused {
		if err != nil && (found == nil || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
			found = err
		}
	}
	return found
}

// threadsIn returns the threads of a process.
func threadsIn(pid int) ([]int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, fmt.Errorf("listing the threads of a kernel's process: %w", err)
	}
	var threads []int
	for _, entry := range list {
		if thread, err := strconv.Atoi(entry.Name()); err == nil {
			threads = append(threads, thread)
		}
	}
	return threads, nil
}

// counts returns what was counted since, by the names in evidence, for each of so many launches. A processor has few counters and
// takes turns with the events, so a count is that of all the time if it ran for a part of it.
func (c *counters) counts(events []event, launches int) map[string]float64 {
	found := map[string]float64{}
	for i, files := range c.files {
		total, known := 0.0, len(files) > 0
		for _, fd := range files {
			var raw [24]byte
			n, err := read(fd, raw[:])
			value, enabled, running := binary.NativeEndian.Uint64(raw[:]), binary.NativeEndian.Uint64(raw[8:]), binary.NativeEndian.Uint64(raw[16:])
			switch {
			case err != nil || n != len(raw) || running == 0 && enabled > 0: // no counter was free
				known = false
			case running > 0:
				total += float64(value) * (float64(enabled) / float64(running))
			}
		}
		if known {
			found[events[i].counter] = total / float64(launches)
		}
	}
	return found
}

func (c *counters) close() {
	for _, files := range c.files {
		closeAll(files)
	}
}

func closeAll(files []int) {
	for _, fd := range files {
		unix.Close(fd)
	}
}

// countOn counts while a process runs the kernel on every image. It has done so once before, so that its code and its memory are in place.
func (c *child) countOn(images [][]byte, events []event) (found map[string]float64, failure *gates.Failure, err error) {
	if failure, err := c.ready(); err != nil || failure != nil {
		return nil, failure, err
	}
	c.memory.load(images)
	r, err := c.take()
	if err != nil {
		return nil, nil, err
	}
	defer r.end()
	if _, failure, err := c.execute(r, 0, len(images[0]), len(images)); err != nil || failure != nil {
		return nil, failure, err
	}
	c.memory.load(images)
	threads, err := threadsIn(r.pid)
	if err != nil {
		return nil, nil, err
	}
	open, err := countIn(threads, events)
	if err != nil {
		return nil, nil, err
	}
	defer open.close()
	var times interleave.Times
	if times, failure, err = c.execute(r, 0, len(images[0]), len(images)); err != nil || failure != nil {
		return nil, failure, err
	}
	found = open.counts(events, len(images))
	found[why.CPUTime] = float64(times.Device.Nanoseconds()) / float64(len(images))
	return found, nil, nil
}

// uncountable says that the system counts nothing for this program.
type uncountable struct{ why error }

func (u *uncountable) Error() string { return u.detail() + " (" + u.remedy() + ")" }

func (u *uncountable) detail() string {
	switch {
	case errors.Is(u.why, unix.EPERM): // what containers answer
		return "this container may not count events"
	case errors.Is(u.why, unix.EACCES):
		return "Linux lets this user count no events: " + u.reason()
	}
	return fmt.Sprintf("this machine gives programs none (%v)", u.why)
}

func (u *uncountable) reason() string {
	if errors.Is(u.why, unix.EACCES) {
		return "kernel.perf_event_paranoid is " + paranoid()
	}
	return u.why.Error()
}

func (u *uncountable) remedy() string {
	switch {
	case errors.Is(u.why, unix.EPERM):
		return "give it the capability CAP_PERFMON, such as --cap-add PERFMON"
	case errors.Is(u.why, unix.EACCES):
		return "sysctl -w kernel.perf_event_paranoid=1"
	}
	return "use bare metal, or a virtual machine with a virtual PMU"
}

// Counts says whether this host lets programs read the counters of the processor and of the system: nothing if it does, or else what
// stands in the way, what to do, and what is left.
func Counts() (obstacle, remedy string) {
	open, err := countIn([]int{0}, events)
	switch {
	case err == nil:
		open.close()
		return missing(events, open.refused)
	case errors.As(err, new(*uncountable)):
		refused := slices.Repeat([]error{err.(*uncountable).why}, len(events))
		return missing(events, refused)
	}
	return err.Error(), "kernels on a CPU are explained by their builds"
}

// missing is what stands in the way of events that the system refuses, what to do, and what is left.
func missing(events []event, refused []error) (obstacle, remedy string) {
	of := func(counter string) error {
		return refused[slices.IndexFunc(events, func(e event) bool { return e.counter == counter })]
	}
	var obstacles, remedies []string
	add := func(u *uncountable, obstacle string) {
		obstacles = append(obstacles, obstacle)
		if r := u.remedy(); !slices.Contains(remedies, r) {
			remedies = append(remedies, r)
		}
	}
	left := []string{"their builds"}
	if of(why.CPUPageFaults) == nil {
		left = append(left, "page faults")
	}
	processor, switches := of(why.CPUCycles), of(why.CPUSwitches)
	if processor != nil {
		u := &uncountable{processor}
		add(u, u.detail())
	}
	if switches == nil {
		left = append(left, "context switches")
	} else if u := (&uncountable{switches}); processor == nil || u.remedy() != (&uncountable{processor}).remedy() {
		add(u, "context switches are not counted: "+u.reason())
	}
	if len(obstacles) == 0 {
		return "", ""
	}
	if processor == nil {
		left = append(left, "the counters of the processor")
	}
	return strings.Join(obstacles, "; "), strings.Join(remedies, "; ") + "; kernels on a CPU are explained by " + list(left)
}

// list joins words with "and" before the last.
func list(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// paranoid is the system's setting about counters.
func paranoid() string {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
