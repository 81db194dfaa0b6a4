package cpu

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// threadedWorker is a job whose manifest declares so many threads.
func threadedWorker(t *testing.T, threads, file, candidate string) (*Worker, *policy.Policy) {
	t.Helper()
	if runtime.NumCPU() < 2 {
		t.Skip("one processor has no use for threads")
	}
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", []byte(strings.NewReplacer("source: scale.c", "source: "+file, "mode: cpu", "mode: cpu\n"+threads).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(correctOnly))
	if err != nil {
		t.Fatal(err)
	}
	base := "#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
	if strings.HasSuffix(file, "pp") {
		base = strings.Replace(base, "void", "extern \"C\" void", 1)
	}
	return newTestWorker(t, m, p, base, candidate, 20*time.Second), p
}

const (
	withOpenMP = `#include <stdint.h>
#include <omp.h>
void scale(const float *x, float *y, int32_t N)
{
    int team = 0;
#pragma omp parallel for reduction(max : team)
    for (int i = 0; i < N; i++) {
        team = omp_get_num_threads();
        y[i] = 2 * x[i];
    }
    if (team != 2 && N > 0) y[0] = -1000;
}
`
	withThreads = `#include <cstdint>
#include <thread>
extern "C" void scale(const float *x, float *y, int32_t N)
{
    std::thread other([=] { for (int i = 0; i < N / 2; i++) y[i] = 2 * x[i]; });
    for (int i = N / 2; i < N; i++) y[i] = 2 * x[i];
    other.join();
}
`
)

