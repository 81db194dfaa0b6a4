package interleave

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A dry bench fails at one of the draws.
type dry struct {
	*fake
	failAt, drawn int
}

func (d *dry) Draw(dist distribution.Kind, seeds []uint64) error {
	if d.drawn++; d.drawn == d.failAt {
		return errFault
	}
	return d.fake.Draw(dist, seeds)
}

func (d *dry) Single(batch, warm int) (Bench, int, error) {
	b, launches, err := d.fake.Single(batch, warm)
	return &drySingle{b, d}, launches, err
}

type drySingle struct {
	Bench
	of *dry
}

func (d *drySingle) Draw(dist distribution.Kind, seeds []uint64) error {
	return d.of.Draw(dist, seeds)
}

// TestFaultOfAnyDraw checks that whichever draw or warm-up fails, the fault is returned, whole
// blocks stay, and no output is kept.
func TestFaultOfAnyDraw(t *testing.T) {
	run := func(failAt int) (*dry, *gates.Series, error) {
		d := &dry{fake: newFake(), failAt: failAt}
		d.state = true
		s := &gates.Series{Shape: "mission", Batch: 2, Seed: 7, Distributions: []string{"normal"}}
		r := New(d, s, Plan{Pairs: 4, Warm: 2, References: 1}, rand.New(rand.NewPCG(1, 2)))
		if err := r.Alone(); err != nil {
			return d, s, err
		}
		if err := r.Measure(); err != nil {
			return d, s, err
		}
		return d, s, r.Check()
	}
	whole, _, err := run(0)
	if err != nil || whole.drawn == 0 {
		t.Fatal(whole.drawn, err)
	}
	for at := 1; at <= whole.drawn; at++ {
		d, s, err := run(at)
		if !errors.Is(err, errFault) || d.drawn != at {
			t.Fatalf("draw %d of %d: %v after %d draws", at, whole.drawn, err, d.drawn)
		}
		if d.live != 0 || len(d.bad) > 0 || len(s.Nanos)%6 != 0 || len(s.Nanos) != len(s.Wall) {
			t.Fatalf("draw %d: %d outputs are kept, %v, %d samples", at, d.live, d.bad, len(s.Nanos))
		}
	}
}

// TestFaultWhileWarmingUp checks that failures of warm-up launches are returned as well.
func TestFaultWhileWarmingUp(t *testing.T) {
	for at := 1; at <= 3; at++ {
		f := newFake()
		f.failAt, f.fail = at, errFault
		s := &gates.Series{Shape: "mission", Batch: 1, Seed: 7, Distributions: []string{"normal"}}
		if err := New(f, s, Plan{Pairs: 4, Warm: 1}, rand.New(rand.NewPCG(1, 2))).Measure(); !errors.Is(err, errFault) || len(s.Nanos) != 0 {
			t.Errorf("launch %d: %v, %d samples", at, err, len(s.Nanos))
		}
	}
}

// TestCounts checks that a quarter of the pairs, and at least four, run solo and keep their state,
// and that half of them, and two for each kind of input, run alone if samples are batches.
func TestCounts(t *testing.T) {
	for _, c := range []struct{ pairs, batch, extra, singles int }{
		{1, 1, 4, 0}, {1, 2, 4, 2}, {16, 2, 4, 8}, {20, 2, 5, 10}, {20, 1, 5, 0}, {40, 3, 10, 20},
	} {
		f := newFake()
		f.state = true
		s := &gates.Series{Shape: "mission", Batch: c.batch, Seed: 7, Distributions: []string{"normal"}}
		r := New(f, s, Plan{Pairs: c.pairs}, rand.New(rand.NewPCG(1, 2)))
		if err := r.Alone(); err != nil {
			t.Fatal(err)
		}
		if err := r.Measure(); err != nil {
			t.Fatal(err)
		}
		if len(s.Solo) != c.extra || len(s.Stateful) != c.extra || f.single[gates.SideCandidate] != c.singles || (Plan{Pairs: c.pairs}).SingleLaunches(c.batch, 1) != c.singles {
			t.Errorf("%d pairs of batches of %d: %d solo, %d kept, %d alone", c.pairs, c.batch, len(s.Solo), len(s.Stateful), f.single[gates.SideCandidate])
		}
		if s.Solo[0] != 1000 || s.Stateful[0] != 1000 {
			t.Errorf("times per launch: %v solo, %v kept", s.Solo[0], s.Stateful[0])
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLaunchesBefore checks that one to eight launches warm up for one that runs alone, and fewer
// than a batch has.
func TestLaunchesBefore(t *testing.T) {
	for batch, most := range map[int]int{2: 1, 3: 2, 9: 8, 32: 8} {
		b := newFake()
		s := &gates.Series{Shape: "mission", Batch: batch, Seed: 7, Distributions: []string{"normal"}}
		if err := New(b, s, Plan{Pairs: 400}, rand.New(rand.NewPCG(1, 2))).Measure(); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= most; n++ {
			if !b.warm[n] {
				t.Errorf("a batch of %d: never %d before", batch, n)
			}
		}
		if len(b.warm) != most {
			t.Errorf("a batch of %d: %v before", batch, b.warm)
		}
	}
}

// TestReferences checks that the output with the largest distance in its distribution is checked,
// by both measures, and the randomly chosen references. If all outputs are the baseline's, none is
// the farthest.
func TestReferences(t *testing.T) {
	for _, references := range []int{0, 3, 1000} {
		f, farthest := newFake(), 2
		if references == 3 {
			f.same, farthest = true, 0
		}
		s := &gates.Series{Shape: "mission", Batch: 1, Seed: 7, Distributions: []string{"normal", "uniform"}}
		r := New(f, s, Plan{Pairs: 4, References: references, Separation: gates.SeparationOf(nil)}, rand.New(rand.NewPCG(1, 2)))
		if err := r.Measure(); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		if want := farthest + min(references, 8); s.Referenced != want {
			t.Errorf("%d references: %d outputs were compared", references, s.Referenced)
		}
	}
}
