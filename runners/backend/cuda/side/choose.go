package side

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Serving returns the code that handles a problem: the kernel's code, or that of the variant which
// a choice by problem size selects.
func (b Built) Serving(m *manifest.Manifest, dims manifest.Dims) (Built, error) {
	if len(b.Parts) == 0 {
		return b, nil
	}
	variant, err := m.Serving(b.Variant, b.Device, dims)
	for _, part := range b.Parts {
		if err == nil && part.Variant == variant {
			return part, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("variant %s was not built", variant)
	}
	return Built{}, err
}

// loadParts loads every variant of a choice onto the GPU.
func (k *Kernel) loadParts() error {
	for _, b := range k.built.Parts {
		part, err := Load(k.ctx, k.stream, k.manifest, b, k.timeout)
		if err != nil {
			return err
		}
		k.parts = append(k.parts, part)
	}
	return nil
}

// part returns the variant that handles a problem. If no variant handles it, the choice has failed.
func (k *Kernel) part(dims manifest.Dims) (*Kernel, error) {
	built, err := k.built.Serving(k.manifest, dims)
	for _, part := range k.parts {
		if err == nil && part.built.Variant == built.Variant {
			return part, nil
		}
	}
	return nil, &Failure{gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf("the choice serves nothing at %s: %v", dims, err)}}
}

// steps returns the steps of a launch.
func (k *Kernel) steps(dims manifest.Dims) ([]manifest.StepAt, error) {
	if len(k.parts) == 0 {
		return k.launch(dims)
	}
	part, err := k.part(dims)
	if err != nil {
		return nil, err
	}
	return part.steps(dims)
}

// keeps reports whether the code has memory that outlives a launch.
func (k *Kernel) keeps() bool {
	for _, kind := range k.kinds {
		if kind.keeps() {
			return true
		}
	}
	return slices.ContainsFunc(k.parts, (*Kernel).keeps) || len(k.modules) > 0 && len(k.modules[0].state) > 0
}
