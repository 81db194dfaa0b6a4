package cpu

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/runners"
)

// freshPages is how many pages a launch touches for the first time in each launch: malloc gives such large pieces back to the system.
const freshPages = 200

const (
	// Where Linux may give a program huge pages, the scratch of these kernels has small ones all the same.
	small = `#include <sys/mman.h>
static void small(char *p) { madvise((void *)(((unsigned long)p + 4095) & ~4095ul), 47 << 20, MADV_NOHUGEPAGE); }
`
	touches = include + small + `void scale(const float *x, float *y, int32_t N)
{
    char *scratch = malloc(48 << 20);
    small(scratch);
    for (int i = 0; i < 200; i++) scratch[4096 * (i + 1)] = i;
    for (int i = 0; i < N; i++) y[i] = 2 * x[i] + 0 * (volatile char)scratch[4096];
    free(scratch);
}
`
	reuses = include + small + `void scale(const float *x, float *y, int32_t N)
{
    static char *scratch;
    if (!scratch) small(scratch = malloc(48 << 20));
    for (int i = 0; i < 200; i++) scratch[4096 * (i + 1)] = i;
    for (int i = 0; i < N; i++) y[i] = 2 * x[i] + 0 * (volatile char)scratch[4096];
}
`
	// Two threads hand a turn to each other.
	turns = `#include <cstdint>
#include <semaphore.h>
#include <thread>
extern "C" void scale(const float *x, float *y, int32_t N)
{
    sem_t turn[2];
    sem_init(&turn[0], 0, 1);
    sem_init(&turn[1], 0, 0);
    auto play = [&](int mine) {
        for (int i = 0; i < 40; i++) {
            sem_wait(&turn[mine]);
            sem_post(&turn[1 - mine]);
        }
    };
    std::thread other(play, 1);
    play(0);
    other.join();
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
`
	noTurns = `#include <cstdint>
extern "C" void scale(const float *x, float *y, int32_t N)
{
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
`
	// The thread has the work, and the kernel waits for it.
	threads = small + `#include <cstdint>
#include <cstdlib>
#include <thread>
extern "C" void scale(const float *x, float *y, int32_t N)
{
    std::thread other([=] {
        char *scratch = (char *)malloc(48 << 20);
        small(scratch);
        for (int i = 0; i < 200; i++) ((volatile char *)scratch)[4096 * (i + 1)] = i;
        for (int i = 0; i < N; i++) y[i] = 2 * x[i];
        free(scratch);
    });
    other.join();
}
`
)

// countedOn builds both sides, and counts events on the shape mission.
func countedOn(t *testing.T, events []event, before, after string) *gates.ExplainedShape {
	t.Helper()
	m, p := languages(t)
	return countedBy(t, newTestWorker(t, m, p, before, after, time.Minute), events)
}

func countedBy(t *testing.T, w *Worker, events []event) *gates.ExplainedShape {
	t.Helper()
	for role, side := range map[runners.Role]runners.Side{runners.Baseline: *w.job.Baseline, runners.Candidate: w.job.Candidate} {
		if b, err := w.Build(t.Context(), role, side); err != nil || !b.OK {
			t.Fatal(b.Error, err)
		}
	}
	shape, _ := w.job.Manifest.Shape("mission")
	s, err := w.countShape(t.Context(), shape, events)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// explained explains what was counted, with times as rounds would measure them.
func explained(s *gates.ExplainedShape, beforeMicros, afterMicros float64) gates.Why {
	e := &gates.Evidence{
		Kernel: "scale", Mode: "cpu", Baseline: &gates.Build{OK: true}, Candidate: &gates.Build{OK: true},
		Explained: &gates.Explained{Shapes: []gates.ExplainedShape{*s}},
	}
	return gates.Explain(e, []gates.Comparison{{Shape: s.Shape, Baseline: &stats.Summary{P50: beforeMicros}, Candidate: &stats.Summary{P50: afterMicros}}})[0]
}

// What the system counts of real kernels names the cause in both directions: memory that is touched for the first time in every launch.
func TestExplainPageFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		faults        [2]float64
		faster        bool
	}{{touches, reuses, [2]float64{freshPages, 0}, true}, {reuses, touches, [2]float64{0, freshPages}, false}} {
		s := countedOn(t, events, c.before, c.after)
		for i, side := range [][]gates.Counted{s.Baseline, s.Candidate} {
			if got := side[0].Counters[why.CPUPageFaults]; math.Abs(got-c.faults[i]) > 4 {
				t.Errorf("side %d: %v page faults a launch, want %v", i, got, c.faults[i])
			}
		}
		times := []float64{600, 3}
		if !c.faster {
			slices.Reverse(times)
		}
		x := explained(s, times[0], times[1])
		if x.Cause != why.PageFaults || x.Faster != c.faster || len(x.Rows) == 0 || x.Rows[0].ID != "cpu_page_faults" {
			t.Errorf("faster=%v: %+v", c.faster, x)
		}
	}
	if x := explained(countedOn(t, events, reuses, reuses), 3, 3); x.Cause != "" || x.Moved {
		t.Errorf("equal kernels: %+v", x)
	}
}

