package cuda

import (
	"context"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// judgePin is the pin of the nvcc that compiles the reference and the judge's own kernels: the base's, which is trusted.
func judgePin(job runners.Job) *policies.Toolchain {
	if job.Baseline != nil {
		return job.Baseline.Toolchains.NVCC
	}
	return job.Candidate.Toolchains.NVCC
}

// pinnedCUDA is the nvcc of a side. A host that lacks it is at fault, and not what it should build.
func (b *Backend) pinnedCUDA(ctx context.Context, side runners.Side) (*toolchain.CUDA, error) {
	pin := side.Toolchains.NVCC
	if pin.Equal(judgePin(b.job)) {
		return b.cuda, nil
	}
	if pin == nil {
		pin = &policies.Toolchain{}
	}
	if b.cudas[*pin] == nil {
		found, err := b.installed.CUDA(ctx, side.Toolchains.NVCC)
		if err != nil {
			return nil, err
		}
		b.cudas[*pin] = found
	}
	return b.cudas[*pin], nil
}

// pinnedTriton is the Triton of a side.
func (b *Backend) pinnedTriton(ctx context.Context, side runners.Side) (*toolchain.Triton, error) {
	var key policies.Toolchain
	if side.Toolchains.Triton != nil {
		key = *side.Toolchains.Triton
	}
	if b.tritons[key] == nil {
		found, err := b.installed.Triton(ctx, side.Toolchains.Triton)
		if err != nil && side.Toolchains.Triton == nil {
			return nil, runners.SetupErrorf("%s is compiled by Triton: %w", b.job.Manifest.Name, err)
		}
		if err != nil {
			return nil, err
		}
		b.tritons[key] = found
	}
	return b.tritons[key], nil
}
