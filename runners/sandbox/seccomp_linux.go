package sandbox

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// refusedCalls answer EPERM. The list is of what namespaces and limits leave open, and of interfaces with a
// history of holes that no compiler or benchmark needs; a call that the other walls refuse anyway is
// here only if it makes much of the kernel reachable.
var refusedCalls = []uintptr{
	// A network namespace does not hold vsock, and a socket file in a read path can be connected to. Pairs are allowed.
	unix.SYS_SOCKET,
	// Unnamed memory that no mapping shows.
	unix.SYS_SHMGET,
	// Files by number instead of by path.
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	// Other processes.
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

// heldApart are refused as well where there is no device: memory that nothing maps, and no limit sees. A GPU's driver
// makes some.
var heldApart = []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET}

// auditArch is the kernel's number for the machine's own calling convention.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32Bit marks calls of a third convention on amd64, with numbers of its own.
const x32Bit = 0x40000000

const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfAnswer  = unix.BPF_RET | unix.BPF_K

	callOffset, archOffset, argumentOffset = 0, 4, 16 // in the kernel's struct seccomp_data
)

// A filter is a program for the kernel's packet-filter machine that looks at each system call.
type filter []unix.SockFilter

// filterHead kills what calls by another machine's convention, and loads the call's number.
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

// newFilter makes the filter of a program without a list of calls. With devices it may make Unix sockets, and still no
// others, and memfds: the GPU's driver will not start without.
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
