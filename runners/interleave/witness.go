package interleave

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
)

// A witness sees every output of the candidate's timed launches. All of them are
// compared with the baseline's on the same input. With the reference, which is
// slow, it compares those of a random choice, made before anything was run, and
// of each distribution the one that is farthest from the baseline's: a kernel
// that is wrong now and then is farthest from it then.
type witness struct {
	run      *Run
	chosen   map[int]bool // launches, counted over the series
	seen     int
	kept     []Kept
	farthest map[kernels.Distribution]*outlier
}

type outlier struct {
	distance float64
	kept     Kept
}

func newWitness(r *Run) *witness {
	w := &witness{run: r, chosen: map[int]bool{}, farthest: map[kernels.Distribution]*outlier{}}
	launches := 2 * r.plan.Pairs * r.series.Batch
	for range min(r.plan.References, launches) {
		w.chosen[r.rng.IntN(launches)] = true
	}
	r.series.Verified, r.series.Worst, r.series.Beside = 0, &gates.Errors{}, &gates.Errors{}
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

// see compares the outputs of the last draw.
func (w *witness) see(dist kernels.Distribution) error {
	all, err := w.run.bench.Compare(w.run.series.Batch)
	if err != nil {
		return err
	}
	far := 0
	for i, d := range all {
		if distance(d) > distance(all[far]) {
			far = i
		}
		if w.chosen[w.seen+i] {
			k, err := w.run.bench.Keep(i)
			if err != nil {
				return err
			}
			w.kept = append(w.kept, k)
		}
		runners.Worse(w.run.series.Beside, &d.Errors)
	}
	w.seen += len(all)
	w.run.series.Verified += len(all)
	was := w.farthest[dist]
	if was != nil && distance(all[far]) <= was.distance {
		return nil
	}
	k, err := w.run.bench.Keep(far)
	if err != nil {
		return err
	}
	if was != nil {
		was.kept.Drop()
	}
	w.farthest[dist] = &outlier{distance(all[far]), k}
	return nil
}

// check asks the reference.
func (w *witness) check() error {
	for _, k := range w.all() {
		e, err := k.Check()
		if err != nil {
			return err
		}
		runners.Worse(w.run.series.Worst, e)
		w.run.series.Referenced++
	}
	return nil
}

func (w *witness) all() []Kept {
	all := w.kept
	for _, o := range w.farthest {
		all = append(all, o.kept)
	}
	return all
}

func (w *witness) drop() {
	for _, k := range w.all() {
		k.Drop()
	}
}
