package interleave

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// A witness sees every output of the candidate's launches except warm-up launches. It compares all
// of them with the baseline's on the same input. With the reference, which is slow, it compares a
// random choice that is made before anything runs. For each distribution it also compares the
// output that is farthest from the baseline's, and the output with the most elements beyond the
// manifest's tolerance of it. A kernel that is wrong now and then is farthest from the baseline
// then, or has the most bad elements if small values are wrong.
type witness struct {
	timing   *Timing
	chosen   map[int]bool // indices of launches, counted over the series
	seen     int
	kept     []chosen
	farthest map[extreme]*outlier
}

// An extreme is a distribution and one of the measures of how far an output is.
type extreme struct {
	dist    distribution.Kind
	measure int
}

// measures are the ways to measure how far an output is from the baseline's.
var measures = []func(Difference) float64{distance, bad}

type outlier struct {
	distance float64
	kept     Kept
}

// A chosen output is compared with the reference.
type chosen struct {
	Kept
	dist distribution.Kind
}

func newWitness(r *Timing) *witness {
	w := &witness{timing: r, chosen: map[int]bool{}, farthest: map[extreme]*outlier{}}
	// This is the minimum number of launches.
	launches := 2*r.plan.Pairs*r.series.Batch + r.plan.LoneLaunches(r.series.Batch, len(r.series.Distributions))
	for range min(r.plan.References, launches) {
		w.chosen[r.rng.IntN(launches)] = true
	}
	r.series.Verified, r.series.Worst, r.series.AgainstBaseline = 0, &gates.Errors{}, &gates.Errors{}
	return w
}

// distance returns how far an output is. Differences that cannot be measured are farther than all
// that can.
func distance(d Difference) float64 {
	switch e := d.Errors; {
	case d.Same:
		return 0
	case e.NaN+e.Inf+e.Unwritten > 0:
		return 1e300 * float64(e.NaN+e.Inf+e.Unwritten)
	default:
		// Both figures count: one wrong element among many shows only in the maximum.
		return e.Norm + e.MaxAbs
	}
}

// bad returns how many elements are beyond the tolerance.
func bad(d Difference) float64 { return float64(d.Errors.Bad) }

// see compares the outputs of the last draw.
func (w *witness) see(b Bench, dist distribution.Kind, launches int) error {
	all, err := b.Compare(launches)
	if err != nil {
		return err
	}
	for i, d := range all {
		if w.chosen[w.seen+i] {
			k, err := b.Keep(i)
			if err != nil {
				return err
			}
			w.kept = append(w.kept, chosen{k, dist})
		}
		runners.Worse(w.timing.series.AgainstBaseline, &d.Errors)
	}
	w.seen += len(all)
	w.timing.series.Verified += len(all)
	for m, measure := range measures {
		if err := w.seeFarthest(b, extreme{dist, m}, measure, all); err != nil {
			return err
		}
	}
	return nil
}

// seeFarthest keeps the output that is farthest by a measure, if it is farther than all before it.
// An output without bad elements need not be kept for that measure.
func (w *witness) seeFarthest(b Bench, at extreme, measure func(Difference) float64, all []Difference) error {
	far := 0
	for i, d := range all {
		if measure(d) > measure(all[far]) {
			far = i
		}
	}
	was := w.farthest[at]
	switch {
	case was != nil && measure(all[far]) <= was.distance:
		return nil
	case at.measure > 0 && measure(all[far]) == 0:
		return nil
	}
	k, err := b.Keep(far)
	if err != nil {
		return err
	}
	if was != nil {
		was.kept.Drop()
	}
	w.farthest[at] = &outlier{measure(all[far]), k}
	return nil
}

// check compares with the reference. If an element is beyond the tolerance, both sides' figures are
// recorded, because the baseline may be as wrong on the same input.
func (w *witness) check() error {
	s := w.timing.series
	for _, k := range w.all() {
		e, baseline, err := k.Check()
		if err != nil {
			return err
		}
		runners.Worse(s.Worst, e)
		s.Referenced++
		if e.Bad > 0 || baseline.Bad > 0 {
			s.Outputs = append(s.Outputs, gates.TimedOutput{Distribution: string(k.dist), Candidate: *e, Baseline: *baseline})
		}
	}
	return nil
}

func (w *witness) all() []chosen {
	all := w.kept
	for at, o := range w.farthest {
		all = append(all, chosen{o.kept, at.dist})
	}
	return all
}

func (w *witness) drop() {
	for _, k := range w.all() {
		k.Drop()
	}
}
