package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// work is the arena's honest computation, some microseconds of it.
const work = include + `
#include <stdio.h>
__attribute__((noinline)) static void work(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < 100; again++)
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
}
`

// Each of these would be of use to a kernel that wants to work while no clock runs,
// to wait, to keep something, or to hold memory that no limit sees. Each tries before
// it computes its output as it should.
func TestRefusedCalls(t *testing.T) {
	a := newArena(t, correctOnly)
	for _, c := range []struct{ name, includes, before, says string }{
		{"sleep", "", "usleep(10000);", "the kernel called clock_nanosleep, which the sandbox refuses"},
		{"poll", "#include <poll.h>\n", "poll(0, 0, 10);", "the kernel called poll"},
		{"futex", "#include <sys/syscall.h>\n", "struct timespec t = {0, 10000000}; int word = 0; syscall(SYS_futex, &word, 0, 0, &t);", "the kernel called futex (to wait)"},
		{"itimer", "#include <sys/time.h>\n", "struct itimerval v = {{0, 100}, {0, 100}}; setitimer(ITIMER_REAL, &v, 0);", "the kernel called setitimer"},
		{"fork", "", "if (fork() == 0) for (;;) ;", "the kernel called clone"},
		{"thread", "#include <pthread.h>\nstatic void *spin(void *p) { for (;;) ; }\n", "pthread_t id; pthread_create(&id, 0, spin, 0);", "which the sandbox refuses"},
		{"wakes its launcher", "", "kill(getppid(), SIGCONT);", "the kernel called getppid"},
		{"memfd", "#include <sys/mman.h>\n", "memfd_create(\"x\", 0);", "the kernel called memfd_create"},
		{"file in shared memory", "#include <fcntl.h>\n", "open(\"/dev/shm/memo\", O_CREAT | O_RDWR, 0600);", "the kernel called openat"},
		{"proc", "", "fopen(\"/proc/self/maps\", \"r\");", "the kernel called openat"},
		{"maps the memory again", "#include <sys/mman.h>\n", "mmap(0, 4096, 3, MAP_SHARED, 3, 0);", "the kernel called mmap (of a file, or of code)"},
		{"huge pages for later processes", "#include <sys/mman.h>\n", "madvise((void *)(((uintptr_t)x + (2 << 20)) & -(2l << 20)), 2 << 20, 25);", "the kernel called madvise (to change pages for later processes)"},
		{"other pages for later processes", "#include <sys/mman.h>\n", "madvise((void *)(((uintptr_t)y + 4096) & ~4095ul), 4096, MADV_REMOVE);", "the kernel called madvise"},
		{"ptrace", "#include <sys/ptrace.h>\n", "ptrace(PTRACE_TRACEME, 0, 0, 0);", "the kernel called ptrace"},
		{"reads its neighbours", "#include <sys/uio.h>\n", "char b; struct iovec l = {&b, 1}, r = {(void *)x, 1}; process_vm_readv(2, &l, 1, &r, 1, 0);", "the kernel called process_vm_readv"},
		{"priority", "#include <sys/resource.h>\n", "setpriority(PRIO_PROCESS, 0, -20);", "the kernel called setpriority"},
		{"affinity", "#include <sched.h>\n", "cpu_set_t s; CPU_ZERO(&s); CPU_SET(1, &s); sched_setaffinity(0, sizeof s, &s);", "the kernel called sched_setaffinity"},
		{"limits", "#include <sys/resource.h>\n", "struct rlimit r = {1 << 30, 1 << 30}; setrlimit(RLIMIT_AS, &r);", "the kernel called prlimit64"},
		{"second calling convention", "", "__asm__ volatile(\"int $0x80\" : : \"a\"(20) : \"memory\");", "the kernel crashed: bad system call (SIGSYS)"},
		{"third calling convention", "#include <sys/syscall.h>\n", "syscall(0x40000000 + 39);", "which the sandbox refuses"},
		{"steals the next command", "", "char b; read(4, &b, 1);", "the kernel did not return within 2s"},
		{"endless output", "", "for (;;) write(1, x, 4096);", "the kernel did not return within 2s"},
		{"unmaps its memory", "#include <sys/mman.h>\n", "munmap((void *)((uintptr_t)x & ~4095ul), 1 << 20);", "the kernel crashed: segmentation fault (SIGSEGV)"},
		{"forges a refusal", "", "write(5, \"x\", 1); for (;;) ;", "the kernel called something, which the sandbox refuses"},
		{"reads its launcher's clock", "#include <sys/syscall.h>\n", "struct timespec t; for (int pid = 1; pid < 9; pid++) syscall(SYS_clock_gettime, ~pid << 3 | 2, &t);", "the kernel called clock_gettime"},
		{"looks at a file by a new call", "#include <sys/stat.h>\n", "struct statx s; statx(-100, \"/kernel\", 0, 0x7ff, &s);", "the kernel called statx"},
		{"looks at a file system", "#include <sys/vfs.h>\n", "struct statfs s; statfs(\"/\", &s);", "which the sandbox refuses"},
		{"sends itself a signal", "", "raise(SIGUSR1);", "the kernel called tgkill"},
		{"talks out of turn", "", "write(5, \"?\", 1);", "an answer that was not asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := "#define _GNU_SOURCE\n" + c.includes + work + "void scale(const float *x, float *y, int32_t N) { " + c.before + " work(x, y, N); }\n"
			if c.name == "thread" {
				source = "#define _GNU_SOURCE\n" + work + c.includes + "void scale(const float *x, float *y, int32_t N) { " + c.before + " work(x, y, N); }\n"
			}
			_, v := a.gate(t, strings.ReplaceAll(c.name, " ", "-"), source)
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got  %s (%s): %q\nwant …%q…", v.Outcome, v.Reason, v.Summary, c.says)
			}
		})
	}
}

