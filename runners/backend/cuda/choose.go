package cuda

import (
	"context"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
)

// Build compiles one side for the GPU's architecture: its variant, or every variant that
// its choice may take on this GPU.
func (b *Backend) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	b.ahead(ctx)
	return b.build(ctx, role, side)
}

func (b *Backend) build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	if side.Variant != manifest.Choice {
		build, built, err := b.buildVariant(ctx, role, side)
		b.sides[role] = built
		return build, err
	}
	m := b.job.Of(side)
	whole := &sides.Built{Variant: side.Variant, Device: b.device.Arch, Toggles: m.ToggleValues(side.Variant)}
	choice, err := runners.BuildParts(m, side, b.device.Arch, func(part runners.Side) (gates.Build, error) {
		build, built, err := b.buildVariant(ctx, role, part)
		if built != nil {
			whole.Manifest = built.Manifest
			whole.Parts = append(whole.Parts, *built)
		}
		return build, err
	})
	if err == nil && choice.OK {
		b.sides[role] = whole
	}
	return choice, err
}

// sideOf returns the whole side of a role.
func (b *Backend) sideOf(role runners.Role) runners.Side {
	if role == runners.Baseline && b.job.Baseline != nil { // a new kernel is timed against itself
		return *b.job.Baseline
	}
	return b.job.Candidate
}

// shapesOf returns the shapes that a variant of a side is launched for.
func (b *Backend) shapesOf(role runners.Role, variant string) []manifest.Shape {
	side := b.sideOf(role)
	if side.Variant != manifest.Choice {
		return b.job.Of(side).ShapesFor(variant)
	}
	return b.job.Of(side).ServedBy(side.Variant, variant, b.device.Arch)
}

// compilationOf returns the name of a variant of a side among the compilations.
func (b *Backend) compilationOf(role runners.Role, variant string) string {
	if b.sideOf(role).Variant == manifest.Choice {
		return string(role) + "-" + variant
	}
	return string(role)
}
