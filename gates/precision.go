package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// A tolerance says which outputs are wrong. Where a format is coarse, or a quantiser may be off by one, the tolerance is wide, and
// a candidate can lose most of the baseline's precision within it. So outputs are also held against the baseline's, on the same
// inputs.
//
// Rounding alone must not defer a change. Three rules see to that. A norm error counts as at least the rounding of the output's
// format: an exact baseline is no better than the best that the format can do. A norm error below negligibleLoss is never a loss:
// sums in a different order differ by that much. And a loss must show in every case of a shape and a distribution, and in several
// of them where the output has few elements: the error of a single element is luck.
const (
	negligibleLoss = 1e-4 // of most formats
	// fewElements and severalCases: an output with fewer elements needs as many cases.
	fewElements  = 64
	severalCases = 3
)

// A format is what is known of the formats of elements: the rounding of one element, and the norm error that is never a loss.
type format struct{ rounding, negligible float64 }

// integers are exact, or off by one: a few that are off are no loss.
var integers = format{2.5e-4, 1e-3}

// formats are those that differ from f32.
var formats = map[string]format{
	"f64": {0x1p-53, 1e-9}, "f16": {0x1p-11, negligibleLoss}, "bf16": {0x1p-8, negligibleLoss}, "e4m3": {0x1p-4, negligibleLoss}, "e5m2": {0x1p-3, negligibleLoss},
	"i8": integers, "u8": integers, "i16": integers, "u16": integers, "i32": integers, "u32": integers, "i64": integers, "u64": integers, "bool": integers,
}

func formatOf(dtype string) format {
	if f, ok := formats[dtype]; ok {
		return f
	}
	return format{0x1p-24, negligibleLoss}
}

// precisionKnown reports whether the evidence has both sides' figures of each output. Evidence of harnesses, of new kernels and of
// earlier versions does not have them, and then the gate says nothing.
func precisionKnown(e *Evidence) bool {
	return e.Correctness != nil && slices.ContainsFunc(e.Correctness.Cases, func(k Case) bool {
		return k.Errors != nil && k.Baseline != nil && len(k.Errors.Outputs) > 0 && len(k.Baseline.Outputs) > 0
	})
}

// precision asks that no output is much less precise than the baseline's on the same inputs.
func (j *judgement) precision() GateResult {
	gate := j.rule.Gates.Precision
	lost := j.losses()
	if len(lost) == 0 {
		return GateResult{Status: Passed, Found: facts.PrecisionKept{Limit: gate.Loss.String()}}
	}
	r := GateResult{
		Status: Failed, Reason: ReasonPrecision, Found: lost[0],
		Steps: []facts.Advice{facts.KeepPrecision{Command: j.evidence.replay(lost[0].Input)}},
	}
	for _, l := range lost {
		r.More = append(r.More, l)
	}
	return r
}

// losses is the outputs that lost too much precision, by shape and distribution, each with its first case; the largest loss first.
func (j *judgement) losses() []facts.PrecisionLost {
	gate := j.rule.Gates.Precision
	if gate == nil || j.evidence.Correctness == nil {
		return nil
	}
	type key struct{ shape, distribution, output string }
	type group struct {
		first    facts.PrecisionLost
		cases    int
		elements int
		times    float64 // of what never counts as a loss
		kept     bool    // a case did not lose
	}
	var order []key
	groups := map[key]*group{}
	for _, k := range j.evidence.Correctness.judged() {
		if k.Secret || k.Errors == nil || k.Baseline == nil || k.BaselineFailure != nil {
			continue
		}
		for _, o := range k.Errors.Outputs {
			was := k.Baseline.output(o.Name)
			if was == nil || !o.comparable(was) {
				continue
			}
			at := key{k.Shape, k.Distribution, o.Name}
			g := groups[at]
			if g == nil {
				g = &group{elements: o.Elements, first: facts.PrecisionLost{
					Input: k.Input, Output: o.Name, Norm: o.Norm, Baseline: was.Norm, Limit: gate.Loss.String(),
				}}
				groups[at], order = g, append(order, at)
			}
			g.cases++
			f := formatOf(o.DType)
			effective := max(was.Norm, f.rounding)
			g.times = max(g.times, o.Norm/max(effective, f.negligible))
			g.kept = g.kept || o.Norm <= f.negligible || gate.Loss.Holds(o.Norm/effective)
		}
	}
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Compare(groups[b].times, groups[a].times) })
	var lost []facts.PrecisionLost
	for _, at := range order {
		if g := groups[at]; !g.kept && (g.elements >= fewElements || g.cases >= severalCases) {
			lost = append(lost, g.first)
		}
	}
	return lost
}
