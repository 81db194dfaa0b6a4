package cpu

import "golang.org/x/sys/unix"

const fstatat = unix.SYS_FSTATAT

// The loader and names of calls have nothing of their own on this machine.
var (
	loaderCalls  []uintptr
	oldCallNames map[uint32]string
)