// The rest of what would be of use for that is on neither list, whatever its
// arguments.
func TestNeverAllowed(t *testing.T) {
	lists := map[string][]sandbox.Call{"kernel": kernelCalls(1), "launcher": launcherCalls(1)}
	for name, calls := range lists {
		for _, number := range []uint32{
			unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_PWAIT,
			unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_SCHED_YIELD, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMER_CREATE,
			unix.SYS_SETITIMER, unix.SYS_EVENTFD2, unix.SYS_SIGNALFD4, unix.SYS_CLONE3, unix.SYS_EXECVEAT, unix.SYS_KILL, unix.SYS_TKILL,
			unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV,
			unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_OPENAT2, unix.SYS_PWRITE64, unix.SYS_FCNTL, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
			unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
			unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_MQ_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_SETUP,
			unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SETPRIORITY, unix.SYS_SETRLIMIT,
			unix.SYS_PRCTL, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_UNSHARE, unix.SYS_MOUNT,
		} {
			if slices.ContainsFunc(calls, func(c sandbox.Call) bool { return c.Number == uintptr(number) }) {
				t.Errorf("the %s may call %s", name, callName(number))
			}
		}
	}
	// These the launcher needs, and the kernel must not have.
	for _, number := range []uintptr{
		unix.SYS_CLONE, unix.SYS_WAIT4, unix.SYS_OPENAT, unix.SYS_EXECVE, unix.SYS_SECCOMP, unix.SYS_RT_SIGACTION, unix.SYS_PRLIMIT64, unix.SYS_PREAD64, unix.SYS_CLOSE,
	} {
		if slices.ContainsFunc(kernelCalls(1), func(c sandbox.Call) bool { return c.Number == number }) {
			t.Errorf("the kernel may call %s", callName(uint32(number)))
		}
	}
}

// What a kernel may do, beside computing: allocate, sort, print, look at a clock.
func TestAllowedCalls(t *testing.T) {
	a := newArena(t, correctOnly)
	for name, before := range map[string]string{
		"allocates": "char *p = malloc(40 << 20); memset(p, 1, 40 << 20); p = realloc(p, 80 << 20); p[1 << 20] = 2; free(p);",
		"maps":      "char *p = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); p[4096] = 1; munmap(p, 1 << 20);",
		"advises":   "char *p = mmap(0, 8 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); if (madvise(p, 8 << 20, MADV_HUGEPAGE) || madvise(p, 8 << 20, MADV_DONTNEED) || madvise(p, 8 << 20, MADV_FREE)) abort();",
		"sorts":     "float *p = malloc(400000); memset(p, 0, 400000); qsort(p, 100000, 4, compare); free(p);",
		"prints":    "printf(\"%f\\n\", x[0]); fflush(stdout); fprintf(stderr, \"%f\\n\", x[0]);",
		"clocks":    "struct timespec t; clock_gettime(CLOCK_REALTIME, &t); time(0);",
		// Shared or not, more than the limit cannot be had.
		"is greedy": "if (mmap(0, 1600l << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED || malloc(1600l << 20)) abort();",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "#define _GNU_SOURCE\n#include <sys/mman.h>\n" + work + "static int compare(const void *a, const void *b) { return memcmp(a, b, 4); }\n" +
				"void scale(const float *x, float *y, int32_t N) { static int once; if (!once++) { " + before + " } work(x, y, N); }\n"
			_, v := a.gate(t, strings.ReplaceAll(name, " ", "-"), source)
			for _, r := range v.Gates {
				if r.Gate == "correctness" && r.Status != gates.Passed {
					t.Error(r.Text)
				}
			}
		})
	}
}