// A kernel that declares two threads has them, of OpenMP or its own, and nobody else has.
func TestThreads(t *testing.T) {
	for _, c := range []struct {
		name, threads, file, source string
		outcome                     gates.Outcome
		says                        string
	}{
		{"OpenMP", "threads: 2", "scale.c", withOpenMP, gates.Pass, ""},
		{"threads of its own", "threads: 2", "scale.cpp", withThreads, gates.Pass, ""},
		// The system counts a thread for a while after it was waited for.
		{"one after the other", "threads: 2", "scale.cpp", strings.Replace(withThreads, "    std::thread other", "    for (int n = 0; n < 200; n++) std::thread([] {}).join();\n    std::thread other", 1), gates.Pass, ""},
		{"not declared", "", "scale.cpp", withThreads, gates.Defer, "which the sandbox refuses"},
		{"a fork beside them", "threads: 2", "scale.c", "#include <stdint.h>\n#include <unistd.h>\nvoid scale(const float *x, float *y, int32_t N) { fork(); for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n",
			gates.Defer, "the kernel called clone, which the sandbox refuses"},
		// It would be on no clock of the kernel's process, and not stop with it.
		{"a process that shares its memory", "threads: 2", "scale.c", `#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
static const float *from;
static float *to;
static int n;
static int work(void *p) { for (int i = 0; i < n; i++) to[i] = 2 * from[i]; return 0; }
void scale(const float *x, float *y, int32_t N)
{
    static char stack[1 << 16];
    from = x, to = y, n = N;
    clone(work, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | SIGCHLD, 0);
    for (volatile int i = 0; i < 100000000; i++) ;
}
`, gates.Defer, "the kernel called clone, which the sandbox refuses"},
		{"asks in memory, where no filter looks", "threads: 2", "scale.c", `#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
void scale(const float *x, float *y, int32_t N)
{
    uint64_t args[11] = {0};
    long got = syscall(SYS_clone3, args, sizeof args);
    if (got == 0) for (;;) ;
    for (int i = 0; i < N; i++) y[i] = got < 0 && errno == ENOSYS ? 2 * x[i] : 0;
}
`, gates.Pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, p := threadedWorker(t, c.threads, c.file, c.source)
			e, err := gather.Gather(t.Context(), w.job, w, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if v := gates.Judge(p, "test.yaml", e); v.Outcome != c.outcome || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s %s\n%s", v.Outcome, v.Reason, v.Summary, e.Fault, w.BuildLog())
			}
		})
	}
	text, _ := os.ReadFile("testdata/kernel.yaml")
	m, err := manifest.Parse("kernel.yaml", []byte(strings.Replace(string(text), "mode: cpu", "mode: cpu\nthreads: 64", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewWorker(t.Context(), runners.Job{Manifest: m}, Config{}); runtime.NumCPU() < 64 && (err == nil || !strings.Contains(err.Error(), "declares 64 threads, and this machine has")) {
		t.Errorf("more threads than processors: %v", err)
	}
}

// Whoever has threads may do no more than start some and wait for them.
func TestThreadsMayDoNoMore(t *testing.T) {
	alone, list := kernelCalls(1), kernelCalls(2)
	var more []uintptr
	for _, c := range list {
		if !slices.ContainsFunc(alone, func(a sandbox.Call) bool { return a.Number == c.Number }) {
			more = append(more, c.Number)
		}
		if c.Number == unix.SYS_CLONE && (len(c.When) != 1 || c.When[0].Value&unix.CLONE_THREAD == 0 || c.When[0].Mask != 0xFFFFFFFF) {
			t.Errorf("clone may be asked for %+v", c.When)
		}
		if c.Number == unix.SYS_CLONE3 && c.Answer != sandbox.Absent {
			t.Error("clone3 is there")
		}
	}
	if want := []uintptr{unix.SYS_SCHED_YIELD, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY, unix.SYS_CLONE, unix.SYS_RT_SIGACTION, unix.SYS_CLONE3}; !slices.Equal(more, want) {
		t.Errorf("threads bring the calls %v, want %v", more, want)
	}
}

// What other threads do counts, also when the kernel has returned: all that passes until nothing runs any more is on the clock, and
// then nothing does.
func TestThreadsAreOnTheClock(t *testing.T) {
	const spin = `#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile float *out;
static void *busy(void *p)
{
    struct timespec t;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); while (t.tv_nsec < 30000000 && t.tv_sec == 0);
    if (p) for (;;) out[0]++;
    return 0;
}
`
	for _, c := range []struct{ name, body string }{
		{"waits for both", "pthread_t id; pthread_create(&id, 0, busy, 0); busy(0); pthread_join(id, 0);"},
		{"leaves one behind", "pthread_t id; pthread_create(&id, 0, busy, y); busy(0);"},
		{"answers from the other and ends its first thread", "pthread_t id; pthread_create(&id, 0, busy, y); busy(0); write(5, \"k\", 1); syscall(SYS_exit, 0);"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := threadedWorker(t, "threads: 2", "scale.c", "#define _GNU_SOURCE\n"+spin+"void scale(const float *x, float *y, int32_t N) { out = y; "+c.body+" }\n")
			if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
				t.Fatal(err, b.Error, w.BuildLog())
			}
			m := w.job.Manifest
			d, err := newDrawer(m, m.Shapes[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			child, err := startChild(t.Context(), w.sides[runners.Candidate].path, d.layout.Size, 2, 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer child.close()
			if err := d.draw(distribution.Normal, []uint64{1}); err != nil {
				t.Fatal(err)
			}
			if failure, err := child.ready(); err != nil || failure != nil {
				t.Fatal(failure, err)
			}
			child.memory.load(d.images[:1])
			times, failure, err := child.launch(d.layout.Size, 1)
			if err != nil || failure != nil {
				t.Fatal(failure, err)
			}
			after := slices.Clone(d.slot(child.memory, 0))
			// The first thread has used a little of its time before the launch.
			if times.Device < 29*time.Millisecond || times.Wall != times.Device {
				t.Errorf("took %v by the clock that is judged, %v by the wall's; each thread worked for 30 ms", times.Device, times.Wall)
			}
			for range 200 { // whatever runs on would have changed it by then
				if !slices.Equal(after, d.slot(child.memory, 0)) {
					t.Fatal("a thread still runs")
				}
				runtime.Gosched()
			}
		})
	}
	for _, c := range []struct{ wall, spent, want time.Duration }{{10, 4, 10}, {10, 20, 10}, {10, 36, 18}} {
		if got := threaded(c.wall, c.spent, 2); got.Device != c.want || got.Wall != c.want {
			t.Errorf("%d on the wall and %d of processors, of two threads, are %+v", c.wall, c.spent, got)
		}
	}
}

// A process whose first thread has ended is not dead while another runs, and is stopped with it.
func TestHaltStopsEveryThread(t *testing.T) {
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "main.c"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(`#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *spin(void *p) { write(1, "r", 1); for (;;) ; }
int main(void) { pthread_t id; pthread_create(&id, 0, spin, 0); syscall(SYS_exit, 0); }
`), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-w", "-pthread", "-o", exe, source).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(cmd.Process.Pid); s.threads != 2 || (state{letter: 'T', threads: s.threads}).allStopped() {
		t.Errorf("one of two threads has stopped, and that is said of all: %+v", s)
	}
	if err := halt(cmd.Process.Pid); err != nil {
		t.Fatalf("a thread runs, and stopping it says: %v", err)
	}
	before, ok := runningTime(cmd.Process.Pid)
	for range 100 {
		runtime.Gosched()
	}
	if after, _ := runningTime(cmd.Process.Pid); !ok || after != before {
		t.Errorf("it has run for %v, and then for %v", before, after)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := halt(cmd.Process.Pid); !errors.Is(err, errDead) {
		t.Errorf("stopping what is gone says: %v", err)
	}
}

// A kernel with threads is timed by the wall, which starts when the inputs of a single launch
// are in place. A thread that watched them arrive would begin before the clock, so nothing
// of the kernel runs meanwhile. This one aborts when it sees half of an image.
func TestNothingRunsWhileInputsArrive(t *testing.T) {
	m, p := languages(t)
	m.Shapes[1].Dims[0].Value = 100_000
	w := newTestWorker(t, m, p, baseline, include+attackSource(t, "slots.h")+`
void scale(const float *x, float *y, int32_t N)
{
    size_t size = slot_size(N);
    for (uint64_t command[3];;) {
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
        write(5, "k", 1);
        x += size / 4, y += size / 4;
        volatile uint64_t *first = (volatile uint64_t *)((char *)x - 512), *last = (volatile uint64_t *)((char *)x - 512 + size - 8);
        while (*first == 0)
            ;
        if (*last == 0)
            abort();
        read(4, command, sizeof command);
    }
}
`, time.Minute)
	if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	d, err := newDrawer(m, m.Shapes[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.draw(distribution.Normal, make([]uint64, 16)); err != nil {
		t.Fatal(err)
	}
	c, err := startChild(t.Context(), w.sides[runners.Candidate].path, 17*d.layout.Size, 2, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 4 {
		if _, failure, err := c.launchEach(d.images[:16]); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
	}
}
