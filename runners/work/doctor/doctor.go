// Package doctor determines what this host can do for kernelgate: what it has, what it lacks, and
// what to do about each lack. [Run] examines the host, [Text] and [Summary] show the findings.
// [SelfTest] measures a known kernel to find out whether the host measures correctly. The package
// changes nothing on the host except the self-test's history file.
package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Status says how serious a finding is.
type Status string

const (
	OK      Status = "ok"
	Warn    Status = "warn"    // works without it; something is slower, noisier or left out
	Missing Status = "missing" // a runner that should work here does not
)

// A Finding is one thing that was examined.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`           // what was found
	Remedy string `json:"remedy,omitempty"` // what to do if it is not OK
}

// A Host answers questions about a machine. A function that returns a version returns an error if
// there is no such program.
type Host struct {
	Sandbox func() sandbox.Support
	CC      func(context.Context) (version string, err error)
	Git     func(context.Context) (version string, err error)
	Temp    func() (dir string, free uint64, err error) // the folder for builds and its free bytes
	// Counts says what stands in the way of the processor's counters, and what to do; nothing if they can be read.
	Counts func() (obstacle, remedy string)

	Devices   func() []string // the GPUs' device files
	GPU       func() (GPU, error)
	Health    func(GPU) (Health, error)
	CUDA      func(context.Context) (version string, err error)
	Triton    func(context.Context) (version string, err error)
	Python    func(context.Context) (version string, err error) // for references, with its packages
	NCU       func(context.Context) (version string, err error)
	Sanitizer func(context.Context) (version string, err error)

	DriverParams func() (string, error) // the text of /proc/driver/nvidia/params
	Admin        func() bool            // the process has CAP_SYS_ADMIN

	Includes measure.IncludeSets // header libraries that manifests include by name
	// FoundSets returns those that need no configuration.
	FoundSets  func(context.Context) measure.IncludeSets
	Toolchains toolchain.Installed
	// Compilers lists the compilers that a policy can pin.
	Compilers func(context.Context, toolchain.Installed) ([]toolchain.Compiler, error)
}

// Run examines everything, starting with the CPU runner's needs. It says what it looks at before each step that may take seconds;
// say may be nil.
func Run(ctx context.Context, h Host, say func(what string)) []Finding {
	if say == nil {
		say = func(string) {}
	}
	var findings []Finding
	say("the sandbox")
	for _, c := range h.Sandbox().Checks {
		findings = append(findings, sandboxFinding(c))
	}
	say("the C compiler and git")
	findings = append(findings, ccFinding(h.CC(ctx)), gitFinding(h.Git(ctx)), tempFinding(h.Temp()), counterFinding(h.Counts()))

	say("the GPU")
	gpu, err := h.GPU()
	devices := h.Devices()
	// On a host without a GPU, missing CUDA tools are no problem. A host with a GPU is meant for
	// CUDA.
	lack := Warn
	if len(devices) > 0 || err == nil {
		lack = Missing
	}
	if err == nil {
		findings = append(findings, gpuFindings(gpu, h)...)
	} else {
		findings = append(findings, noGPUFinding(devices, err))
	}
	say("CUDA")
	findings = append(findings, cudaFinding(ctx, h, lack))
	say("Python, PyTorch and Triton, which takes longest the first time")
	findings = append(findings, tritonFinding(h.Triton(ctx)), pythonFinding(h.Python(ctx)))
	say("the profiler and the sanitizer")
	findings = append(findings, ncuFindings(ctx, h, err == nil)...)
	findings = append(findings, sanitizerFinding(h.Sanitizer(ctx)))
	say("the compilers that a policy can pin")
	findings = append(findings, compilerFindings(h.Compilers(ctx, h.Toolchains))...)
	say("headers")
	sets := measure.IncludeSets{}
	if h.FoundSets != nil {
		sets = h.FoundSets(ctx)
	}
	maps.Copy(sets, h.Includes)
	for _, name := range sets.Names() {
		findings = append(findings, includeFinding(name, sets))
	}
	return findings
}

// Exit returns the exit status of a process that reports the findings: 0 if nothing is missing, 1
// otherwise.
func Exit(findings []Finding) int {
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == Missing }) {
		return 1
	}
	return 0
}

// oneLine makes an error fit one line of a report.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
