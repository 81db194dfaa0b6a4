package worker

import (
	"errors"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// addBaseline adds the baseline's result on the case. The caller has already run the reference. A
// baseline that fails is not used again, because its context is lost.
func (d *caseSession) addBaseline(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference) error {
	if d.base == nil {
		return nil
	}
	err := d.launch(d.base, first, true)
	if failed, ok := errors.AsType[*side.Failure](err); ok {
		evidence.BaselineFailure = &failed.Failure
		d.base = nil
		return nil
	}
	if err != nil {
		return err
	}
	own := d.places.Slice(candidateSlots, 1)
	touched, err := batch.Touched(own)
	if err != nil {
		return err
	}
	outside, err := d.regions[gates.SideBaseline].Touched(1)
	if err != nil {
		return err
	}
	if touched[0].Outside || outside[0] {
		evidence.BaselineFailure = new(gates.WrittenOutside())
	} else if touched[0].Input != "" {
		evidence.BaselineFailure = new(gates.InputsWritten([]string{touched[0].Input}))
	}
	evidence.Baseline, err = reference.Compare(oracle.TargetOf(p.Args, batch.Layout, own), d.manifest.ToleranceOf)
	return err
}

// repeat determines whether the baseline is deterministic on a case on which the candidate is not.
// One launch with different bits shows that it is not.
func (d *caseSession) repeat(evidence *gates.Case, equal func() (bool, error)) error {
	same := true
	for n := 0; n < runners.BaselineRepeats && same; n++ {
		err := d.launch(d.base, second, true)
		if _, ok := errors.AsType[*side.Failure](err); ok { // a failure says nothing about its bits
			d.base = nil
			return nil
		}
		if err == nil {
			same, err = equal()
		}
		if err != nil {
			return err
		}
	}
	evidence.BaselineDeterministic = &same
	return nil
}

// without runs the baseline on a case that the candidate did not survive.
func (d *caseSession) without(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference, c Case) error {
	if d.base == nil {
		return nil
	}
	if err := d.expect(reference, batch, c.Shape.Dims, false); err != nil {
		return err
	}
	return d.addBaseline(evidence, p, batch, reference)
}
