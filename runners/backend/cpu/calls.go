package cpu

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// Two lists say which system calls a kernel's process may make. The sandbox binds the launcher,
// which starts the process, to the first list. The process binds itself to the second before the
// kernel's first instruction: it can only compute in its own memory and answer. It cannot wait,
// sleep or set a timer, cannot start a process, and cannot open, make or map a file. A kernel that
// declares threads may start them and wait for them.

// forkFlags are the flags of the launcher's clone: no thread, and no child that shares memory with its
// parent. The child is not told its process id either, which fork leaves in its memory.
const forkFlags = uint64(unix.SIGCHLD)

// libraryFork is the flags of fork's clone, in glibc and in musl.
const libraryFork = forkFlags | unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID

// readOnly is the flags of open that a reader does not need.
const readOnly = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_TMPFILE&^unix.O_DIRECTORY

func plain(numbers ...uintptr) []sandbox.Call {
	var calls []sandbox.Call
	for _, n := range numbers {
		calls = append(calls, sandbox.Call{Number: n})
	}
	return calls
}

// only allows a call if the masked bits of one argument have the value.
func only(number uintptr, index int, mask, value uint64) sandbox.Call {
	return sandbox.Call{Number: number, When: []sandbox.Argument{{Index: index, Mask: mask, Value: value}}}
}

const descriptor = 0xFFFFFFFF // all bits of one

// advices are the values of madvise that a kernel may use. Their effects end with the process.
// Others change the pages of the shared memory for all later processes: MADV_COLLAPSE makes huge
// pages of them, which the baseline does not have, and MADV_REMOVE has them allocated again
// elsewhere.
var advices = []uint64{
	unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED, unix.MADV_FREE,
	unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, unix.MADV_DONTDUMP,
	unix.MADV_GUARD_INSTALL, unix.MADV_GUARD_REMOVE, // of the stacks of threads
}

// computing lists what the C library needs for memory, mathematics and output. A side must not learn
// from a call which side it is, nor how many samples it had:
//   - brk, mmap, munmap, mremap, mprotect and madvise show only addresses, which are random;
//   - rt_sigprocmask and rt_sigreturn change only the process itself, and no signal can be sent;
//   - clock_gettime and gettimeofday cannot be refused, because the C library reads the time without
//     a call. Only the clocks of the system and of the process itself are allowed: the clock of the
//     launcher, which has a process id, would count its samples;
//   - getrandom gives nothing;
//   - sysinfo, which qsort asks for the size of the memory, has figures of the whole machine, which
//     are those of all sides;
//   - a write to the output goes to nobody, and ioctl only says that it is no terminal.
func computing() []sandbox.Call {
	calls := plain(
		unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_EXIT_GROUP, unix.SYS_EXIT,
		unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_SYSINFO,
	)
	for _, advice := range advices {
		calls = append(calls, only(unix.SYS_MADVISE, 2, 0xFFFFFFFF, advice))
	}
	for _, output := range []uint64{1, 2} {
		terminal := only(unix.SYS_IOCTL, 0, descriptor, output)
		terminal.When = append(terminal.When, sandbox.Argument{Index: 1, Mask: 0xFFFFFFFF, Value: unix.TCGETS})
		calls = append(calls, terminal, only(unix.SYS_WRITE, 0, descriptor, output), only(unix.SYS_WRITEV, 0, descriptor, output))
	}
	return append(calls,
		only(unix.SYS_CLOCK_GETTIME, 0, 0xFFFFFFF0, 0), // the clock of another process has a negative number
		only(unix.SYS_FUTEX, 1, 0x7F, 1),               // wake only: waiting would be sleeping
		only(unix.SYS_WRITE, 0, descriptor, fdReply),
	)
}

// aborted is what the trap of abort's signal has in si_errno.
const aborted = 1

// unseen lists the calls of the C library whose answers would show a kernel which side it is. They do
// nothing, and the library does without them:
//   - the process id counts the samples of a side. The C library asks for it to abort;
//   - the facts about a file have its age, and the number of the sandbox's file system. The C library
//     asks whether it prints to a terminal.
func unseen() []sandbox.Call {
	abort := only(unix.SYS_TGKILL, 2, 0xFFFFFFFF, uint64(unix.SIGABRT))
	abort.Answer = sandbox.TrappedAs(aborted)
	return []sandbox.Call{
		{Number: unix.SYS_GETPID, Answer: sandbox.Nothing}, {Number: unix.SYS_GETTID, Answer: sandbox.Nothing}, abort,
		{Number: unix.SYS_FSTAT, Answer: sandbox.Absent}, {Number: fstatat, Answer: sandbox.Absent},
	}
}

// threadFlags are the flags of a new thread's clone, in glibc: it shares everything with the
// process, and its time counts with it.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
	unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID

// setxid is the signal that the C library reserves for itself when there are threads; nobody may
// send it.
const setxid = 33

// threading lists what a kernel with declared threads needs to start threads and to wait for them.
// Its time is wall time, so sleeping gains nothing.
func threading(threads int) []sandbox.Call {
	if threads < 2 {
		return nil
	}
	return append(plain(unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY),
		only(unix.SYS_CLONE, 0, 0xFFFFFFFF, threadFlags),
		only(unix.SYS_RT_SIGACTION, 0, 0xFFFFFFFF, setxid),
		sandbox.Call{Number: unix.SYS_CLONE3, Answer: sandbox.Absent}, // its arguments are in memory, which a filter cannot read
	)
}

