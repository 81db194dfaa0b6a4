package gates

import (
	"math"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// While a kernel is timed, every output is compared with the baseline's, and a few with the
// reference. Two outputs that both meet the bounds of the correctness gate are at most twice as far
// from each other as from the reference. If they are farther apart, one of them is wrong, and only
// the reference can say which. The runner counts these launches and compares as many of them as it
// can afford. A kernel must not pass because its wrong launches were not among those.

// A Sampled says how many launches had a property, and how many of them, chosen at random, were
// compared with the reference.
type Sampled struct {
	Launches int `json:"launches"`
	Compared int `json:"compared"`
}

// A Separation is the farthest that two outputs on the same input can be from each other if both
// meet the bounds of a correctness gate.
type Separation struct {
	Share   float64 `json:"share"` // of elements beyond twice the tolerance
	Norm    float64 `json:"norm"`
	MaxAbs  float64 `json:"max_abs"`
	MeanAbs float64 `json:"mean_abs"`
}

// SeparationOf returns the separation for a gate. Without a gate no element may be beyond the
// tolerance.
func SeparationOf(gate *policy.CorrectnessGate) Separation {
	s := Separation{Share: 0, Norm: math.MaxFloat64, MaxAbs: math.MaxFloat64, MeanAbs: math.MaxFloat64}
	if gate == nil {
		return s
	}
	s.Share = math.MaxFloat64
	if b := gate.Bad; b != nil {
		s.Share = twice(b)
	}
	if b := gate.MaxAbs; b != nil {
		s.MaxAbs = twice(b)
	}
	if b := gate.MeanAbs; b != nil {
		s.MeanAbs = twice(b)
	}
	if b := gate.Norm; b != nil && b.Value < 1 {
		// The error is relative to the reference's norm, and this one to the baseline's.
		s.Norm = twice(b) / (1 - float64(b.Value))
	}
	return s
}

func twice[T quantity.Number | quantity.Percent](b *quantity.Bound[T]) float64 {
	return 2 * float64(b.Value)
}

// roundingSlack keeps outputs at the very edge of two bounds from counting as apart.
const roundingSlack = 1 + 1e-9

// Apart reports whether two outputs are farther from each other than the separation. Errors are the
// candidate's against the baseline's output, and far is how many elements are beyond twice the
// tolerance.
func (s Separation) Apart(e Errors, far int) bool {
	return e.NaN+e.Inf+e.Unwritten > 0 ||
		float64(far) > s.Share*roundingSlack*float64(max(e.Elements, 1)) ||
		e.Norm > s.Norm*roundingSlack || e.MaxAbs > s.MaxAbs*roundingSlack || e.MeanAbs > s.MeanAbs*roundingSlack
}

// maxUnseen is the largest share of wrong launches that a run may fail to find with a probability
// above unseenRisk, among those that are apart from the baseline's.
const (
	maxUnseen  = 0.01
	unseenRisk = 0.01
)

// unseen returns the smallest share of launches that must be wrong, and apart from the baseline's,
// so that the reference saw one of them with a probability of 1 - unseenRisk. It is 0 if the
// reference saw all of them. A launch that is apart is compared with the probability n/s if n of a
// series' s launches were, and w wrong launches all escape with a probability of at most
// exp(-w/k), where k is the largest s/n of all series.
func unseen(rounds []Round) (share float64, of Sampled) {
	var launches int
	var k float64
	for _, r := range rounds {
		for _, s := range r.Series {
			launches += s.Verified
			if s.Apart == nil {
				continue
			}
			of.Launches += s.Apart.Launches
			of.Compared += s.Apart.Compared
			if s.Apart.Compared < s.Apart.Launches {
				k = max(k, float64(s.Apart.Launches)/math.Max(float64(s.Apart.Compared), 1e-9))
			}
		}
	}
	return min(1, k*math.Log(1/unseenRisk)/float64(max(launches, 1))), of
}

// withUnseen keeps a pass only if enough of the launches that are apart from the baseline's were
// compared with the reference.
func (j *judgement) withUnseen(r GateResult, rounds []Round) GateResult {
	if r.Status != Passed {
		return r
	}
	share, of := unseen(rounds)
	if share <= maxUnseen {
		return r
	}
	return GateResult{
		Status: Open, Reason: ReasonInconclusive,
		Found: facts.ApartFromBaseline{Launches: of.Launches, Compared: of.Compared, Unseen: share, Asked: maxUnseen},
		Steps: []facts.Advice{facts.CompareMore{}},
	}
}
