package worker

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// Arrays may be as large as a part of the GPU. What a round needs of its memory is bounded by two rules: a batch has no more
// launches than fit, and outputs that are too large to be kept are compared with the reference at once. Then a round takes five
// times the arrays of a launch, and a comparison of cases seven times.

// copies is how often the arrays of a launch lie in the GPU's memory during a round: in each side, and in the judge.
const copies = 4

// fittingBatch is how many launches of a batch half of the memory has room for; at least one.
func fittingBatch(batch, bytes int, memory uint64) int {
	return min(batch, max(1, int(min(memory/2/copies/uint64(max(bytes, 1)), uint64(batch)))))
}

// warmBatch is how many launches of a batch have room in half of the L2 cache; at least one.
func warmBatch(batch, bytes, l2 int) int { return min(batch, max(1, l2/2/max(bytes, 1))) }

// maxKept bounds the memory for outputs that wait for the reference.
const maxKept = 4 << 30

// checkedAtOnce reports whether so many outputs as a series keeps do not fit there.
func checkedAtOnce(bytes, kinds int) bool { return 2*bytes*(references+kinds) > maxKept }

// A direct check compares the outputs of a draw with the reference before the next draw, while nothing is timed.
type direct struct {
	checked *checked // of the last draw
}

// A checked output is known, and needs no memory.
type checked struct{ candidate, baseline *gates.Errors }

func (c *checked) Check() (candidate, baseline *gates.Errors, err error) {
	own, other := *c.candidate, *c.baseline
	return &own, &other, nil
}

func (c *checked) Drop() {}

// checkAtOnce compares the one launch of the last draw, whose inputs are still there.
func (b *bench) checkAtOnce() (interleave.Kept, error) {
	if b.direct.checked != nil {
		return b.direct.checked, nil
	}
	if err := b.expect(b.reference, b.batch, b.problem.Shape.Dims, false); err != nil {
		return nil, err
	}
	c := &checked{}
	var err error
	if c.candidate, err = b.reference.Compare(b.target(gates.SideCandidate, 1), b.manifest.ToleranceOf); err != nil {
		return nil, err
	}
	if c.baseline, err = b.reference.Compare(b.target(gates.SideBaseline, 1), b.manifest.ToleranceOf); err != nil {
		return nil, err
	}
	b.direct.checked = c
	return c, nil
}
