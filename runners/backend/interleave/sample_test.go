package interleave

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// TestTwice checks that two values within the tolerance of a third are never beyond twice the
// tolerance of each other, up to the very edge, and that they may come close to it.
func TestTwice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	within := func(x, want float64, tol manifest.Tolerance) bool {
		return math.Abs(x-want) <= tol.Abs+tol.Rel*math.Abs(want)
	}
	closest := 0.0
	for range 50_000 {
		tol := manifest.Tolerance{Abs: math.Exp(10 * rng.NormFloat64()), Rel: rng.Float64()}
		if rng.IntN(4) == 0 {
			tol.Abs = 0
		}
		if rng.IntN(4) == 0 {
			tol.Rel = 0
		}
		want := rng.NormFloat64() * math.Exp(5*rng.NormFloat64())
		edge := tol.Abs + tol.Rel*math.Abs(want)
		a, b := want+edge*(2*rng.Float64()-1), want+edge*(2*rng.Float64()-1)
		if rng.IntN(2) == 0 {
			a, b = want+edge, want-edge
		}
		if !within(a, want, tol) || !within(b, want, tol) {
			continue // rounding
		}
		if !within(a, b, twice(tol)) {
			t.Fatalf("%g and %g are within %+v of %g, and beyond %+v of each other", a, b, tol, want, twice(tol))
		}
		closest = max(closest, math.Abs(a-b)/(twice(tol).Abs+twice(tol).Rel*math.Abs(b)))
	}
	if closest < 0.99 {
		t.Errorf("two right values come only to %.2f of the bound", closest)
	}
	for _, rel := range []float64{1, 2} {
		if !within(-1e300, 1e300, twice(manifest.Tolerance{Rel: rel})) {
			t.Errorf("a relative tolerance of %v bounds something", rel)
		}
	}
}

// TestRoom checks the bounds on kept outputs: in number and in memory.
func TestRoom(t *testing.T) {
	for bytes, want := range map[int]int{0: 64, 1 << 10: 64, 2 << 20: 64, 4 << 20: 32, 1 << 30: 4} {
		if got := Room(bytes, 4, 64); got != want {
			t.Errorf("%d outputs of %d bytes are kept, want %d", got, bytes, want)
		}
	}
}

// A simulated candidate decides by the seed of a launch how its output differs from the baseline's,
// and whether it is wrong.
type simulated struct {
	*fake
	output   func(seed uint64) (d Difference, wrong bool)
	wrong    int  // launches that are wrong
	offBase  bool // the baseline is wrong where the outputs are apart, and the candidate is right
	checked  int
	perCheck time.Duration
	now      time.Time
}

func (s *simulated) Compare(launches int) ([]Difference, error) {
	all := make([]Difference, launches)
	for i := range all {
		var wrong bool
		if all[i], wrong = s.output(s.current[i]); wrong {
			s.wrong++
		}
		all[i].Errors.Elements = 100
	}
	return all, nil
}

func (s *simulated) Keep(launch int) (Kept, error) {
	_, wrong := s.output(s.current[launch])
	return &simulatedKept{s, wrong}, nil
}

func (s *simulated) Single(batch, warm int) (Bench, int, error) {
	return s, warm + 1, nil
}

type simulatedKept struct {
	of    *simulated
	wrong bool
}

func (k *simulatedKept) Check() (candidate, baseline *gates.Errors, err error) {
	k.of.checked++
	k.of.now = k.of.now.Add(k.of.perCheck)
	e, b := &gates.Errors{Elements: 100}, &gates.Errors{Elements: 100}
	if k.wrong {
		e.Bad = 2
	}
	if k.of.offBase {
		b.Bad = 2
	}
	return e, b, nil
}

func (k *simulatedKept) Drop() {}

// run takes a series of 20 draws of 128 launches, as one shape of a round is.
func (s *simulated) run(t *testing.T, seed uint64) *gates.Series {
	t.Helper()
	s.fake = newFake()
	series := &gates.Series{Shape: "mission", Batch: 128, Seed: seed, Distributions: []string{"normal", "large"}}
	plan := Plan{Pairs: 10, References: 4, Apart: 64, Separation: gates.SeparationOf(nil), Now: func() time.Time { return s.now }}
	r := New(s, series, plan, rand.New(rand.NewPCG(seed, 3)))
	if err := r.Measure(); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return series
}

// Outputs of simulated candidates.
var (
	near  = Difference{Errors: gates.Errors{Norm: 1e-3, MaxAbs: 1e-3}}
	decoy = Difference{Errors: gates.Errors{Norm: 1, MaxAbs: 10, Bad: 50}} // as far as a right output can be
	wrong = Difference{Errors: gates.Errors{Norm: 0.1, MaxAbs: 1, Bad: 2}, Far: 2}
	edge  = Difference{Errors: gates.Errors{Norm: 0.1, MaxAbs: 1, Bad: 2}} // wrong, and within twice the tolerance
)

