package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// Abilities is what a backend can do. A runner stores it in the evidence, so that the judge needs no list of backends.
type Abilities struct {
	Clock Clock `json:"clock"`
	// SingleLaunches says that single launches are timed in addition to batches of several.
	SingleLaunches bool `json:"single_launches,omitempty"`
	// OwnProcesses says that single launches run in processes of their own, several in each: a time is the median over one
	// process, and waking the process is part of it.
	OwnProcesses bool `json:"own_processes,omitempty"`
	// Sanitizers are the tools that have something to look for in every kernel. Any other tool may not apply to a kernel.
	// A backend without any runs none.
	Sanitizers  []policy.Sanitizer `json:"sanitizers,omitempty"`
	Disassembly bool               `json:"disassembly,omitempty"` // it can show machine code
	Profiler    bool               `json:"profiler,omitempty"`    // it can read a profiler's metrics
	// Counters says that it can count what a kernel does, without a profiler. Evidence with and without goes together: the times are the same.
	Counters bool `json:"counters,omitempty"`
}

// Equal reports whether two backends can do the same, but for counting.
func (a Abilities) Equal(b Abilities) bool {
	return a.Clock == b.Clock && a.SingleLaunches == b.SingleLaunches && a.OwnProcesses == b.OwnProcesses &&
		slices.Equal(a.Sanitizers, b.Sanitizers) && a.Disassembly == b.Disassembly && a.Profiler == b.Profiler
}

// Explains reports whether the backend can count what a kernel does, to explain its times.
func (a Abilities) Explains() bool { return a.Profiler || a.Counters }

// onHost reports whether kernels run on the processor of the host.
func (a Abilities) onHost() bool { return a.Clock == ClockProcess }

// A Clock is what times a launch.
type Clock string

const (
	ClockProcess Clock = "process" // the processor time of the process that runs the kernel, on the host
	ClockDevice  Clock = "device"  // events on the device, before and after the launch
	ClockHarness Clock = "harness" // the repository's own harness, which reports its times
)

// Can returns what the backend that gathered the evidence could do.
func (e *Evidence) Can() Abilities {
	if e.Abilities != nil {
		return *e.Abilities
	}
	if a, ok := unrecorded[e.Mode]; ok {
		return a
	}
	return Abilities{SingleLaunches: true}
}

// unrecorded has the abilities of evidence that does not state them, by its mode. The table describes the backends of that time
// and never changes: a backend with other abilities states them.
var unrecorded = map[string]Abilities{
	"cpu": {
		Clock: ClockProcess, SingleLaunches: true, OwnProcesses: true, Disassembly: true,
		Sanitizers: []policy.Sanitizer{policy.Memcheck, policy.Initcheck},
	},
	"cuda": {
		Clock: ClockDevice, SingleLaunches: true, Disassembly: true, Profiler: true,
		Sanitizers: []policy.Sanitizer{policy.Memcheck, policy.Racecheck, policy.Initcheck, policy.Synccheck},
	},
	"command": {Clock: ClockHarness},
}
