package cpu

import "golang.org/x/sys/unix"

// The calls of the loader on this architecture.
var loaderCalls = []uintptr{unix.SYS_ACCESS, unix.SYS_ARCH_PRCTL, unix.SYS_READLINK}

const fstatat = unix.SYS_NEWFSTATAT

// oldCallNames has calls that only this architecture has.
var oldCallNames = map[uint32]string{
	unix.SYS_POLL: "poll", unix.SYS_SELECT: "select", unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_PAUSE: "pause", unix.SYS_ALARM: "alarm",
	unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork", unix.SYS_OPEN: "open", unix.SYS_PIPE: "pipe", unix.SYS_EVENTFD: "eventfd", unix.SYS_DUP2: "dup2",
}
