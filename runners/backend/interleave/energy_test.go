package interleave

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// A repeating bench is a fake whose clock advances with every launch: 10 µs for one of the baseline, 8 µs for one of the candidate,
// and 20 µs to restore memory.
type repeating struct {
	*fake
	now      time.Time
	reading  int
	segments int
	passes   map[rune]int
	skips    bool          // the candidate leaves out its work in all passes but the first
	restored map[rune]bool // since the last pass
}

func newRepeating() *repeating {
	f := newFake()
	f.ran = map[rune]bool{}
	return &repeating{fake: f, passes: map[rune]int{}, restored: map[rune]bool{}}
}

func (r *repeating) Restore(side rune, launches int) error {
	if launches != len(r.current) {
		r.broken("%d of %d inputs were restored", launches, len(r.current))
	}
	r.restored[side] = true
	r.now = r.now.Add(20 * time.Microsecond)
	return nil
}

func (r *repeating) Pass(side rune, launches int) (Times, error) {
	if !r.restored[side] || r.reading != 1 {
		r.broken("a pass of %c while %d meters read; its memory was restored: %v", side, r.reading, r.restored[side])
	}
	r.restored[side], r.ran[side] = false, true
	r.passes[side]++
	each := 10 * time.Microsecond
	if side == gates.SideCandidate {
		each = 8 * time.Microsecond
	}
	r.now = r.now.Add(time.Duration(launches) * each)
	return Times{Device: time.Duration(launches) * each}, r.step()
}

func (r *repeating) Rest(rune) error { return r.step() }

func (r *repeating) Begin() func() gates.EnergySegment {
	r.reading++
	r.segments++
	return func() gates.EnergySegment {
		r.reading--
		return gates.EnergySegment{}
	}
}

func (r *repeating) Compare(launches int) ([]Difference, error) {
	all, err := r.fake.Compare(launches)
	for i := range all {
		if r.skips && r.passes[gates.SideCandidate] > 1 {
			all[i].Errors.Unwritten = 8
		}
	}
	return all, err
}

func (r *repeating) Keep(launch int) (Kept, error) {
	k, err := r.fake.Keep(launch)
	if err == nil {
		k.(*fakeKept).wrong = r.skips
	}
	return k, err
}

func measureEnergy(r *repeating, seed uint64) (gates.EnergySeries, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &gates.Series{Shape: "mission", Batch: 1 + rng.IntN(50), Seed: seed, Distributions: []string{"normal", "large"}}
	timing := New(r, s, Plan{Warm: 2, References: 4, Separation: gates.SeparationOf(nil)}, rng)
	e, err := timing.Energy(r, r, EnergyPlan{Pairs: gates.EnergyPairs, Launches: 2 * time.Millisecond, Segment: 3 * time.Millisecond, Now: func() time.Time { return r.now }})
	if err == nil {
		err = timing.Check()
		e.Series = *s
	}
	return e, err
}

func TestEnergySegments(t *testing.T) {
	mirrored := map[string]bool{}
	for seed := range uint64(12) {
		r := newRepeating()
		e, err := measureEnergy(r, seed)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.bad) > 0 || r.live != 0 || r.reading != 0 {
			t.Fatalf("%v; %d outputs were not dropped, %d meters read", r.bad, r.live, r.reading)
		}
		if len(e.Segments) != 2*gates.EnergyPairs || len(e.Nanos) != len(e.Segments) || len(e.Rests) != gates.EnergyPairs/restEvery || r.segments != len(e.Segments)+len(e.Rests) {
			t.Fatalf("%d segments, %d times, %d rests", len(e.Segments), len(e.Nanos), len(e.Rests))
		}
		if e.Verified != gates.EnergyPairs*e.Batch || e.Referenced == 0 {
			t.Fatalf("%d outputs were verified and %d compared with the reference", e.Verified, e.Referenced)
		}
		at := 0
		for _, pair := range strings.Fields(e.Order) {
			for _, side := range pair {
				each := map[rune]float64{gates.SideBaseline: 10e3, gates.SideCandidate: 8e3}[side]
				s := e.Segments[at]
				if e.Nanos[at] != each || float64(s.Passes*e.Batch)*each < 2e6 || s.Seconds < 0.003 {
					t.Fatalf("segment %d of %c: %+v, %v ns a launch", at, side, s, e.Nanos[at])
				}
				at++
			}
		}
		for i := 0; i < len(e.Order); i += 6 {
			if e.Order[i:i+2] == e.Order[i+3:i+5] {
				t.Fatalf("the pairs do not mirror each other: %s", e.Order)
			}
			mirrored[e.Order[i:i+5]] = true
		}
	}
	if len(mirrored) != 2 {
		t.Errorf("pairs begin with one side only: %v", mirrored)
	}
}

// TestSkippedWorkIsSeen: a candidate that leaves out its work in later passes leaves poison in the last one.
func TestSkippedWorkIsSeen(t *testing.T) {
	r := newRepeating()
	r.skips = true
	e, err := measureEnergy(r, 1)
	if err != nil {
		t.Fatal(err)
	}
	if e.Worst.Bad == 0 {
		t.Errorf("the worst output is %+v", e.Worst)
	}
}

func TestEnergyEndsWithAFailure(t *testing.T) {
	for _, at := range []int{3, 50, 500} {
		r := newRepeating()
		r.failAt, r.fail = at, &Failed{gates.Failure{Kind: gates.FailureCrash, Detail: "it crashed"}}
		e, err := measureEnergy(r, 7)
		failure, fault := Failure(err)
		if failure == nil || fault != nil || r.reading != 0 || r.live != 0 {
			t.Fatalf("call %d: %v, %v; %d meters read, %d outputs were not dropped", at, failure, err, r.reading, r.live)
		}
		if len(e.Segments)%2 != 0 || len(e.Segments) != len(e.Nanos) {
			t.Fatalf("call %d: %d segments and %d times", at, len(e.Segments), len(e.Nanos))
		}
	}
	r := newRepeating()
	r.failAt, r.fail = 100, errFault
	if _, err := measureEnergy(r, 7); !errors.Is(err, errFault) {
		t.Errorf("a fault became %v", err)
	}
}

// TestSegmentsAreBounded: where restoring memory takes much longer than launching, a segment does not wait for its launches.
func TestSegmentsAreBounded(t *testing.T) {
	r := newRepeating()
	timing := New(r, &gates.Series{Shape: "s", Batch: 1}, Plan{}, rand.New(rand.NewPCG(1, 1)))
	r.current = make([]uint64, 1)
	g := &segments{Timing: timing, bench: r, meter: r, plan: EnergyPlan{Launches: time.Second, Segment: 10 * time.Millisecond, Now: func() time.Time { return r.now }}}
	if err := g.take(gates.SideBaseline, true); err != nil || g.done[0].Seconds < 0.04 || g.done[0].Seconds > 0.06 {
		t.Errorf("%+v, %v", g.done, err)
	}
}
