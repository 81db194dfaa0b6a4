package worker

import (
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// cases runs every case: the candidate as candidateLaunches says, and the baseline once. If the
// candidate's outputs vary, the baseline runs again until its outputs vary too, up to a limit.
// After a case in which the candidate fails there are no more cases, because its context is lost.
func (s *session) cases() error {
	var d *caseSession
	err := runners.Spend(s.spent, gates.WorkMemory, func() (err error) {
		d, err = s.openCases()
		return err
	})
	for i := 0; err == nil && i < len(s.request.Cases); i++ {
		var evidence gates.Case
		evidence, err = d.compare(s.request.Cases[i])
		if failure, fault := interleave.Failure(err); fault != nil {
			c := s.request.Cases[i]
			return fmt.Errorf("%s, seed %d, %s inputs: %w", c.Shape, c.Seed, c.Distribution, fault)
		} else if failure != nil {
			evidence.Failure = failure
			return s.send(Reply{Case: &evidence})
		}
		err = s.send(Reply{Case: &evidence})
	}
	if failure, fault := interleave.Failure(err); failure != nil && len(s.request.Cases) > 0 {
		first := s.request.Cases[0].Evidence()
		first.Failure = failure
		return s.send(Reply{Case: &first})
	} else if fault != nil {
		return fault
	}
	return s.calibrate(d)
}

func (d *caseSession) compare(c Case) (gates.Case, error) {
	evidence := c.Evidence()
	p, err := d.outline(c.Shape)
	if err != nil {
		return evidence, err
	}
	launches := candidateLaunches(d.cand.State)
	d.rotate(launches)
	batch, err := d.drawn(p, c.Distribution, c.Seed)
	if err != nil {
		return evidence, err
	}
	reference, err := d.newReference(p)
	if err != nil {
		return evidence, err
	}
	for _, l := range launches {
		if err := d.launch(d.cand, l.slot, l.reset); err != nil {
			return evidence, errors.Join(err, d.without(&evidence, p, batch, reference, c))
		}
		if !l.other {
			continue
		}
		if err := d.refill(batch, l.slot); err != nil {
			return evidence, err
		}
	}
	slot := func(i int) oracle.Target { return oracle.TargetOf(p.Args, batch.Layout, d.places.Slice(i, 1)) }
	equal := func(a, b int) (same bool, err error) {
		err = runners.Spend(d.spent, gates.WorkComparisons, func() error {
			_, all, err := d.oracle.Compare(slot(a), slot(b), d.manifest.ToleranceOf)
			same = err == nil && all[0]
			return err
		})
		return same, err
	}
	same, err := equal(first, second)
	if err != nil {
		return evidence, err
	}
	evidence.Deterministic = &same
	if same && d.cand.State {
		same, err := equal(first, kept)
		if err != nil {
			return evidence, err
		}
		evidence.StateKept = !same
	}
	touched, err := batch.Touched(d.places.Slice(first, 1))
	if err != nil {
		return evidence, err
	}
	beside, err := d.regions[gates.SideCandidate].Touched(1)
	if err != nil {
		return evidence, err
	}
	if evidence.OutOfBounds = touched[0].Outside || beside[0]; touched[0].Input != "" {
		evidence.InputsChanged = []string{touched[0].Input}
	}
	if err := d.expect(reference, batch, c.Shape.Dims, false); err != nil {
		return evidence, err
	}
	if evidence.Errors, err = reference.Compare(slot(first), d.manifest.ToleranceOf); err != nil {
		return evidence, err
	}
	if err := d.addBaseline(&evidence, p, batch, reference); err != nil {
		return evidence, err
	}
	if evidence.Baseline != nil && !same {
		if err := d.repeat(&evidence, func() (bool, error) { return equal(candidateSlots+first, candidateSlots+second) }); err != nil {
			return evidence, err
		}
	}
	if evidence.Baseline != nil {
		parity, err := equal(first, candidateSlots)
		if err != nil {
			return evidence, err
		}
		evidence.BitParity = &parity
	}
	if c.Look {
		if err := d.dump(evidence, p, batch, reference); err != nil {
			return evidence, err
		}
	}
	if c.Unquantised {
		if err := d.expect(reference, batch, c.Shape.Dims, true); err != nil {
			return evidence, err
		}
		if evidence.EndToEnd, err = reference.Compare(slot(first), d.manifest.ToleranceOf); err != nil {
			return evidence, err
		}
		if evidence.Baseline != nil {
			if evidence.BaselineEndToEnd, err = reference.Compare(slot(candidateSlots), d.manifest.ToleranceOf); err != nil {
				return evidence, err
			}
		}
	}
	if c.Replayable(d.manifest) {
		if err := d.replay(&evidence, p, batch, reference, c); err != nil {
			return evidence, err
		}
	}
	return evidence, reference.Free()
}

// replay compares the right answer to the recording itself with that to the recording with noise. The batch then has the
// recording itself.
func (d *caseSession) replay(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference, c Case) error {
	if err := batch.Draw(c.Distribution, []uint64{0}); err != nil {
		return err
	}
	remembered, err := d.newReference(p)
	if err != nil {
		return err
	}
	if err := d.expect(remembered, batch, c.Shape.Dims, false); err != nil {
		return err
	}
	if evidence.Replayed, err = reference.Compare(remembered.Outputs(), d.manifest.ToleranceOf); err != nil {
		return err
	}
	return remembered.Free()
}
