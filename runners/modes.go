package runners

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A ModeInfo is everything that follows from the mode of a kernel, apart from the rules of its manifest: what its backend can do,
// and what the bot must know to plan and to check the backend's work. The bot links no backend, so the facts are here.
type ModeInfo struct {
	Mode   manifest.Mode
	Device string // the kind of device that runs the kernels; "" means any
	Label  string // of the runners that take them if the policy names none
	// Architectures says that kernels are compiled for the GPU architectures of their manifest.
	Architectures bool
	// Assembler says that a source can make an assembler read a file, whose name need not be in the source.
	Assembler bool
	// Warm says that launches can begin with a warm cache, and otherwise begin with a cold one.
	Warm bool
	gates.Abilities
}

// modes has one row for each mode. A new backend adds its row here, and its constructor in runners/gather/measure.
var modes = []ModeInfo{
	{
		Mode: manifest.ModeCPU, Device: gates.DeviceCPU, Label: CPULabel, Assembler: true,
		Abilities: gates.Abilities{
			Clock: gates.ClockProcess, SingleLaunches: true, OwnProcesses: true, Disassembly: true, Counters: true,
			Sanitizers: []policy.Sanitizer{policy.Memcheck, policy.Initcheck}, // a kernel may have only one thread
		},
	},
	{
		Mode: manifest.ModeCUDA, Device: gates.DeviceGPU, Label: GPULabel, Architectures: true, Warm: true,
		Abilities: gates.Abilities{
			Clock: gates.ClockDevice, SingleLaunches: true, Disassembly: true, Profiler: true,
			Sanitizers: policy.Sanitizers(),
		},
	},
	{
		Mode: manifest.ModeCommand, Label: GPULabel,
		Abilities: gates.Abilities{Clock: gates.ClockHarness},
	},
}

// Labels of runners.
const (
	CPULabel = "cpu" // for jobs that need no GPU
	GPULabel = "gpu"
)

// ModeOf returns what follows from the mode of a kernel.
func ModeOf(m *manifest.Manifest) ModeInfo {
	i := slices.IndexFunc(modes, func(info ModeInfo) bool { return info.Mode == m.Mode })
	if i < 0 {
		return ModeInfo{Mode: m.Mode}
	}
	return modes[i]
}

// ModeOn returns the mode of the kernels that run only on that kind of device.
func ModeOn(device string) ModeInfo {
	return modes[slices.IndexFunc(modes, func(info ModeInfo) bool { return info.Device == device })]
}

// OwnHarness reports whether the repository's own program measures. It keeps the clock and the reference, may read every file,
// and knows only its own shapes.
func (i ModeInfo) OwnHarness() bool { return i.Clock == gates.ClockHarness }
