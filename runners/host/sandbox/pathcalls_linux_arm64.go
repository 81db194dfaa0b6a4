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

// factCalls are those of them that return facts about a path. The others may lead to its content: a
// folder that was opened can be listed.
var factCalls = map[uintptr]bool{
	unix.SYS_FSTATAT: true, unix.SYS_STATX: true, unix.SYS_FACCESSAT: true, unix.SYS_FACCESSAT2: true, unix.SYS_READLINKAT: true,
	unix.SYS_STATFS: true, unix.SYS_GETXATTR: true, unix.SYS_LGETXATTR: true, unix.SYS_LISTXATTR: true, unix.SYS_LLISTXATTR: true,
	unix.SYS_UTIMENSAT: true,
}
