package sandbox

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// refusedCalls return EPERM. The list has calls that namespaces and limits leave open, and
// interfaces with a history of vulnerabilities that no compiler or benchmark needs. A call that
// another mechanism refuses anyway is listed only if it makes a large part of the kernel reachable.
var refusedCalls = []uintptr{
	// A network namespace does not restrict vsock, and a program could connect to a socket file in
	// a Read path. Socket pairs are allowed.
	unix.SYS_SOCKET,
	// Unnamed memory that shows in no mapping.
	unix.SYS_SHMGET,
	// Files by handle instead of by path.
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	// Access to other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	// Namespaces and mounts.
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR,
	// Keys.
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	// Large interfaces.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// heldApart are also refused if there is no device. They create memory that no process maps and
// that no limit counts. A GPU driver needs some.
var heldApart = []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET}

// auditArch is the kernel's number for the machine's native calling convention.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32Bit marks calls of the x32 convention on amd64, which has its own numbers.
const x32Bit = 0x40000000

const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfAnswer  = unix.BPF_RET | unix.BPF_K

	callOffset, archOffset, argumentOffset = 0, 4, 16 // offsets in the kernel's struct seccomp_data
)

// A filter is a BPF program that the kernel runs on each system call.
type filter []unix.SockFilter

// filterHead returns the start of every filter. It kills a process that uses a foreign calling
// convention, and loads the call's number.
func filterHead() (filter, error) {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("filter the system calls: no filter is known for %s; use amd64 or arm64", runtime.GOARCH)
	}
	return filter{
		{Code: bpfLoad, K: archOffset},
		{Code: bpfEqual, K: arch, Jt: 1},
		{Code: bpfAnswer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: bpfLoad, K: callOffset},
	}, nil
}

// newFilter returns the filter of a program without a list of calls. With devices the program may
// create Unix sockets, but no others, and memfds: the GPU driver does not start without them.
func newFilter(devices bool) (filter, error) {
	f, err := filterHead()
	if err != nil {
		return nil, err
	}
	refused := refusedCalls
	if !devices {
		refused = slices.Concat(refusedCalls, heldApart)
	}
	if devices {
		f = append(f,
			unix.SockFilter{Code: bpfEqual, K: unix.SYS_SOCKET, Jf: 4},
			unix.SockFilter{Code: bpfLoad, K: argumentOffset},
			unix.SockFilter{Code: bpfEqual, K: unix.AF_UNIX, Jf: 1},
			unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW},
			unix.SockFilter{Code: bpfAnswer, K: denied},
		)
	}
	f = append(f, unix.SockFilter{Code: bpfAtLeast, K: x32Bit, Jt: uint8(len(refused) + 1)})
	// Each match jumps over the rest of the list and the permission to the refusal.
	for i, call := range refused {
		f = append(f, unix.SockFilter{Code: bpfEqual, K: uint32(call), Jt: uint8(len(refused) - i)})
	}
	return append(f,
		unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: bpfAnswer, K: denied},
	), nil
}
