package sandbox

import "golang.org/x/sys/unix"

// pathCalls are the calls that reveal whether a path exists, or what is there.
var pathCalls = map[uintptr]pathCall{
	unix.SYS_OPENAT: {0, 1}, unix.SYS_OPENAT2: {0, 1}, unix.SYS_FSTATAT: {0, 1}, unix.SYS_STATX: {0, 1},
	unix.SYS_FACCESSAT: {0, 1}, unix.SYS_FACCESSAT2: {0, 1}, unix.SYS_READLINKAT: {0, 1},
	unix.SYS_SYMLINKAT: {1, 0}, unix.SYS_LINKAT: {0, 1}, unix.SYS_CHDIR: {-1, 0}, unix.SYS_STATFS: {-1, 0},
	unix.SYS_EXECVE: {-1, 0}, unix.SYS_EXECVEAT: {0, 1}, unix.SYS_GETXATTR: {-1, 0}, unix.SYS_LGETXATTR: {-1, 0},
	unix.SYS_LISTXATTR: {-1, 0}, unix.SYS_LLISTXATTR: {-1, 0}, unix.SYS_UTIMENSAT: {0, 1}, unix.SYS_INOTIFY_ADD_WATCH: {-1, 1},
}
