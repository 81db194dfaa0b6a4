package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock enforces the same access rules as the mounts, by a different mechanism of the kernel.
// The code makes the system calls directly because they must bind only the calling thread.

const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockWrite = landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	landlockDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// landlockOnFile are the rights that a rule about a single file may have.
	landlockOnFile = landlockDevice | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockABI returns the kernel's Landlock version, 0 for none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlockHandled returns every right that a Landlock version can forbid, as far as this package
// knows it.
func landlockHandled(abi int) unix.LandlockRulesetAttr {
	rights := 13 // version 1
	switch {
	case abi >= 9:
		rights = 17
	case abi >= 5:
		rights = 16
	case abi >= 3:
		rights = 15
	case abi >= 2:
		rights = 14
	}
	h := unix.LandlockRulesetAttr{Handled_access_fs: 1<<rights - 1}
	if abi >= 4 {
		h.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		h.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return h
}

// landlock restricts this thread to the layout. On a kernel without Landlock only the mounts
// restrict it; Probe reports that.
func (l layout) landlock() error {
	abi := landlockABI()
	if abi == 0 {
		return nil
	}
	handled := landlockHandled(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return fmt.Errorf("make the Landlock rules: %w", errno)
	}
	defer unix.Close(int(fd))

	allow := func(path string, rights uint64, dir bool) error {
		if !dir {
			rights &= landlockOnFile
		}
		if err := landlockAllow(int(fd), path, rights&handled.Handled_access_fs); err != nil {
			return fmt.Errorf("allow %s by Landlock: %w", path, err)
		}
		return nil
	}
	proc := uint64(landlockRead)
	if l.devices() {
		// The GPU driver sets thread names in /proc/self, and does not start if it cannot.
		proc |= unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	err := errors.Join(allow("/tmp", landlockWrite, true), allow("/proc", proc, true))
	for _, d := range standardDevices {
		err = errors.Join(err, allow(d, landlockDevice&^unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, false))
	}
	for _, m := range l.Mounts {
		rights := [...]uint64{readOnly: landlockRead, scratch: landlockWrite, empty: landlockWrite, device: landlockDevice}[m.Kind]
		err = errors.Join(err, allow(m.Path, rights, m.Dir))
	}
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("apply the Landlock rules: %w", errno)
	}
	return nil
}

func landlockAllow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	// The kernel's struct is packed. These two fields are its first 12 bytes here too.
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