// These compute right answers, and try to have been faster than they are. None may
// pass, and each is judged like the kernel that it is.
func TestFasterOnlyOnPaper(t *testing.T) {
	long.Test(t)
	a := newArena(t, andFaster)
	for _, c := range []struct {
		name   string
		reason []gates.Reason
	}{
		{"memo", []gates.Reason{gates.ReasonTooSlow, gates.ReasonInconclusive}},
		{"unclocked", []gates.Reason{gates.ReasonTooSlow, gates.ReasonInconclusive}},
		{"answers-early", []gates.Reason{gates.ReasonTooSlow, gates.ReasonInconclusive, gates.ReasonCorrectness}},
		{"launcher-answers", []gates.Reason{gates.ReasonCorrectness}},
		{"keeps-behind-the-slots", []gates.Reason{gates.ReasonCorrectness}},
		{"keeps-in-the-table", []gates.Reason{gates.ReasonCorrectness}},
		{"skips-when-hurried", []gates.Reason{gates.ReasonCorrectness}},
		{"counts-its-launches", []gates.Reason{gates.ReasonCorrectness}},
		{"aborts-later", []gates.Reason{gates.ReasonCorrectness}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, v := a.gate(t, c.name, "#define _GNU_SOURCE\n"+work+attackSource(t, c.name+".c"))
			if v.Outcome != gates.Defer || !slices.Contains(c.reason, v.Reason) {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// A kernel whose first launch does what the others of a batch are spared looks fast
// in a batch. The first launch of a process shows it.
func TestOneLaunchForAll(t *testing.T) {
	long.Test(t)
	a := newArena(t, andFaster)
	e, v := a.decide(t, "one-for-all", work+`
void scale(const float *x, float *y, int32_t N)
{
    static int prepared;
    if (!prepared++)
        for (int i = 0; i < 3; i++)
            work(x, y, N);
    for (int i = 0; i < N; i++)
        y[i] = 2 * x[i];
}
`)
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonSuspicious || !strings.Contains(v.Summary, "it does work that later launches skip") && !strings.Contains(v.Summary, "work that the others skip") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if s := e.Performance.Rounds[0].Series[0]; s.Batch < 6 {
		t.Errorf("a batch of %d shows nothing", s.Batch)
	}
}

// After all that, a good kernel is measured as ever.
func TestGoodKernelAfterwards(t *testing.T) {
	a := newArena(t, andFaster)
	for _, bad := range []string{"fork(); for (;;) ;", "abort();", "usleep(1);"} {
		a.gate(t, "bad"+bad[:4], work+"void scale(const float *x, float *y, int32_t N) { "+bad+" }")
	}
	e, v := a.decide(t, "good", work+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }")
	if v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if len(s.Wall) != len(s.Nanos) || s.Worst.Bad != 0 || s.AgainstBaseline.Bad != 0 || s.Referenced == 0 {
				t.Errorf("a good kernel's series is not clean: %+v", s)
			}
			if single := s.Single; single == nil || single.Launches != min(s.Batch, maxSingle) || len(single.MeanBaseline) != len(single.Baseline) || len(single.MeanCandidate) != len(single.Candidate) {
				t.Errorf("single launches of batches of %d: %+v", s.Batch, single)
			}
		}
	}
}

// A kernel finds the same name, arguments and environment whichever side it is: here one that is wrong where any of them names a side.
func TestSidesHaveOneName(t *testing.T) {
	a := newArena(t, correctOnly)
	source := "#define _GNU_SOURCE\n#include <errno.h>\n" + work + `
extern char **environ;
static int told(void)
{
    if (strcmp(program_invocation_name, "/kernel")) return 1;
    for (char **e = environ; *e; e++)
        if (strstr(*e, "baseline") || strstr(*e, "candidate")) return 1;
    for (const char *p = environ[0]; p < environ[0] + 4096 && *(const volatile char *)p != '/'; p++) // the file's name lies behind the environment
        if (!strncmp(p, "candidate", 9) || !strncmp(p, "baseline", 8)) return 1;
    return 0;
}
void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = told() ? 0 : 2 * x[i]; }
`
	sample, err := tensor.NewProblem(a.manifest, a.manifest.Shapes[0], nil, "zero", 0)
	if err != nil {
		t.Fatal(err)
	}
	a.baseline = a.compile(t, "baseline-again", stub(a.manifest.CPrototype(a.manifest.Entry), a.manifest.Entry, sample.Args, 1), source)
	if _, v := a.gate(t, "candidate", source); v.Outcome != gates.Pass || !strings.Contains(fmt.Sprint(v.Gates), "bit-identical to the baseline") {
		t.Errorf("%s (%s): %s %+v", v.Outcome, v.Reason, v.Summary, v.Gates)
	}
}