// kernelCalls returns the calls that the process of a kernel with so many threads may make once it
// is ready.
func kernelCalls(threads int) []sandbox.Call {
	return append(slices.Concat(computing(), unseen(), threading(threads)),
		only(unix.SYS_READ, 0, descriptor, fdCommand),
		only(unix.SYS_MPROTECT, 2, unix.PROT_EXEC, 0),
		sandbox.Call{Number: unix.SYS_MMAP, When: []sandbox.Argument{
			{Index: 2, Mask: unix.PROT_EXEC}, {Index: 3, Mask: unix.MAP_ANONYMOUS, Value: unix.MAP_ANONYMOUS},
		}},
	)
}

// launcherCalls returns the calls of the kernel's process, and those to load a program, to start
// processes one at a time, and to bind them. The launcher's filter also binds its children, so it
// includes the calls of threads if they have some. No code of the kernel runs in the launcher.
func launcherCalls(threads int) []sandbox.Call {
	calls := append(append(computing(), threading(threads)...), plain(loaderCalls...)...)
	return append(append(calls, plain(
		unix.SYS_READ, unix.SYS_CLOSE, unix.SYS_PREAD64, unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_SET_TID_ADDRESS,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_UNAME, unix.SYS_RT_SIGACTION, unix.SYS_WAIT4, unix.SYS_SECCOMP,
		unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_FSTAT, fstatat,
	)...),
		only(unix.SYS_TGKILL, 2, 0xFFFFFFFF, uint64(unix.SIGABRT)),
		only(unix.SYS_OPENAT, 2, readOnly, unix.O_RDONLY),
		only(unix.SYS_PRLIMIT64, 2, ^uint64(0), 0), // to read a limit
		only(unix.SYS_CLONE, 0, 0xFFFFFFFF, forkFlags),
		only(unix.SYS_CLONE, 0, 0xFFFFFFFF, libraryFork), // of a library before main
	)
}

// filterText returns the kernel's filter as the elements of a C array.
func filterText(threads int) (string, error) {
	program, err := sandbox.Allow(kernelCalls(threads), sandbox.Trapped)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, f := range program {
		fmt.Fprintf(&text, "{%#x, %d, %d, %#x},", f.Code, f.Jt, f.Jf, f.K)
	}
	return text.String(), nil
}

// callNames has the calls that a kernel is most likely to be refused.
var callNames = map[uint32]string{
	unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep", unix.SYS_PPOLL: "ppoll",
	unix.SYS_PSELECT6: "pselect6", unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_EPOLL_CREATE1: "epoll_create1",
	unix.SYS_FUTEX: "futex (to wait)", unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait", unix.SYS_RT_SIGSUSPEND: "rt_sigsuspend",
	unix.SYS_SCHED_YIELD: "sched_yield", unix.SYS_TIMERFD_CREATE: "timerfd_create", unix.SYS_TIMER_CREATE: "timer_create",
	unix.SYS_SETITIMER: "setitimer", unix.SYS_RT_SIGACTION: "rt_sigaction", unix.SYS_EVENTFD2: "eventfd2", unix.SYS_SIGNALFD4: "signalfd4",
	unix.SYS_CLONE: "clone", unix.SYS_CLONE3: "clone3", unix.SYS_EXECVE: "execve", unix.SYS_EXECVEAT: "execveat", unix.SYS_WAIT4: "wait4",
	unix.SYS_KILL: "kill", unix.SYS_TKILL: "tkill", unix.SYS_TGKILL: "tgkill", unix.SYS_PTRACE: "ptrace",
	unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev", unix.SYS_PIDFD_OPEN: "pidfd_open",
	unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2", unix.SYS_CLOSE: "close", unix.SYS_READ: "read", unix.SYS_WRITE: "write",
	unix.SYS_WRITEV: "writev", unix.SYS_PWRITE64: "pwrite64", unix.SYS_PREAD64: "pread64", unix.SYS_IOCTL: "ioctl", unix.SYS_FCNTL: "fcntl",
	unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_DUP: "dup", unix.SYS_DUP3: "dup3", unix.SYS_PIPE2: "pipe2", unix.SYS_SOCKET: "socket",
	unix.SYS_SOCKETPAIR: "socketpair", unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_MEMFD_SECRET: "memfd_secret",
	unix.SYS_SHMGET: "shmget", unix.SYS_SHMAT: "shmat", unix.SYS_USERFAULTFD: "userfaultfd", unix.SYS_IO_URING_SETUP: "io_uring_setup",
	unix.SYS_MADVISE: "madvise (to change pages for later processes)",
	unix.SYS_MMAP:    "mmap (of a file, or of code)", unix.SYS_MPROTECT: "mprotect (to make code)", unix.SYS_MLOCK: "mlock",
	unix.SYS_SCHED_SETSCHEDULER: "sched_setscheduler", unix.SYS_SCHED_SETATTR: "sched_setattr", unix.SYS_SETPRIORITY: "setpriority",
	unix.SYS_SCHED_SETAFFINITY: "sched_setaffinity", unix.SYS_SCHED_GETAFFINITY: "sched_getaffinity", unix.SYS_PRLIMIT64: "prlimit64",
	unix.SYS_SETRLIMIT: "setrlimit", unix.SYS_GETRLIMIT: "getrlimit", unix.SYS_PRCTL: "prctl", unix.SYS_SECCOMP: "seccomp",
	unix.SYS_GETPPID: "getppid", unix.SYS_CLOCK_GETTIME: "clock_gettime (of another process)", unix.SYS_STATX: "statx", unix.SYS_STATFS: "statfs", unix.SYS_GETRUSAGE: "getrusage", unix.SYS_PERF_EVENT_OPEN: "perf_event_open",
}

// callName returns the name of a system call, for people.
func callName(number uint32) string {
	if name, ok := callNames[number]; ok {
		return name
	}
	if name, ok := oldCallNames[number]; ok {
		return name
	}
	return fmt.Sprintf("system call %d", number)
}
