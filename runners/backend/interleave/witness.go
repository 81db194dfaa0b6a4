package interleave

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// A witness sees every output of the candidate's launches except warm-up launches. It compares all
// of them with the baseline's on the same input. With the reference, which is slow, it compares
//
//   - a random sample of all outputs;
//   - a random sample of those that are apart from the baseline's, so that one of the two is wrong:
//     all of them, up to a budget;
//   - a random sample of the others with an element beyond the manifest's tolerance of the
//     baseline's;
//   - for each distribution the output that is farthest from the baseline's, and the output with
//     the most elements beyond the tolerance.
//
// The extremes alone can be deceived: launches that are right, but as far from the baseline as that
// allows, can keep launches that are wrong from being the farthest. They cannot be apart.
type witness struct {
	timing   *Timing
	rng      *rand.Rand
	any      sample
	apart    sample
	beyond   sample
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

func newWitness(r *Timing) *witness {
	r.series.Verified, r.series.Worst, r.series.AgainstBaseline = 0, &gates.Errors{}, &gates.Errors{}
	return &witness{
		timing: r, rng: rand.New(rand.NewPCG(r.rng.Uint64(), 2)), farthest: map[extreme]*outlier{},
		any: sample{size: r.plan.References}, apart: sample{size: max(r.plan.Apart, r.plan.References)}, beyond: sample{size: r.plan.References},
	}
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
		keep := func() (chosen, error) {
			k, err := b.Keep(i)
			return chosen{k, dist}, err
		}
		for _, s := range w.samplesOf(d) {
			if err := s.offer(w.rng, keep); err != nil {
				return err
			}
		}
		runners.Worse(w.timing.series.AgainstBaseline, &d.Errors)
	}
	w.timing.series.Verified += len(all)
	for m, measure := range measures {
		if err := w.seeFarthest(b, extreme{dist, m}, measure, all); err != nil {
			return err
		}
	}
	return nil
}

// samplesOf returns the samples that an output may be in.
func (w *witness) samplesOf(d Difference) []*sample {
	switch {
	case d.Same:
		return []*sample{&w.any}
	case w.timing.plan.Separation.Apart(d.Errors, d.Far):
		return []*sample{&w.any, &w.apart}
	case d.Errors.Bad > 0:
		return []*sample{&w.any, &w.beyond}
	}
	return []*sample{&w.any}
}

// seeFarthest keeps the output that is farthest by a measure, if it is farther than all before it.
// An output that is no farther than the baseline's own need not be kept: the samples have such ones.
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
	case measure(all[far]) == 0:
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

// check compares with the reference. The outputs that are apart come last, in random order: if the
// time runs out, those that were compared are still a random sample.
func (w *witness) check() error {
	s := w.timing.series
	for _, k := range w.always() {
		if err := w.compare(k); err != nil {
			return err
		}
	}
	s.Beyond = &gates.Sampled{Launches: w.beyond.offered, Compared: len(w.beyond.kept)}
	s.Apart = &gates.Sampled{Launches: w.apart.offered}
	late := w.timing.plan.deadline()
	w.rng.Shuffle(len(w.apart.kept), func(i, k int) { w.apart.kept[i], w.apart.kept[k] = w.apart.kept[k], w.apart.kept[i] })
	for _, k := range w.apart.kept {
		if s.Apart.Compared >= w.timing.plan.References && late() {
			break
		}
		if err := w.compare(k); err != nil {
			return err
		}
		s.Apart.Compared++
	}
	return nil
}

// compare compares one output with the reference. If an element is beyond the tolerance, both
// sides' figures are recorded, because the baseline may be as wrong on the same input.
func (w *witness) compare(k chosen) error {
	e, baseline, err := k.Check()
	if err != nil {
		return err
	}
	s := w.timing.series
	runners.Worse(s.Worst, e)
	s.Referenced++
	if e.Bad > 0 || baseline.Bad > 0 {
		e.Outputs, baseline.Outputs = nil, nil // nobody judges a timed launch output by output
		s.Outputs = append(s.Outputs, gates.TimedOutput{Distribution: string(k.dist), Candidate: *e, Baseline: *baseline})
	}
	return nil
}

// deadline starts the time for comparing outputs that are apart, and returns a function that
// reports whether it is over.
func (p Plan) deadline() func() bool {
	if p.Now == nil {
		return func() bool { return false }
	}
	start := p.Now()
	return func() bool { return p.Now().Sub(start) > apartTime }
}

// apartTime is how long outputs of one series that are apart are compared, once as many were as in
// any other sample.
const apartTime = 2 * time.Second

// always returns the outputs that are compared whatever it costs.
func (w *witness) always() []chosen {
	all := slices.Concat(w.any.kept, w.beyond.kept)
	for at, o := range w.farthest {
		all = append(all, chosen{o.kept, at.dist})
	}
	return all
}

func (w *witness) drop() {
	for _, k := range slices.Concat(w.always(), w.apart.kept) {
		k.Drop()
	}
}
