package verify

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
)

// baseline holds what a case says about the baseline against what a runner can know: a
// mistake of the baseline takes a mistake of the change out of the verdict.
func (c checker) baseline(field string, k gates.Case, earlier []gates.Case) error {
	said := k.Baseline != nil || k.BaselineFailure != nil
	switch {
	case c.job.Baseline == nil && (said || k.BaselineEndToEnd != nil || k.BaselineDeterministic != nil):
		return fmt.Errorf("%s.baseline: there is no baseline", field)
	case c.job.Baseline == nil || c.mode.OwnHarness(): // a harness leaves out what it likes
		return nil
	case k.BaselineDeterministic != nil && (k.Baseline == nil || k.Deterministic == nil || *k.Deterministic):
		return fmt.Errorf("%s.baseline_deterministic: the baseline is launched again only where it has an output and the candidate is not deterministic", field)
	case k.BaselineEndToEnd != nil && (k.Baseline == nil || k.EndToEnd == nil):
		return fmt.Errorf("%s.baseline_end_to_end: there is no output that it could be of", field)
	case !said && k.Errors != nil && !slices.ContainsFunc(earlier, func(e gates.Case) bool { return e.BaselineFailure != nil }):
		return fmt.Errorf("%s.baseline: the baseline was not run", field)
	case k.BitParity != nil && *k.BitParity && k.Errors != nil && k.Baseline != nil && !reflect.DeepEqual(k.Errors, k.Baseline):
		return fmt.Errorf("%s.baseline: the outputs are equal bit for bit, and their errors are not", field)
	case k.Errors != nil && k.Baseline != nil && k.Errors.Elements != k.Baseline.Elements:
		return fmt.Errorf("%s.baseline: it has %d elements, and the candidate's output %d", field, k.Baseline.Elements, k.Errors.Elements)
	}
	return nil
}

// timedOutputs are some of those that the reference was asked about, with at least one
// element beyond the tolerance, and no worse than the worst.
func timedOutputs(field string, s gates.Series) error {
	if len(s.Outputs) > s.Referenced {
		return fmt.Errorf("%s.outputs: there are %d, and the reference was asked about %d", field, len(s.Outputs), s.Referenced)
	}
	for i, o := range s.Outputs {
		worst := s.Worst
		if !sound(o.Candidate) || !sound(o.Baseline) || o.Candidate.Elements != o.Baseline.Elements || o.Candidate.Bad+o.Baseline.Bad == 0 {
			return fmt.Errorf("%s.outputs[%d]: no two outputs on one input have these figures, or none of them is wrong", field, i)
		}
		if c := o.Candidate; worst == nil || c.Bad > worst.Bad || c.NaN > worst.NaN || c.Inf > worst.Inf || c.Unwritten > worst.Unwritten ||
			c.MaxAbs > worst.MaxAbs || c.MeanAbs > worst.MeanAbs || c.Norm > worst.Norm {
			return fmt.Errorf("%s.outputs[%d]: it is worse than the worst", field, i)
		}
		if len(s.Distributions) > 0 && !slices.Contains(s.Distributions, o.Distribution) {
			return fmt.Errorf("%s.outputs[%d].distribution: %.60q was not timed", field, i, o.Distribution)
		}
	}
	return nil
}
