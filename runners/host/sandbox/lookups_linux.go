package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The result of a program depends on the files that it reads, and also on files that it looks for
// and does not find. With Spec.Watch the kernel reports every system call that names a path to
// process 1 before it runs the call. Process 1 records the path and lets the call continue. The
// program cannot detect this.

// maxLookups and maxLookupBytes bound how much is recorded. A compiler asks for a few thousand
// paths.
const (
	maxLookups     = 100_000
	maxLookupBytes = 16 << 20
)

// A pathCall is a system call that names a path.
type pathCall struct {
	// dir is the index of the argument that holds the directory's descriptor; -1 means the working
	// directory.
	dir  int
	path int // index of the argument that points to the path
}

// watchFilter returns a filter that reports calls with a path to process 1 and allows all other
// calls.
func watchFilter() (filter, error) {
	f, err := filterHead()
	if err != nil {
		return nil, err
	}
	for number := range pathCalls {
		f = append(f,
			unix.SockFilter{Code: bpfEqual, K: uint32(number), Jf: 1},
			unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_USER_NOTIF},
		)
	}
	return append(f, unix.SockFilter{Code: bpfAnswer, K: unix.SECCOMP_RET_ALLOW}), nil
}

// A notice is the kernel's struct seccomp_notif.
type notice struct {
	id        uint64
	pid       uint32
	flags     uint32
	call      int32
	arch      uint32
	at        uint64
	arguments [6]uint64
}

// A noticeAnswer is the kernel's struct seccomp_notif_resp.
type noticeAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// lookups records the paths that the program asked for.
type lookups struct {
	listener int
	mu       sync.Mutex
	seen     map[string]bool // whether a call on the path could lead to a list of a folder
	bytes    int
	full     bool
}

// receiveListener receives the descriptor that the launch part sends when its filter is installed.
func receiveListener(socket *os.File) (*lookups, error) {
	defer socket.Close()
	fd := int(socket.Fd())
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, fmt.Errorf("wait for the watch over lookups: %w", err)
	}
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for the watch over lookups: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return nil, nil // the launch part has failed, and reports why
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("take the watch over lookups: %d descriptors, %w", len(fds), err)
	}
	return &lookups{listener: fds[0], seen: map[string]bool{}}, nil
}

// run records paths until no process is left that could name one.
func (l *lookups) run() {
	for {
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno == unix.EINTR || errno == unix.ENOENT { // the process has died
				continue
			}
			return
		}
		if path, ok := n.path(); ok {
			l.note(path, !factCalls[uintptr(n.call)])
		}
		answer := noticeAnswer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		// This fails only if the process has died.
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

func (l *lookups) note(path string, opened bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, ok := l.seen[path]; ok {
		l.seen[path] = was || opened
		return
	}
	if len(l.seen) >= maxLookups || l.bytes+len(path) > maxLookupBytes {
		l.full = true
		return
	}
	l.seen[path] = opened
	l.bytes += len(path)
}

// paths returns all recorded paths in sorted order, and those of them that may have been opened.
// full means that there were more.
func (l *lookups) paths() (list, opened []string, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, open := range l.seen {
		list = append(list, path)
		if open {
			opened = append(opened, path)
		}
	}
	slices.Sort(list)
	slices.Sort(opened)
	return list, opened, l.full
}

// path returns the path that the call names, absolute and as the program sees it. It returns false
// if the path cannot be read: such a call names no file either.
func (n notice) path() (string, bool) {
	call, ok := pathCalls[uintptr(n.call)]
	if !ok {
		return "", false
	}
	path, err := stringAt(int(n.pid), uintptr(n.arguments[call.path]))
	if err != nil || path == "" { // an empty path refers to a descriptor
		return "", false
	}
	if !filepath.IsAbs(path) {
		from := "cwd"
		if call.dir >= 0 && int32(n.arguments[call.dir]) != unix.AT_FDCWD {
			from = fmt.Sprintf("fd/%d", int32(n.arguments[call.dir]))
		}
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", n.pid, from))
		if err != nil || !filepath.IsAbs(dir) {
			return "", false
		}
		path = dir + "/" + path
	}
	return filepath.Clean(path), true
}

// stringAt reads a NUL-terminated string from the memory of another process.
func stringAt(pid int, at uintptr) (string, error) {
	const page = 4096
	var text [2 * page]byte
	// The kernel reads nothing from a range that includes a missing page, so ask for pages one by
	// one.
	first := page - int(at%page)
	remote := []unix.RemoteIovec{{Base: at, Len: first}, {Base: at + uintptr(first), Len: page}}
	local := []unix.Iovec{{Base: &text[0], Len: uint64(first + page)}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(text[:n], 0)
	if end < 0 {
		return "", errors.New("the path has no end")
	}
	return string(text[:end]), nil
}

// A watchStep is the launch part's share of the watch. It installs the filter and sends the
// descriptor that reports the calls to process 1.
type watchStep struct {
	filter  unix.SockFprog
	socket  int
	message unix.Msghdr
	control [24]byte // unix.CmsgSpace(4): the header, then the descriptor
	vector  unix.Iovec
	byte    [1]byte
}

func newWatchStep(f filter, socket int) *watchStep {
	w := &watchStep{filter: unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}, socket: socket}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&w.control[0]))
	header.Level, header.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	header.SetLen(unix.CmsgLen(4))
	w.vector.Base = &w.byte[0]
	w.vector.SetLen(1)
	w.message.Iov, w.message.Iovlen = &w.vector, 1
	w.message.Control = &w.control[0]
	w.message.SetControllen(unix.CmsgSpace(4))
	return w
}

// take installs the filter and sends its descriptor. [ending.take] calls it, under the same
// conditions.
//
//go:nosplit
func (w *watchStep) take() syscall.Errno {
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&w.filter)))
	if errno != 0 {
		return errno
	}
	*(*int32)(unsafe.Pointer(&w.control[16])) = int32(fd)
	_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(w.socket), uintptr(unsafe.Pointer(&w.message)), 0)
	return errno
}
