package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// A Result is a measurement that can be compared with a second one.
type Result struct {
	Verdict  *gates.Verdict
	Evidence *gates.Evidence
}

// NotSideBySide is the caveat of every comparison of two runs.
const NotSideBySide = "These are two separate runs: the intervals cover differences between their hosts, clocks and hours only as far as the rounds show them. A gate compares within one run."

// A Difference is one figure in both runs.
type Difference struct {
	Kind  string   `json:"kind"` // time, resource or error
	Name  string   `json:"name"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
	Unit  string   `json:"unit,omitempty"`
	Ratio *float64 `json:"ratio,omitempty"` // of times the speedup, A over B less 1: positive is faster; else B over A less 1
	Lower *float64 `json:"lower,omitempty"` // of the ratio, 95 %
	Upper *float64 `json:"upper,omitempty"`
	P     *float64 `json:"p,omitempty"` // of seeing this without a difference; nil where nothing varies, or too little is known
	Class string   `json:"class"`       // pass where B is faster for sure, fail where it is slower, open where it differs and has no better or worse
}

// noise is how far an interval may reach to both sides for the two times to count as equal. A wider one cannot rule out a loss that
// most policies refuse.
const noise = 0.02

// Finding is what a difference of times shows: the speedup of B, that there is none, or that the noise hides it.
func (d Difference) Finding() string {
	switch {
	case d.Ratio == nil || d.Lower == nil || d.Upper == nil:
		return "not enough rounds to tell"
	case d.Significant():
		return number.GainWords(*d.Ratio, d.Lower, d.Upper) + " " + d.Interval()
	case d.Noisy():
		return "cannot tell (" + number.Reach(*d.Lower, *d.Upper) + ")"
	}
	return "no difference (" + number.Reach(*d.Lower, *d.Upper) + ")"
}

// Noisy reports whether the noise hides whether there is a difference.
func (d Difference) Noisy() bool {
	return !d.Significant() && d.Lower != nil && d.Upper != nil && *d.Upper-*d.Lower > 2*noise
}

// Gain is the speedup of B over A of a time, and Interval its interval; "" where they are not known.
func (d Difference) Gain() string {
	if d.Ratio == nil {
		return ""
	}
	return number.Gain(*d.Ratio, d.Lower, d.Upper)
}

func (d Difference) Interval() string {
	if d.Ratio == nil {
		return ""
	}
	return number.GainInterval(*d.Ratio, d.Lower, d.Upper)
}

// ShownB is the time in B as Times has it; nil where there is none.
func (d Difference) ShownB() *float64 {
	if d.B == nil {
		return nil
	}
	_, b := d.Times()
	return &b
}

// Times is the time in A, and that in B as A's divided by the speedup, so that the two never contradict it.
func (d Difference) Times() (a, b float64) {
	if d.A == nil || d.B == nil || d.Ratio == nil || d.Kind != "time" {
		return deref(d.A), deref(d.B)
	}
	return *d.A, *d.A / (1 + *d.Ratio)
}

func deref(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// Significant is where chance is ruled out at 5 %.
func (d Difference) Significant() bool { return d.Class != "none" }

// Differences pairs up all figures that either run has. First comes what is not by chance, times before what was counted, and of
// each the least likely, then the largest.
func Differences(a, b Result) []Difference {
	var list []Difference
	ta, tb := a.times(), b.times()
	var shapes []string
	for _, m := range []Result{a, b} {
		if m.Verdict != nil {
			for _, c := range m.Verdict.Comparisons {
				if !c.Secret && !slices.Contains(shapes, c.Shape) { // the secret shape has a different size in every run
					shapes = append(shapes, c.Shape)
				}
			}
		}
	}
	for _, shape := range shapes {
		d := Difference{Kind: "time", Name: shape, Unit: "µs", Class: "none"}
		if c := a.Verdict.ComparisonOf(shape); c != nil && c.Candidate != nil {
			d.A = new(c.CandidateTime())
		}
		if c := b.Verdict.ComparisonOf(shape); c != nil && c.Candidate != nil {
			d.B = new(c.CandidateTime())
		}
		d.weigh(ta[shape], tb[shape])
		list = append(list, d)
	}
	list = append(list, counted(a, b)...)
	slices.SortStableFunc(list, bySignificance)
	return list
}

// times is the candidate's time in each round, by shape: a round is the unit of evidence, since samples within one have much in
// common.
func (r Result) times() map[string][]float64 {
	if r.Evidence == nil {
		return nil
	}
	return gates.RoundTimes(r.Evidence)
}

// weigh compares logarithms of times by Welch's test, which does not ask that both
// runs were equally noisy.
func (d *Difference) weigh(a, b []float64) {
	if d.A != nil && d.B != nil && *d.B > 0 {
		d.Ratio = new(*d.A / *d.B - 1)
	}
	if len(a) < 2 || len(b) < 2 {
		return
	}
	ma, va := logs(a)
	mb, vb := logs(b)
	na, nb := float64(len(a)), float64(len(b))
	variance := va/na + vb/nb
	if !(variance > 0) || math.IsInf(variance, 0) || math.IsNaN(ma+mb) {
		return
	}
	freedom := variance * variance / (va*va/(na*na*(na-1)) + vb*vb/(nb*nb*(nb-1)))
	t := distuv.StudentsT{Sigma: 1, Nu: max(1, min(freedom, 1000))}
	size := (ma - mb) / math.Sqrt(variance)
	p := 2 * t.CDF(-math.Abs(size))
	half := t.Quantile(0.975) * math.Sqrt(variance)
	ratio, lower, upper := math.Exp(ma-mb)-1, math.Exp(ma-mb-half)-1, math.Exp(ma-mb+half)-1
	d.Ratio, d.Lower, d.Upper, d.P = &ratio, &lower, &upper, &p
	if p < 0.05 {
		d.Class = map[bool]string{true: "pass", false: "fail"}[mb < ma]
	}
}

// logs is the mean and the variance of logarithms.
func logs(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += math.Log(v) / float64(len(values))
	}
	for _, v := range values {
		variance += (math.Log(v) - mean) * (math.Log(v) - mean) / float64(len(values)-1)
	}
	return mean, variance
}

// counted is the figures that do not vary from run to run: any difference is real.
func counted(a, b Result) []Difference {
	type key struct{ kind, name, unit string }
	var order []key
	values := map[key][2]*float64{}
	for i, m := range []Result{a, b} {
		if m.Verdict == nil {
			continue
		}
		put := func(k key, v *float64) {
			if _, ok := values[k]; !ok {
				order = append(order, k)
			}
			both := values[k]
			both[i] = v
			values[k] = both
		}
		for _, r := range m.Verdict.Resources {
			put(key{"resource", r.Name, r.Unit}, r.Candidate)
		}
		for _, r := range m.Verdict.Correctness {
			name := r.Shape + " · " + r.Distribution
			if r.Secret {
				continue // drawn for each run
			}
			put(key{"error", name, ""}, &r.Norm)
		}
	}
	var list []Difference
	for _, k := range order {
		v := values[k]
		d := Difference{Kind: k.kind, Name: k.name, Unit: k.unit, A: v[0], B: v[1], Class: "none"}
		if d.A != nil && d.B != nil {
			if *d.A != 0 {
				d.Ratio = new(*d.B / *d.A - 1)
			}
			// More registers may be the faster choice, and an error within its tolerance is no fault.
			if k.kind == "resource" && *d.A != *d.B {
				d.Class = "open"
			}
		}
		list = append(list, d)
	}
	return list
}

func bySignificance(a, b Difference) int {
	rank := func(d Difference) int {
		switch {
		case d.Significant() && d.Kind == "time":
			return 0
		case d.Significant():
			return 1
		case d.Ratio != nil && *d.Ratio != 0:
			return 2
		}
		return 3
	}
	chance := func(d Difference) float64 {
		if d.P == nil {
			return 1
		}
		return *d.P
	}
	size := func(d Difference) float64 {
		if d.Ratio == nil {
			return 0
		}
		return math.Abs(*d.Ratio)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(chance(a), chance(b)), cmp.Compare(size(b), size(a)))
}
