package runners

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Each of these types has the methods of a [Backend] that cannot do something. A backend embeds those that apply, so that it has
// to say what it lacks.

// WithoutNotes is for a backend about which a reader of the evidence need not know anything.
type WithoutNotes struct{}

func (WithoutNotes) Notes() []string { return nil }

// WithoutArtifacts is for a backend that leaves no files.
type WithoutArtifacts struct{}

func (WithoutArtifacts) Artifacts() []string { return nil }

// WithoutDisassembly is for a backend that cannot show machine code.
type WithoutDisassembly struct{}

func (WithoutDisassembly) MachineCode(context.Context) *gates.MachineCode { return nil }

// WithoutEnergy is for a backend that reads no sensor of its device.
type WithoutEnergy struct{}

func (WithoutEnergy) Energy(context.Context, *policy.EnergyGate, Progress) (*gates.Energy, error) {
	return &gates.Energy{Skipped: "only the GPU that runs a kernel of the cuda mode has a sensor that kernelgate reads (remove gates.energy from the rule of this kernel)"}, nil
}

// WithoutReference is for a backend that has no reference: it can neither check one nor compare a case with it.
type WithoutReference struct{}

func (WithoutReference) CheckReference(context.Context) (string, error) { return "", nil }

func (WithoutReference) DumpCase(context.Context, Case) (*CaseDump, error) {
	return nil, errors.ErrUnsupported
}

// WithoutExplanation is for a backend that cannot count what a kernel does.
type WithoutExplanation struct{}

func (WithoutExplanation) Explain(context.Context, Explanation, Progress) (*gates.Explained, *gates.Profile, error) {
	return nil, nil, errors.ErrUnsupported
}