// TestDecoys checks that launches at the edge of the tolerance do not hide launches that are wrong,
// however many of them there are: a single wrong launch of a series is found.
func TestDecoys(t *testing.T) {
	for _, share := range []uint64{64, 2, 1} { // one in so many is a decoy
		for n := range uint64(10) {
			once := uint64(0)
			s := &simulated{output: func(seed uint64) (Difference, bool) {
				switch {
				case once == 0 && seed%500 == 7 || seed == once:
					once = seed
					return wrong, true
				case seed%share == 0:
					return decoy, false
				}
				return near, false
			}}
			series := s.run(t, n)
			if s.wrong != 1 || series.Worst.Bad != 2 || *series.Apart != (gates.Sampled{Launches: 1, Compared: 1}) {
				t.Fatalf("one in %d is a decoy: %d wrong launches, %+v are apart, and the reference saw %+v", share, s.wrong, *series.Apart, series.Worst)
			}
			if series.Beyond.Compared != 4 || series.Beyond.Launches < 10 {
				t.Fatalf("%+v are beyond the tolerance", *series.Beyond)
			}
		}
	}
}

// TestEveryLaunchMayBeChosen checks that the random sample has no blind spot: over many series each
// launch is in it about equally often, the first and the last too.
func TestEveryLaunchMayBeChosen(t *testing.T) {
	const series, launches, size = 2000, 50, 4
	rng := rand.New(rand.NewPCG(5, 5))
	var times [launches]int
	for range series {
		s := sample{size: size}
		at := map[int]int{}
		for i := range launches {
			keep := func() (chosen, error) {
				at[i] = 1
				return chosen{Kept: &numbered{i, at}}, nil
			}
			if err := s.offer(rng, keep); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.kept) != size || len(at) != size {
			t.Fatalf("%d are kept, and %d were not dropped", len(s.kept), len(at))
		}
		for i := range at {
			times[i]++
		}
	}
	want := float64(series * size / launches)
	for i, n := range times {
		if math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
			t.Errorf("launch %d was chosen %d times, want about %.0f", i, n, want)
		}
	}
}

type numbered struct {
	n    int
	kept map[int]int
}

func (k *numbered) Check() (candidate, baseline *gates.Errors, err error) { return nil, nil, nil }
func (k *numbered) Drop()                                                 { delete(k.kept, k.n) }

// TestWrongLaunchesAmongAWrongBaselines checks the sample of outputs that are apart because the
// baseline is wrong. A wrong launch is in it with the probability n/s.
func TestWrongLaunchesAmongAWrongBaselines(t *testing.T) {
	const runs = 100
	found, expected := 0, 0.0
	for n := range uint64(runs) {
		s := &simulated{offBase: true}
		s.output = func(seed uint64) (Difference, bool) {
			if seed%2 == 0 {
				return wrong, seed%64 == 0 // one in 32 of those that are apart
			}
			return near, false
		}
		series := s.run(t, n)
		if series.Apart.Compared != 64 || series.Apart.Launches < 1000 {
			t.Fatalf("%+v are apart", *series.Apart)
		}
		rate := float64(series.Apart.Compared) / float64(series.Apart.Launches)
		expected += 1 - math.Exp(-rate*float64(s.wrong))
		if series.Worst.Bad > 0 {
			found++
		}
	}
	if d := math.Abs(float64(found) - expected); d > 4*math.Sqrt(runs)/2 || expected < runs/2 {
		t.Errorf("wrong launches were found in %d of %d runs, want about %.0f", found, runs, expected)
	}
}

// TestComparingTakesLong checks that a slow reference ends the comparing of outputs that are apart,
// that the count says so, and that as many are compared as of any other sample.
func TestComparingTakesLong(t *testing.T) {
	for cost, want := range map[time.Duration]int{time.Millisecond: 64, 100 * time.Millisecond: 21, 5 * time.Second: 4} {
		s := &simulated{perCheck: cost, now: time.Unix(0, 0), offBase: true, output: func(uint64) (Difference, bool) { return wrong, false }}
		series := s.run(t, 1)
		if series.Apart.Compared != want || series.Apart.Launches != series.Verified || s.checked != series.Referenced {
			t.Errorf("%v a comparison: %+v of %d, %d checked, want %d", cost, *series.Apart, series.Verified, s.checked, want)
		}
	}
}

// TestWithinTwiceTheTolerance checks the sample of launches whose elements are beyond the tolerance
// of the baseline's, but not apart: those that are wrong are in it with the probability n/s.
func TestWithinTwiceTheTolerance(t *testing.T) {
	found := 0
	const runs = 50
	for n := range uint64(runs) {
		s := &simulated{output: func(seed uint64) (Difference, bool) {
			switch {
			case seed%128 == 2:
				return edge, true
			case seed%128 == 1:
				return decoy, false
			}
			return near, false
		}}
		if series := s.run(t, n); series.Apart.Launches != 0 {
			t.Fatalf("%+v are apart", *series.Apart)
		} else if series.Worst.Bad > 0 {
			found++
		}
	}
	if found < runs*8/10 { // half of them are wrong, and four are compared: 1 - 1/16
		t.Errorf("wrong launches were found in %d of %d series", found, runs)
	}
}
