package interleave

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// A witness sees every output of the candidate's launches but those that warm up. All of them are
// compared with the baseline's on the same input. With the reference, which is
// slow, it compares those of a random choice, made before anything was run, and
// of each distribution the one that is farthest from the baseline's, and the one
// with the most elements beyond the manifest's tolerance of it: a kernel that is
// wrong now and then is farthest from it then, or bad in most places where what
// should be small is wrong.
type witness struct {
	timing   *Timing
	chosen   map[int]bool // launches, counted over the series
	seen     int
	kept     []chosen
	farthest map[extreme]*outlier
}

// An extreme is a distribution and one of the measures of how far an output is.
type extreme struct {
	dist    distribution.Kind
	measure int
}

// measures are how far an output is from the baseline's.
var measures = []func(Difference) float64{distance, bad}

type outlier struct {
	distance float64
	kept     Kept
}

// A chosen output is one that the reference is asked about.
type chosen struct {
	Kept
	dist distribution.Kind
}

func newWitness(r *Timing) *witness {
	w := &witness{timing: r, chosen: map[int]bool{}, farthest: map[extreme]*outlier{}}
	launches := 2*r.plan.Pairs*r.series.Batch + r.plan.LoneLaunches(r.series.Batch, len(r.series.Distributions)) // as many as there are at least
	for range min(r.plan.References, launches) {
		w.chosen[r.rng.IntN(launches)] = true
	}
	r.series.Verified, r.series.Worst, r.series.AgainstBaseline = 0, &gates.Errors{}, &gates.Errors{}
	return w
}

// distance puts what cannot be measured beyond everything that can.
func distance(d Difference) float64 {
	switch e := d.Errors; {
	case d.Same:
		return 0
	case e.NaN+e.Inf+e.Unwritten > 0:
		return 1e300 * float64(e.NaN+e.Inf+e.Unwritten)
	default:
		// Both figures count: one wrong element among many shows in the maximum alone.
		return e.Norm + e.MaxAbs
	}
}

// bad is how many elements are beyond the tolerance.
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

// seeFarthest keeps the output that is farthest by a measure, where it is farther
// than those before it. One that no element of is bad need not be kept for that.
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

// check asks the reference. Where an element is beyond the tolerance, both sides' figures
// are recorded: the baseline may be as wrong on the same input.
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
