// Package sandbox runs one untrusted program (a compiler, a kernel's host code, a benchmark
// harness) so that it can read no secret, reach no network, outlive no deadline and exhaust no
// host. It does not judge the program, and it does not hide the machine's speed: the program
// can still burn the CPU time it is given.
//
// The program gets namespaces of its own (user, mount, pid, net, ipc, uts, cgroup), a root made
// of the paths it was given and nothing else, Landlock and a system-call filter over the same
// ground, resource limits, and no capability but the one named below. This needs no privilege, no
// setuid helper and no cgroup. The binary starts itself again as the first process inside, where this package takes over
// before anything of main.
//
// Two things differ from what bind mounts would give. A Write path is a private copy in memory,
// so that Limits.Disk holds whatever the program does, and only its regular files and directories
// come back: a symbolic link planted for its reader to follow never reaches the host. And when the
// caller is root, the program is not: it runs as nobody, because the kernel counts no processes of
// root. CAP_DAC_OVERRIDE, which is good for nothing outside the paths it sees, lets it read what root may read there.
//
// What it does not hold, unless Spec.Calls does: memory that is shared, filled and then unmapped, or (with devices) put
// into a memfd, is seen by no limit here. The program is therefore the kernel's first choice when memory runs out.
package sandbox

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// A Spec says what to run and what it may touch. Paths are absolute.
type Spec struct {
	Args []string // the program and its arguments; a bare name is searched in Env's PATH, inside
	Dir  string   // the working directory inside; /tmp when empty
	Env  []string // the whole environment

	Read []string // files and directories seen read-only, at the same path; sockets in them can not be connected to
	// Places are files and directories seen at another path than the host's. Where one lies within another, the outer
	// one has a directory there.
	Places []Place
	Write  []string // existing directories; changed in a private copy, which is brought back when the program ends by itself
	// Devices may be read, written and controlled, such as /dev/nvidia0. With any, the program may also make Unix
	// sockets, so that a socket in a Read path can be connected to, and write below /proc: drivers need both.
	Devices []string

	Host string // the host name inside; "sandbox" when empty

	// Watch lists in Result.Lookups which paths the program asked for. It costs some microseconds for each.
	Watch bool

	// ExtraFiles are inherited as descriptors 3, 4, …; nothing else is. A memfd among them should be sealed against
	// growing, and against writing if it is meant to be read only: how it was opened does not hold the program.
	// Close the caller's copy of a pipe's far end after Start to see its end of file.
	ExtraFiles []*os.File

	// Calls, if there are any, are the only system calls that the program may make; others answer EPERM. Without, it
	// may make all but those with which sandboxes were broken. What memory a program holds is counted only as far as
	// it is mapped: a list without files, memfds and the like leaves no other.
	Calls []Call

	Stdout, Stderr io.Writer // nil discards; when both are the same writer, it is never written to at once

	Limits Limits
}

// A Place is a path of the host, and the path at which the program finds it.
type Place struct {
	Host, Inside string
	Write        bool // an existing directory, treated as those of Spec.Write are
}

// Limits bound the program. A zero field means the default named beside it.
type Limits struct {
	Wall   time.Duration // from the program's start to its end; then everything inside is killed (1 min)
	Memory int64         // of all processes together, resident; and what each may map for writing (4 GiB)

	// Overcommit lets a process map more than Memory as long as it does not touch it, as sanitizers, race
	// detectors and CUDA do. The kernel then refuses no allocation: a program over Memory is killed by a watch, which
	// looks every 20 to 200 ms, the oftener the less is left.
	Overcommit bool

	AddressSpace int64 // of each process: everything that it maps, shared or not, touched or not (none)

	Disk      int64 // of /tmp and all Write paths together; it is memory too (1 GiB)
	FileSize  int64 // of each file (Disk)
	Processes int   // processes and threads at once (256)
	OpenFiles int   // descriptors of each process (1024)
	Output    int64 // of Stdout and Stderr together; then everything inside is killed (1 MiB)
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

// A Result says how the program ended. It is filled whatever the end was; Wait's error is for the
// sandbox's own failure.
type Result struct {
	ExitCode int            // -1 when a signal ended it
	Signal   syscall.Signal // 0 when it exited

	TimedOut        bool
	OutputTruncated bool
	OutOfMemory     bool     // the watch found more than Limits.Memory resident
	Refused         []string // each limit that was hit and each output left behind, for a reader

	// Lookups is each path that the program asked for, whether or not it was there: absolute, clean, in order. Symbolic
	// links are not followed. LookupsCut tells that there were more than are listed.
	Lookups    []string
	LookupsCut bool
}

// OK reports whether the program ended with exit code 0 and within every limit that kills.
func (r Result) OK() bool { return r.ExitCode == 0 && r.Signal == 0 }

// sizeText writes a byte count the way the limits are usually given.
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
