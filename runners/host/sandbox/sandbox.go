// Package sandbox runs one untrusted program (a compiler, a kernel's host code, a benchmark
// harness) so that it can read no secret, reach no network, outlive no deadline and exhaust no
// host. It does not judge the program, and it does not hide the machine's speed: the program can
// still burn the CPU time it is given.
//
// The program gets new namespaces (user, mount, pid, net, ipc, uts, cgroup) and a root that
// contains only the paths it was given. Landlock and a system-call filter enforce the same limits
// again. The program has resource limits and no capability except the one named below. This needs
// no privilege, no setuid helper and no cgroup. The binary starts itself again as the first process
// inside. There this package takes over before main runs.
//
// Two things differ from what bind mounts would give. First, a Write path is a private copy in
// memory, so that Limits.Disk holds whatever the program does. Only regular files and directories
// are copied back: a symbolic link that the program planted for a reader to follow never reaches
// the host. Second, when the caller is root, the program runs as nobody, because the Linux kernel
// does not count root's processes. CAP_DAC_OVERRIDE lets it read whatever root may read in the
// paths it sees; it is useless outside them.
//
// No limit here counts memory that is shared, filled and then unmapped, or, with devices, memory in
// a memfd; only Spec.Calls can prevent both. The program is therefore the kernel's first choice
// when memory runs out.
package sandbox

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// A Spec says what to run and what the program may access. Paths are absolute.
type Spec struct {
	Args []string // the program and its arguments; a bare name is searched in Env's PATH, inside
	Dir  string   // the working directory inside; /tmp when empty
	Env  []string // the whole environment

	// Read lists files and directories that are visible read-only at the same path. Sockets in them
	// cannot be connected to.
	Read []string
	// Places are files and directories that are visible at a different path than the host's. If one
	// place lies within another, the outer one must have a directory there.
	Places []Place
	// Write lists existing directories. The program changes a private copy, which is copied back
	// unless a limit or the caller killed the program.
	Write []string
	// Devices may be read, written and controlled, such as /dev/nvidia0. With any device, the
	// program may also create Unix sockets, so that it can connect to a socket in a Read path, and
	// write below /proc. GPU drivers need both.
	Devices []string

	Host string // the host name inside; "sandbox" when empty

	// Watch records in Result.Lookups which paths the program asked for. It costs a few
	// microseconds for each path.
	Watch bool

	// ExtraFiles are inherited as descriptors 3, 4, …; the program inherits no others. Seal a memfd
	// among them against growing, and also against writing if it is meant to be read only: the mode
	// in which it was opened does not restrict the program. After Start, close the caller's copy of
	// a pipe's far end to see end of file.
	ExtraFiles []*os.File

	// Calls, if not empty, are the only system calls that the program may make; all others return
	// EPERM. If it is empty, the program may make all calls except those that are known from
	// sandbox escapes. The memory limit counts only mapped memory. A list without files, memfds and
	// similar calls leaves the program no other memory.
	Calls []Call

	// Stdout and Stderr receive the program's output; nil discards it. If both are the same writer,
	// writes to it never overlap.
	Stdout, Stderr io.Writer

	Limits Limits
}

// A Place is a path of the host, and the path at which the program finds it. Without a path of the
// host it is an empty folder that the program may write to, and that ends with the program.
type Place struct {
	Host, Inside string
	Write        bool // an existing directory, treated like those in Spec.Write
}

// Limits bound the program. A zero field means the default in parentheses.
type Limits struct {
	// Wall is the time from the program's start to its end; then everything inside is killed (1
	// min).
	Wall time.Duration
	// Memory bounds the resident memory of all processes together, and what each process may map
	// for writing (4 GiB).
	Memory int64

	// Overcommit lets a process map more than Memory as long as it does not touch it, as
	// sanitizers, race detectors and CUDA do. The kernel then refuses no allocation. Instead a
	// watch kills a program that holds more than Memory. It looks every 20 to 200 ms, more often
	// the less memory is left.
	Overcommit bool

	AddressSpace int64 // everything that one process maps, shared or not, touched or not (none)

	Disk      int64 // /tmp and all Write paths together; it is memory too (1 GiB)
	FileSize  int64 // one file (Disk)
	Processes int   // processes and threads at once (256)
	OpenFiles int   // descriptors of one process (1024)
	Output    int64 // Stdout and Stderr together; then everything inside is killed (1 MiB)
}

func (l Limits) withDefaults() Limits {
	l.Wall = orDefault(l.Wall, time.Minute)
	l.Memory = orDefault(l.Memory, 4<<30)
	l.Disk = orDefault(l.Disk, 1<<30)
	l.FileSize = orDefault(l.FileSize, l.Disk)
	l.Processes = orDefault(l.Processes, 256)
	l.OpenFiles = orDefault(l.OpenFiles, 1024)
	l.Output = orDefault(l.Output, 1<<20)
	return l
}

func orDefault[T int | int64 | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// A Result says how the program ended. It is filled in however the program ended. Wait's error
// reports only failures of the sandbox itself.
type Result struct {
	ExitCode int            // -1 if a signal ended the program
	Signal   syscall.Signal // 0 if the program exited

	TimedOut        bool
	OutputTruncated bool
	OutOfMemory     bool // the watch found more than Limits.Memory resident
	// Refused lists each limit that was hit and each output left behind, as text for people.
	Refused []string

	// Lookups lists each path that the program asked for, whether or not it existed: absolute,
	// clean, sorted. Symbolic links are not followed. LookupsCut means that there were more.
	// Opened is the part of them that a program may have read or, if it is a folder, listed; on the
	// others it asked for facts such as the size.
	Lookups    []string
	Opened     []string
	LookupsCut bool
}

// OK reports whether the program ended with exit code 0 and within every limit that kills.
func (r Result) OK() bool { return r.ExitCode == 0 && r.Signal == 0 }

// sizeText formats a byte count in the units in which limits are usually given.
func sizeText(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/(1<<10), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.4g %s", v, units[u])
}
