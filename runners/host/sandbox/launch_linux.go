package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runLaunch drops all its privileges and becomes the program. Everything happens on one thread,
// because execve keeps only that thread's state.
func runLaunch() int {
	runtime.LockOSThread()
	socket, err := stageFile()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	replies := gob.NewEncoder(socket)
	send(replies, report{}) // everything needed so far was loaded from the host's root
	var c config
	if err := gob.NewDecoder(socket).Decode(&c); err != nil {
		return 1 // process 1 has died
	}
	if err := c.becomeProgram(); err != nil {
		send(replies, report{Error: err.Error()})
		return 1
	}
	return 0
}

func (c *config) becomeProgram() error {
	// The out-of-memory killer should choose the program first.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("offer the program to the out-of-memory killer: %w", err)
	}
	// The session keyring belongs to the caller. A kernel without keyrings has none to hide.
	if _, _, errno := unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 && errno != unix.ENOSYS {
		return fmt.Errorf("leave the session's keyring: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := c.Layout.landlock(); err != nil {
		return err
	}
	filter, err := c.filter()
	if err != nil {
		return err
	}
	if err := c.IDs.assume(); err != nil {
		return err
	}
	if err := unix.Chdir(c.Dir); err != nil {
		return fmt.Errorf("enter the working directory %s: %w", c.Dir, err)
	}
	path, err := c.program()
	if err != nil {
		return err
	}
	// The program must not see descriptors that the caller itself inherited.
	if err := unix.CloseRange(uint(3+c.Files), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close the caller's files: %w", err)
	}
	end, err := c.lastSteps(filter, path)
	if err == nil && c.Watch {
		err = end.watchLookups(3 + c.Files + 1)
	}
	if err != nil {
		return err
	}
	if step, errno := end.take(); errno != 0 {
		return fmt.Errorf("%s: %w", end.names[step], errno)
	}
	return nil
}

// filter returns the system-call filter of the program. With a list of calls it must also allow
// execve, which starts the program.
func (c *config) filter() (filter, error) {
	if c.Calls == nil {
		return newFilter(c.Layout.devices())
	}
	return Allow(append(c.Calls, Call{Number: unix.SYS_EXECVE}), denied)
}

// ending holds the last steps of the launch part and everything that they need. After the first
// limit is set, the process can get no memory and no new thread. After the filter is installed, a
// thread cannot even wait. So the Go runtime must not need anything from there on.
type ending struct {
	names      []string // names of the steps, for the error
	limits     []rlimit
	watch      *watchStep // nil if Spec.Watch is not set
	filter     unix.SockFprog
	file       *byte
	argv, envv **byte
}

// lastSteps prepares everything in the last steps that needs memory.
func (c *config) lastSteps(f filter, path string) (*ending, error) {
	e := &ending{limits: c.Limits.rlimits(), filter: unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}}
	for _, l := range e.limits {
		e.names = append(e.names, fmt.Sprintf("limit the %s to %d", l.name, l.most))
	}
	e.names = append(e.names, "filter the system calls", "run "+path)
	if path == "" {
		return e, nil
	}
	var err error
	if e.file, err = syscall.BytePtrFromString(path); err != nil {
		return nil, fmt.Errorf("run %q: %w", path, err)
	}
	argv, err := syscall.SlicePtrFromStrings(c.Args)
	if err != nil {
		return nil, fmt.Errorf("pass the arguments %q: %w", c.Args, err)
	}
	envv, err := syscall.SlicePtrFromStrings(c.Env)
	if err != nil {
		return nil, fmt.Errorf("pass the environment: %w", err)
	}
	e.argv, e.envv = &argv[0], &envv[0]
	return e, nil
}

// watchLookups makes the kernel report lookups to process 1. The socket's descriptor follows the
// launch part's own.
func (e *ending) watchLookups(socket int) error {
	f, err := watchFilter()
	if err == nil {
		e.watch = newWatchStep(f, socket)
	}
	return err
}

// take runs the last steps. It returns the step that failed; if there is no program to run, it
// returns without an error. The Go runtime has no point at which it could take the thread away:
// take calls nothing that can grow the stack, and startLaunch has switched off preemption by
// signals.
//
//go:nosplit
func (e *ending) take() (step int, errno syscall.Errno) {
	for i := range e.limits {
		l := &e.limits[i]
		pair := [2]uint64{l.most, l.most} // soft and hard
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(l.resource), uintptr(unsafe.Pointer(&pair)), 0, 0, 0); errno != 0 {
			return i, errno
		}
	}
	if e.watch != nil {
		if errno := e.watch.take(); errno != 0 {
			return len(e.limits), errno
		}
	}
	// Without the flag, older kernels enable speculation mitigations that slow the program down,
	// which would show in measurements.
	_, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&e.filter)))
	if errno != 0 || e.file == nil {
		return len(e.limits), errno
	}
	_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(e.file)), uintptr(unsafe.Pointer(e.argv)), uintptr(unsafe.Pointer(e.envv)))
	return len(e.limits) + 1, errno
}

// program finds the path of the file to run, inside the sandbox. A probe runs none.
func (c *config) program() (string, error) {
	if len(c.Args) == 0 {
		return "", nil
	}
	name := c.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		if p := filepath.Join(dir, name); unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("find %s in %s: %w; is it below a read path?", name, path, os.ErrNotExist)
}

type rlimit struct {
	name     string
	resource int
	most     uint64
}

func (l Limits) rlimits() []rlimit {
	limits := []rlimit{
		{"core dump", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)},
		{"processes", unix.RLIMIT_NPROC, uint64(l.Processes)},
	}
	if l.AddressSpace > 0 {
		limits = append(limits, rlimit{"address space", unix.RLIMIT_AS, uint64(l.AddressSpace)})
	}
	if !l.Overcommit {
		limits = append(limits, rlimit{"memory", unix.RLIMIT_DATA, uint64(l.Memory)})
	}
	return limits
}

// assume switches this thread to the program's user, and drops every capability except the one that
// reads root's files.
func (id identity) assume() error {
	var keep uint32
	if id.Nobody {
		keep = 1 << unix.CAP_DAC_OVERRIDE
	}
	// Dropping from the bounding set needs a capability itself, so the other sets are cleared
	// afterwards.
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if id.Nobody {
		err := errors.Join(
			unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0),
			raw(unix.SYS_SETGROUPS, 0, 0, 0),
			raw(unix.SYS_SETRESGID, nobody, nobody, nobody),
			raw(unix.SYS_SETRESUID, nobody, nobody, nobody),
		)
		if err != nil {
			return fmt.Errorf("become nobody: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop the ambient capabilities: %w", err)
	}
	sets := [2]unix.CapUserData{{Effective: keep, Permitted: keep, Inheritable: keep}}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	if keep == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_DAC_OVERRIDE, 0, 0); err != nil {
		return fmt.Errorf("keep the capability to read root's files: %w", err)
	}
	return nil
}

// raw makes a system call for this thread only. Package syscall would make these calls for all
// threads.
func raw(trap, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(trap, a, b, c); errno != 0 {
		return errno
	}
	return nil
}
