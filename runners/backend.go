package runners

import (
	"context"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A Backend measures on one kind of device. Its errors are faults of the backend; a failure of the
// kernel is evidence.
type Backend interface {
	Abilities() gates.Abilities
	Device() gates.Device
	Tools() map[string]string
	// Notes returns what a reader of the evidence must know about this backend.
	Notes() []string
	// Build compiles one side. A compile error is evidence.
	Build(ctx context.Context, role Role, side Side) (gates.Build, error)
	// BuildLog returns the compilers' output so far.
	BuildLog() string
	// MachineCode returns what differs between the code of the two sides. It is nil if there is nothing to show.
	MachineCode(ctx context.Context) *gates.MachineCode
	// CheckReference builds the reference without running it, and returns a note on what it could not check.
	CheckReference(ctx context.Context) (note string, err error)
	// Correctness runs the cases that the gate asks for.
	Correctness(ctx context.Context, gate *policy.CorrectnessGate, p Progress) (*gates.Correctness, error)
	// Sanitize runs the candidate under tools that watch every access.
	Sanitize(ctx context.Context, gate *policy.SanitizeGate, p Progress) (*gates.Sanitize, error)
	// Seed is the run's secret randomness: nobody knew it when the code was written. Draws from it
	// do not depend on when they are made.
	Seed() uint64
	// Round measures the shapes once, in fresh processes, and reports each shape by its name. Some
	// of the shapes are not in the manifest.
	Round(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape, p Progress) (gates.Round, error)
	// Energy measures the energy of launches of both sides.
	Energy(ctx context.Context, gate *policy.EnergyGate, p Progress) (*gates.Energy, error)
	// Profile reads the metrics that the gate names.
	Profile(ctx context.Context, gate *policy.ProfileGate, p Progress) (*gates.Profile, error)
	// Explain counts what both sides do on a few shapes. The profile has the metrics that were asked for, of the candidate. It is
	// nil where an obstacle, which the explanation names, kept the backend from counting.
	Explain(ctx context.Context, ask Explanation, p Progress) (*gates.Explained, *gates.Profile, error)
	// DumpCase runs one case and returns its inputs and outputs. A backend without a reference returns errors.ErrUnsupported.
	DumpCase(ctx context.Context, c Case) (*CaseDump, error)
	// Artifacts lists files worth keeping.
	Artifacts() []string
	Arms
}

// An Explanation is what is to be counted to explain a difference in speed.
type Explanation struct {
	Shapes  []string
	Metrics []string // further ones, which the profile gate reads
}

// Measured is the result of measuring a job.
type Measured struct {
	Evidence  *gates.Evidence
	BuildLog  string   // the compilers' output
	Artifacts []string // files worth keeping, identified by their base names
	// Open means that the job was compiled, and still has to be measured.
	Open bool
}