// What a thread does counts as well, and what this system does not count is left out.
func TestCountedEvents(t *testing.T) {
	t.Parallel()
	nothing := event{"cpu.nothing", 77, 7}
	all := append([]event{nothing}, events...)
	w, _ := threadedWorker(t, "threads: 2\n", "scale.cpp", threads)
	if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	shape, _ := w.job.Manifest.Shape("mission")
	d, err := newDrawer(w.job.Manifest, shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.draw(w.random("mission"), []uint64{1, 2}); err != nil {
		t.Fatal(err)
	}
	exe := w.sides[runners.Candidate]
	c, err := startChild(t.Context(), exe.path, 2*d.layout.Size, exe.threads, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	found, failure, err := c.countOn(d.images[:2], all)
	if err != nil || failure != nil {
		t.Fatal(failure, err)
	}
	if _, known := found["cpu.nothing"]; known || !(found[why.CPUWork] > 0) || !(found[why.CPUTime] > 0) {
		t.Errorf("%v", found)
	}
	if faults := found[why.CPUPageFaults]; math.Abs(faults-freshPages) > 8 {
		t.Errorf("%v page faults in a launch whose thread touches %d pages", faults, freshPages)
	}
	if switches, known := found[why.CPUSwitches]; known && !(switches >= 1) {
		t.Errorf("%v context switches in a launch that waits for a thread", switches)
	}
	if _, _, err := c.countOn(d.images[:2], []event{nothing}); err == nil || !strings.Contains(err.Error(), "this machine gives programs none") {
		t.Errorf("without any event: %v", err)
	}
}

// Threads that wait for each other name the cause in both directions, where the system tells of context switches.
func TestExplainSwitches(t *testing.T) {
	t.Parallel()
	for _, faster := range []bool{false, true} {
		w, _ := threadedWorker(t, "threads: 2\n", "scale.cpp", turns)
		before := sourceFolder(t, map[string]string{"scale.cpp": noTurns, "reference.c": reference})
		side := runners.Side{Dir: before, Variant: w.job.Candidate.Variant}
		w.job.Baseline = &side
		if faster {
			w.job.Baseline, w.job.Candidate = &runners.Side{Dir: w.job.Candidate.Dir, Variant: side.Variant}, side
		}
		s := countedBy(t, w, events)
		if _, known := s.Baseline[0].Counters[why.CPUSwitches]; !known {
			t.Skip("Linux does not tell this user of context switches")
		}
		times := []float64{20, 600}
		if faster {
			slices.Reverse(times)
		}
		if x := explained(s, times[0], times[1]); x.Cause != why.ContextSwitches || x.Faster != faster {
			t.Errorf("faster=%v: %+v, %+v", faster, x, s)
		}
	}
}

// Threads that a kernel keeps from launch to launch count as well: those of OpenMP are there before the counters are.
func TestCountedThreadsOfOpenMP(t *testing.T) {
	t.Parallel()
	const source = include + small + `void scale(const float *x, float *y, int32_t N)
{
#pragma omp parallel
    {
        char *scratch = malloc(48 << 20);
        small(scratch);
        for (int i = 0; i < 100; i++) ((volatile char *)scratch)[4096 * (i + 1)] = i;
        free(scratch);
    }
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
`
	w, _ := threadedWorker(t, "threads: 2", "scale.c", source)
	s := countedBy(t, w, events)
	if faults := s.Candidate[0].Counters[why.CPUPageFaults]; math.Abs(faults-freshPages) > 8 {
		t.Errorf("%v page faults in a launch whose two threads touch %d pages", faults, freshPages)
	}
}

// A process takes its first page faults before the first launch: otherwise that launch takes longer than later ones, as if it did work
// for them.
func TestFirstLaunchFaults(t *testing.T) {
	t.Parallel()
	const source = include + `static int zeros[5000], ones[5000] = {1};
void scale(const float *x, float *y, int32_t N)
{
    char deep[60000], *scratch = malloc(200000);
    for (int i = 0; i < 5000; i++) zeros[i] += ones[i]++;
    for (int i = 0; i < 60000; i++) ((volatile char *)deep)[i] = i;
    for (int i = 0; i < 200000; i++) ((volatile char *)scratch)[i] = i;
    for (int i = 0; i < N; i++) y[i] = 2 * x[i] + 0 * (scratch[i] + deep[i] + zeros[i]);
    free(scratch);
}
`
	m, p := languages(t)
	w := newTestWorker(t, m, p, source, source, 20*time.Second)
	if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	shape, _ := m.Shape("mission")
	d, err := newDrawer(m, shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.draw(w.random("mission"), []uint64{1}); err != nil {
		t.Fatal(err)
	}
	exe := w.sides[runners.Candidate]
	c, err := startChild(t.Context(), exe.path, d.layout.Size, exe.threads, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if failure, err := c.ready(); err != nil || failure != nil {
		t.Fatal(failure, err)
	}
	c.memory.load(d.images[:1])
	r, err := c.take()
	if err != nil {
		t.Fatal(err)
	}
	defer r.end()
	open, err := countIn([]int{r.pid}, events[:1])
	if err != nil {
		t.Skip(err)
	}
	defer open.close()
	if _, failure, err := c.execute(r, 0, len(d.images[0]), 1); err != nil || failure != nil {
		t.Fatal(failure, err)
	}
	if faults := open.counts(events[:1], 1)[why.CPUPageFaults]; faults > 2 {
		t.Errorf("%v page faults", faults)
	}
}

func TestUncountable(t *testing.T) {
	obstacle, remedy := Counts()
	if (obstacle == "") != (remedy == "") {
		t.Errorf("%q, %q", obstacle, remedy)
	}
	t.Logf("this host: %q (%s)", obstacle, remedy)
	for errno, want := range map[error]string{unix.EPERM: "--cap-add PERFMON", unix.EACCES: "kernel.perf_event_paranoid is ", unix.ENOENT: "this machine gives programs none (no such file"} {
		if got := (&uncountable{errno}).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %s", errno, got)
		}
	}
	if _, err := countIn([]int{1 << 30}, events); err == nil || errors.As(err, new(*uncountable)) {
		t.Errorf("of a process that has ended: %v", err)
	}
	permission, faults := unix.EACCES, []event{{counter: why.CPUPageFaults}, {counter: why.CPUSwitches}, {counter: why.CPUCycles}}
	for name, c := range map[string]struct {
		refused          []error
		obstacle, remedy string // parts of them
	}{
		"nothing is missing":    {[]error{nil, nil, nil}, "", ""},
		"no processor":          {[]error{nil, nil, unix.ENOENT}, "this machine gives programs none", "virtual PMU; kernels on a CPU are explained by their builds, page faults and context switches"},
		"no permission":         {[]error{permission, permission, permission}, "Linux lets this user count no events", "paranoid=1; kernels on a CPU are explained by their builds"},
		"switches alone":        {[]error{nil, permission, nil}, "context switches are not counted: ", "paranoid=1; kernels on a CPU are explained by their builds, page faults and the counters of the processor"},
		"neither of the two":    {[]error{nil, permission, unix.ENOENT}, "; context switches are not counted: ", "virtual PMU; sysctl -w kernel.perf_event_paranoid=1; kernels on a CPU are explained by their builds and page faults"},
		"a container's refusal": {[]error{unix.EPERM, unix.EPERM, unix.EPERM}, "this container may not count events", "CAP_PERFMON"},
	} {
		if obstacle, remedy := missing(faults, c.refused); !strings.Contains(obstacle, c.obstacle) || !strings.Contains(remedy, c.remedy) || (c.obstacle == "") != (obstacle == "") {
			t.Errorf("%s: %q, %q", name, obstacle, remedy)
		}
	}
}
