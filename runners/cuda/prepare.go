package cuda

import (
	"context"
	"fmt"
)

// Prepare compiles what measuring takes beside the sides: the reference and the judge's own kernels. What does not compile is told
// by whoever measures.
func (b *Backend) Prepare(ctx context.Context) {
	if g := b.job.Rule().Gates; g.Correctness == nil && g.Performance == nil {
		return
	}
	if b.job.Manifest.ReferenceOnDevice() {
		if _, err := b.reference(ctx); err != nil {
			fmt.Fprintf(&b.log, "the reference is left to whoever measures: %v\n", err)
		}
	}
	if _, err := b.oracle(ctx); err != nil {
		fmt.Fprintf(&b.log, "the judge's own kernels are left to whoever measures: %v\n", err)
	}
}
