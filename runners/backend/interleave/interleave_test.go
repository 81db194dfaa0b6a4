package interleave

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// measure takes a series of random size from a bench.
func measure(f *fake, rng *rand.Rand) (*gates.Series, Plan, error) {
	dists := []string{"normal", "uniform", "large", "constant"}[:1+rng.IntN(4)]
	s := &gates.Series{Shape: "mission", Batch: 1 + rng.IntN(5), Seed: rng.Uint64() >> 16, Distributions: dists}
	plan := Plan{Pairs: 1 + rng.IntN(9), References: rng.IntN(5), Separation: gates.SeparationOf(nil)}
	r := New(f, s, plan, rng)
	if err := r.Alone(); err != nil {
		return s, plan, err
	}
	if err := r.Measure(); err != nil {
		return s, plan, err
	}
	return s, plan, r.Check()
}

// parsed writes a series to a file and reads it.
func parsed(t *testing.T, s *gates.Series, failure *gates.Failure) *gates.Series {
	t.Helper()
	e := &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: "k", Shapes: []gates.Shape{{Name: s.Shape}},
		Performance: &gates.Performance{Rounds: []gates.Round{{Attempt: 1, Series: []gates.Series{*s}, Failure: failure}}},
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := gates.ParseEvidence("evidence.json", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return &back.Performance.Rounds[0].Series[0]
}

func TestSeries(t *testing.T) {
	for n := range uint64(300) {
		f := newFake()
		f.state = n%2 == 0
		s, plan, err := measure(f, rand.New(rand.NewPCG(n, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.bad) > 0 || f.live != 0 {
			t.Fatalf("run %d: %v; %d outputs were not dropped", n, f.bad, f.live)
		}
		outputs := (2*plan.Pairs+len(s.Stateful))*s.Batch + f.alone // those that found the state of others are compared too
		if len(s.Nanos) != 6*plan.Pairs || len(s.Wall) != len(s.Nanos) || s.Verified != outputs || f.timed != 2*plan.Pairs+len(s.Stateful) {
			t.Fatalf("run %d: %d samples, %d on the wall, %d of %d outputs verified", n, len(s.Nanos), len(s.Wall), s.Verified, outputs)
		}
		if s.Referenced < 1 || s.Referenced > plan.References+len(s.Distributions) || s.Worst.Bad != 0 || s.AgainstBaseline.MaxAbs > 0.01 {
			t.Fatalf("run %d: %d outputs beside the reference, worst %+v, beside the baseline %+v", n, s.Referenced, s.Worst, s.AgainstBaseline)
		}
		count := plan.SingleLaunches(s.Batch, len(s.Distributions))
		if s.Single != nil && (len(s.Single.Candidate) != count || len(s.Single.Baseline) != count || !s.Single.Isolated || s.Single.Candidate[0] != 3000 || f.alone < 2*count) {
			t.Fatalf("run %d: %+v of %d launches that ran alone, after others; want %d a side", n, s.Single, f.alone, count)
		}
		if f.single[gates.SideBaseline] != count || f.single[gates.SideCandidate] != count {
			t.Fatalf("run %d: %v launches ran alone, want %d of both", n, f.single, count)
		}
		if (s.Single != nil) != (s.Batch > 1) || (len(s.Stateful) > 0) != f.state || len(s.Solo) < 4 || s.Nanos[0] != 1000 || s.Wall[0] != 2000 {
			t.Fatalf("run %d: %+v", n, s)
		}
		if n := len(s.States.ClockMHz); n != plan.Pairs || len(s.States.Watts) != n || s.States.ClockMHz[0] <= s.States.ClockMHz[n-1] && n > 1 || n > 2 && s.States.Celsius != nil {
			t.Fatalf("run %d: %d pairs, and the device was %+v", n, plan.Pairs, s.States)
		}
		if back := parsed(t, s, nil); !reflect.DeepEqual(back, s) {
			t.Fatalf("run %d: a file changed the series:\n%+v\n%+v", n, s, back)
		}
	}
}

// TestOrderIsWhatRan checks that the sides run in the recorded order, half a block per draw, and
// that every block is mirrored and draws from the distribution that the evidence names.
func TestOrderIsWhatRan(t *testing.T) {
	for n := range uint64(100) {
		f := newFake()
		s, plan, err := measure(f, rand.New(rand.NewPCG(n, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var halves []string
		dists := slices.Clone(f.dists)
		for i, ran := range strings.Split(f.order[1:], " ") {
			if len(ran) == 3 {
				halves = append(halves, ran)
				if want := s.Distributions[(len(halves)-1)/2%len(s.Distributions)]; string(dists[i]) != want {
					t.Fatalf("half %d was drawn from %s, want %s", len(halves)-1, dists[i], want)
				}
			}
		}
		if got := strings.Join(halves, ""); got != strings.ReplaceAll(s.Order, " ", "") || len(halves) != 2*plan.Pairs {
			t.Fatalf("ran %v, the order says %s", halves, s.Order)
		}
		for block := range strings.FieldsSeq(s.Order) {
			back := []byte(block)
			slices.Reverse(back)
			if string(back) != block {
				t.Fatalf("block %s does not mirror itself", block)
			}
		}
	}
}

// TestTimedSeeds checks that the seeds of the timed launches are those that anyone can draw again.
func TestTimedSeeds(t *testing.T) {
	f := newFake()
	s, plan, err := measure(f, rand.New(rand.NewPCG(3, 3)))
	if err != nil {
		t.Fatal(err)
	}
	for half := range 2 * plan.Pairs {
		for launch := range s.Batch {
			if seed := s.DrawSeed("timed", half, launch); f.seeds[seed] != 1 {
				t.Errorf("launch %d of half %d was not drawn from its seed", launch, half)
			}
		}
	}
}

// TestOneWrongLaunch checks that one wrong output anywhere is compared with the reference, however
// few outputs are chosen at random.
func TestOneWrongLaunch(t *testing.T) {
	for n := range uint64(300) {
		rng := rand.New(rand.NewPCG(n, 2))
		f := newFake()
		f.wrongDraw, f.wrongLaunch, f.wrongBy = 0, 0, 0.02
		first, plan, err := measure(f, rand.New(rand.NewPCG(n, 2)))
		if err != nil {
			t.Fatal(err)
		}
		f = newFake()
		f.wrongDraw, f.wrongLaunch, f.wrongBy = int(n)%(2*plan.Pairs), int(n)%first.Batch, 0.02
		s, _, err := measure(f, rng)
		if err != nil {
			t.Fatal(err)
		}
		if s.Worst.Bad != 8 || s.AgainstBaseline.MaxAbs != 0.02 {
			t.Fatalf("run %d: launch %d of draw %d was wrong: the reference saw %+v, the baseline %+v", n, f.wrongLaunch, f.wrongDraw, s.Worst, s.AgainstBaseline)
		}
	}
}

// TestLeavesWorkToTheNext checks that a candidate that leaves the work of a launch to the next is
// right in every batch of its kind, and wrong if no launch follows.
func TestLeavesWorkToTheNext(t *testing.T) {
	for n := range uint64(100) {
		f := newFake()
		f.leaves = true
		s, _, err := measure(f, rand.New(rand.NewPCG(n, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if s.Batch > 1 && (s.Worst.Bad != 8 || s.AgainstBaseline.Unwritten != 8) {
			t.Fatalf("run %d: the reference saw %+v, the baseline %+v", n, s.Worst, s.AgainstBaseline)
		}
	}
}

// TestOneWrongLaunchWithinTheOthersSpread checks the same for an output that is wrong where the
// expected values are small: none of its figures is large, but elements are beyond the tolerance.
func TestOneWrongLaunchWithinTheOthersSpread(t *testing.T) {
	for n := range uint64(100) {
		f := newFake()
		f.wrongDraw, f.wrongLaunch, f.wrongBy, f.wrongBad = 0, 0, 1e-9, 1
		s, _, err := measure(f, rand.New(rand.NewPCG(n, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if s.Worst.Bad != 8 || s.AgainstBaseline.Bad != 1 {
			t.Fatalf("run %d: the reference saw %+v, the baseline %+v", n, s.Worst, s.AgainstBaseline)
		}
	}
}

// TestDistance checks that differences that cannot be measured are farther than all that can.
func TestDistance(t *testing.T) {
	far := distance(Difference{Errors: gates.Errors{MaxAbs: 1e200, Norm: 1e200}})
	for _, e := range []gates.Errors{{NaN: 1}, {Inf: 1}, {Unwritten: 1}} {
		if d := distance(Difference{Errors: e}); d <= far {
			t.Errorf("%+v is at %g, a number far off at %g", e, d, far)
		}
	}
	if d := distance(Difference{Same: true}); d != 0 {
		t.Errorf("the same bits are %g apart", d)
	}
}

// TestFailureAnywhere checks that wherever the candidate fails, what was measured before can be
// read, and no output is kept. A fault of the runner is distinguished from that.
func TestFailureAnywhere(t *testing.T) {
	for _, fail := range []error{&Failed{gates.Failure{Kind: gates.FailureCrash, Detail: "the kernel crashed"}}, errFault} {
		whole := newFake()
		whole.state = true
		if _, _, err := measure(whole, rand.New(rand.NewPCG(5, 5))); err != nil {
			t.Fatal(err)
		}
		for at := 1; at <= whole.calls; at++ {
			f := newFake()
			f.state, f.failAt, f.fail = true, at, fail
			s, _, err := measure(f, rand.New(rand.NewPCG(5, 5)))
			failure, fault := Failure(err)
			if (failure != nil) != (fail != errFault) || (fault == nil) != (failure != nil) || fault != nil && !errors.Is(fault, errFault) {
				t.Fatalf("call %d: failure %v, fault %v", at, failure, fault)
			}
			if len(f.bad) > 0 || f.live != 0 {
				t.Fatalf("call %d: %v; %d outputs were not dropped", at, f.bad, f.live)
			}
			back := parsed(t, s, failure)
			if len(back.Nanos)%6 != 0 || len(back.Wall) != len(back.Nanos) {
				t.Fatalf("call %d: %d samples, %d on the wall: not whole blocks", at, len(back.Nanos), len(back.Wall))
			}
		}
	}
}
