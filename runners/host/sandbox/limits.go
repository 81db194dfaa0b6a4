package sandbox

import (
	"context"
	"time"
)

// A Kind is a kind of untrusted program that kernelgate starts. Its limits are here, and nowhere
// else, so that SECURITY.md can list them.
type Kind int

// The kinds, in the order of SECURITY.md's table.
const (
	CCompiler Kind = iota
	DeviceCompiler
	Disassembler
	CommandBuild
	Bench
	CPUKernel
	SanitizedKernel
	PythonReference
	PythonReader
	Proposer
	kinds int = iota
)

// LaunchTime is how long one launch of a kernel may take if a configuration does not say. The
// backends watch it themselves: one process serves many launches.
const LaunchTime = 10 * time.Second

// SanitizedTime is LaunchTime under a sanitizer of the C compiler, which makes a kernel up to 20
// times slower. Few launches take half of LaunchTime.
const SanitizedTime = 10 * LaunchTime

// A description is a kind for people and for the sandbox.
type description struct {
	name   string
	limits Limits
	why    string
}

// Limits returns the limits of a kind. What depends on the job, the caller adds: a shorter or
// longer time, the size of a kernel's arguments, its threads.
func (k Kind) Limits() Limits { return k.describe().limits }

func (k Kind) describe() description {
	switch k {
	case CCompiler:
		return description{"gcc or clang: a side, a reference in C, the sanitizers' stubs",
			Limits{Wall: 2 * time.Minute, Memory: 4 << 30, Disk: 512 << 20, Processes: 64, Output: 1 << 20},
			"one source file takes seconds; more is a template or an include that explodes; `gates.build.timeout` replaces the time"}
	case DeviceCompiler:
		return description{"nvcc, ptxas, cuobjdump, Triton, or a `command` build of a cubin",
			Limits{Wall: 5 * time.Minute, Memory: 6 << 30, Disk: 1 << 30, Processes: 256, Output: 1 << 20},
			"CUTLASS templates take minutes and gigabytes; Triton imports PyTorch, which starts many threads; `gates.build.timeout` replaces the time"}
	case Disassembler:
		return description{"nvdisasm, objdump",
			Limits{Wall: 30 * time.Second, Memory: 2 << 30, Disk: 16 << 20, Processes: 16, Output: 64 << 20},
			"the largest image that is read gives less text"}
	case CommandBuild:
		return description{"the build command of command mode",
			Limits{Wall: 10 * time.Minute, Memory: 16 << 30, Overcommit: true, Disk: 4 << 30, Processes: 4096, Output: 8 << 20},
			"it builds a whole project, in parallel; `gates.build.timeout` replaces the time"}
	case Bench:
		return description{"the bench and test commands of command mode",
			Limits{Wall: 5 * time.Minute, Memory: 16 << 30, Overcommit: true, Disk: 4 << 30, Processes: 4096, Output: 8 << 20},
			"it is any program, often with CUDA, which reserves far more memory than it uses"}
	case CPUKernel:
		return description{"a kernel or a reference in C",
			Limits{Wall: 30 * time.Minute, Memory: 1 << 30, AddressSpace: 1<<30 + programSpace, Disk: 1 << 20, Processes: 2, Output: 64 << 10},
			"memory in addition to its arguments; a launcher and one process, and 16 more for each further thread of the manifest; a launch has 10 s, the 30 min are for a process that its runner forgot"}
	case SanitizedKernel:
		return description{"a kernel under the C compiler's sanitizers",
			Limits{Wall: SanitizedTime, Memory: 4 << 30, Overcommit: true, Disk: 1 << 30, Processes: 16, Output: 4 << 20},
			"a sanitizer reserves a shadow of the whole address space, has its own thread, and starts a symbolizer"}
	case PythonReference:
		return description{"a reference in Python",
			Limits{Wall: 12 * time.Hour, Memory: 16 << 30, Overcommit: true, Disk: 64 << 20, Processes: 512, Output: 8 << 20},
			"PyTorch's libraries each start 16 threads; a case has 2 min and 16 GiB for its arrays, the 12 h are for a process that its check forgot"}
	case PythonReader:
		return description{"Python that only parses a file",
			Limits{Wall: time.Minute, Memory: 1 << 30, Disk: 1 << 30, Processes: 256, Output: 4 << 20},
			"it imports nothing of the file; the time is for a cold disk"}
	case Proposer:
		return description{"a proposer of `kernelgate tune`",
			Limits{Wall: 24 * time.Hour, Memory: 4 << 30, Overcommit: true, Disk: 1 << 30, Processes: 256, Output: 16 << 20},
			"it lives as long as the search; an answer has 5 min"}
	}
	panic("sandbox: no such kind of program")
}

// programSpace is what a small program and its libraries map.
const programSpace = 64 << 20

// Within returns the limits with a different time, unless it is 0.
func (l Limits) Within(wall time.Duration) Limits {
	if wall != 0 {
		l.Wall = wall
	}
	return l
}

// Until returns the limits with the time that the context has left, if it has a deadline: a policy gives a build its time. The
// context ends the program, so that its owner knows why, and this limit only if nobody does.
func (l Limits) Until(ctx context.Context) Limits {
	if end, ok := ctx.Deadline(); ok {
		l.Wall = max(time.Until(end), 0) + time.Minute
	}
	return l
}
