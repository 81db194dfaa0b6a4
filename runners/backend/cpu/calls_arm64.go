package cpu

import "golang.org/x/sys/unix"

const fstatat = unix.SYS_FSTATAT

// This architecture has no special calls.
var (
	loaderCalls  []uintptr
	oldCallNames map[uint32]string
)
