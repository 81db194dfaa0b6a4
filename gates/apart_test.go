package gates

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	numbers "github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

func atMost[T quantity.Number | quantity.Percent](x T) *quantity.Bound[T] {
	return &quantity.Bound[T]{Op: quantity.AtMost, Value: x}
}

// TestRightOutputsAreNotApart checks that two outputs that meet the bounds of a gate are never
// apart, whatever the bounds: no honest kernel is compared more often because it rounds
// differently.
func TestRightOutputsAreNotApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	tested := 0
	for range 20_000 {
		gate := &policy.CorrectnessGate{Norm: atMost(quantity.Percent(0.9 * rng.Float64()))}
		if rng.IntN(2) == 0 {
			gate.MaxAbs = atMost(quantity.Number(rng.ExpFloat64()))
		}
		if rng.IntN(2) == 0 {
			gate.MeanAbs = atMost(quantity.Number(rng.ExpFloat64()))
		}
		tolerance := rng.ExpFloat64()
		gate.Bad = atMost(quantity.Percent(float64(rng.IntN(3)) / 4))
		const elements = 8
		reference, size := make([]float64, elements), rng.ExpFloat64()
		sides := [2][]float64{make([]float64, elements), make([]float64, elements)}
		for i := range reference {
			reference[i] = rng.NormFloat64()
			for s := range sides {
				sides[s][i] = reference[i] + size*tolerance*rng.NormFloat64()
			}
		}
		if len((Case{Errors: errorsOf(sides[0], reference, tolerance)}).misses(gate)) > 0 || len((Case{Errors: errorsOf(sides[1], reference, tolerance)}).misses(gate)) > 0 {
			continue
		}
		tested++
		e, far := errorsOf(sides[0], sides[1], tolerance), errorsOf(sides[0], sides[1], 2*tolerance).Bad
		if SeparationOf(gate).Apart(*e, far) {
			t.Fatalf("both sides meet %+v, and are apart: %+v, %d elements are far", gate, e, far)
		}
	}
	if tested < 1000 {
		t.Fatalf("only %d pairs were right", tested)
	}
}

func errorsOf(got, want []float64, tolerance float64) *Errors {
	e := &Errors{Elements: len(got)}
	var difference, norm float64
	for i, w := range want {
		d := math.Abs(got[i] - w)
		if d > tolerance {
			e.Bad++
		}
		e.MaxAbs = max(e.MaxAbs, d)
		e.MeanAbs += d / float64(len(got))
		difference += d * d
		norm += w * w
	}
	e.Norm = math.Sqrt(difference / norm)
	return e
}

// TestApart checks each figure by which outputs can be apart, at its boundary.
func TestApart(t *testing.T) {
	gate := &policy.CorrectnessGate{Bad: atMost(quantity.Percent(0.01)), Norm: atMost(quantity.Percent(0.2)), MaxAbs: atMost(quantity.Number(3)), MeanAbs: atMost(quantity.Number(2))}
	for name, c := range map[string]struct {
		gate *policy.CorrectnessGate
		e    Errors
		far  int
		want bool
	}{
		"elements within the share":     {gate, Errors{Elements: 100, Bad: 50}, 2, false},
		"elements beyond the share":     {gate, Errors{Elements: 100, Bad: 50}, 3, true},
		"the norm at its bound":         {gate, Errors{Elements: 100, Norm: 0.5}, 0, false},
		"the norm beyond it":            {gate, Errors{Elements: 100, Norm: 0.51}, 0, true},
		"the largest error at its":      {gate, Errors{Elements: 100, MaxAbs: 6}, 0, false},
		"the largest error beyond it":   {gate, Errors{Elements: 100, MaxAbs: 6.1}, 0, true},
		"the mean error at its":         {gate, Errors{Elements: 100, MeanAbs: 4}, 0, false},
		"the mean error beyond it":      {gate, Errors{Elements: 100, MeanAbs: 4.1}, 0, true},
		"not a number":                  {gate, Errors{Elements: 100, NaN: 1}, 0, true},
		"infinite":                      {gate, Errors{Elements: 100, Inf: 1}, 0, true},
		"unwritten":                     {gate, Errors{Elements: 100, Unwritten: 1}, 0, true},
		"no bound on elements":          {&policy.CorrectnessGate{}, Errors{Elements: 100, Norm: 1e9}, 100, false},
		"a norm that bounds nothing":    {&policy.CorrectnessGate{Norm: atMost(quantity.Percent(1))}, Errors{Elements: 100, Norm: 1e9}, 0, false},
		"no gate":                       {nil, Errors{Elements: 100, Norm: 1e9, MaxAbs: 1e9, MeanAbs: 1e9, Bad: 100}, 0, false},
		"no gate, and one element":      {nil, Errors{Elements: 100}, 1, true},
		"an output without elements":    {gate, Errors{}, 0, false},
		"a share of less than one":      {gate, Errors{Elements: 40}, 1, true},
		"a separation sent to a worker": {gate, Errors{Elements: 100, Norm: 0.51}, 0, true},
	} {
		s := SeparationOf(c.gate)
		data, err := json.Marshal(s)
		if err == nil {
			s = Separation{}
			err = json.Unmarshal(data, &s)
		}
		if err != nil || s.Apart(c.e, c.far) != c.want {
			t.Errorf("%s: apart is %v (%v)", name, !c.want, err)
		}
	}
}

// apartRounds is rounds of two series each, of so many verified launches, in which some are apart.
func apartRounds(rounds, verified int, apart Sampled) []Round {
	all := make([]Round, rounds)
	for i := range all {
		all[i].Series = []Series{{Shape: "a", Verified: verified, Apart: &apart}, {Shape: "b", Verified: verified, Apart: &Sampled{}}}
	}
	return all
}

// TestUnseen checks the share that docs/statistics.md states: 4.6 times the launches that are apart
// for each that was compared, divided by all launches.
func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		rounds []Round
		want   float64
	}{
		"none is apart":         {apartRounds(10, 2000, Sampled{}), 0},
		"all were compared":     {apartRounds(10, 2000, Sampled{64, 64}), 0},
		"half were compared":    {apartRounds(10, 2000, Sampled{128, 64}), math.Log(100) * 2 / 40_000},
		"few were compared":     {apartRounds(1, 100, Sampled{100, 10}), math.Log(100) * 10 / 200},
		"none was compared":     {apartRounds(1, 100, Sampled{100, 0}), 1},
		"older evidence":        {[]Round{{Series: []Series{{Verified: 100}}}}, 0},
		"the worst of the rest": {append(apartRounds(1, 100, Sampled{100, 10}), apartRounds(1, 100, Sampled{100, 50})...), math.Log(100) * 10 / 400},
		"nothing was verified":  {[]Round{{}}, 0},
	} {
		if got, _ := unseen(c.rounds); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// TestUnseenIsFound checks the statement itself by simulation: if the stated share of launches is
// wrong and apart, the reference sees one of them in at least 99 of 100 runs, however the wrong
// launches are spread over the series.
func TestUnseenIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct {
		series, verified int
		apart            Sampled
		spread           int // the series that have the wrong launches
	}{
		{12, 2700, Sampled{2700, 64}, 12}, {12, 2700, Sampled{2700, 64}, 1}, {20, 20, Sampled{20, 4}, 20}, {20, 20, Sampled{20, 4}, 7}, {6, 500, Sampled{90, 64}, 2},
	} {
		rounds := make([]Round, c.series)
		for i := range rounds {
			rounds[i].Series = []Series{{Verified: c.verified, Apart: &c.apart}}
		}
		share, _ := unseen(rounds)
		wrong := int(math.Ceil(share * float64(c.series*c.verified)))
		const runs = 20_000
		missed := 0
		for range runs {
			seen := false
			for i := range c.spread {
				own := min(wrong/c.spread+map[bool]int{true: 1}[i < wrong%c.spread], c.apart.Launches)
				seen = seen || sees(rng, c.apart, own)
			}
			if !seen {
				missed++
			}
		}
		if rate := float64(missed) / runs; rate > unseenRisk+4*math.Sqrt(unseenRisk/runs) {
			t.Errorf("%+v: %d wrong launches, %.2f %% of all, were missed in %.2f %% of the runs", c, wrong, 100*share, 100*rate)
		}
	}
}

// sees reports whether a random sample without replacement has one of the wrong launches.
func sees(rng *rand.Rand, s Sampled, wrong int) bool {
	for i := range s.Compared {
		if rng.IntN(s.Launches-i) < wrong {
			return true
		}
	}
	return false
}

// TestStatedShares checks the table of docs/statistics.md: rounds, shapes and launches per sample on
// a CPU with 10 pairs a round, where up to 64 launches of a series are compared if they are apart.
func TestStatedShares(t *testing.T) {
	page, err := os.ReadFile("../docs/statistics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rounds, shapes, batch int }{{6, 1, 128}, {16, 1, 128}, {16, 2, 128}, {6, 3, 1}} {
		const pairs, kinds, singleLaunches = 10, 5, 32
		launches := 2 * pairs * c.batch
		if c.batch > 1 {
			launches += max(pairs/2, 2*kinds) * min(c.batch, singleLaunches)
		}
		of := func(compared int) string {
			rounds := make([]Round, c.rounds*c.shapes)
			for i := range rounds {
				rounds[i].Series = []Series{{Verified: launches, Apart: &Sampled{launches, min(launches, compared)}}}
			}
			share, _ := unseen(rounds)
			if share == 0 {
				return "one launch"
			}
			return numbers.PlainShare(share)
		}
		row := fmt.Sprintf("| %d, %d, %d | %s | one launch | %s | %s |", c.rounds, c.shapes, c.batch, numbers.Thousands(launches*c.rounds*c.shapes), of(64), of(4))
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/statistics.md lacks the row %s", row)
		}
	}
}

// TestApartDefers checks that a kernel that would pass waits for more rounds, and is deferred at
// the end, if too few of the launches that are apart were compared. Evidence without the counts is
// judged as before.
func TestApartDefers(t *testing.T) {
	for name, c := range map[string]struct {
		apart *Sampled
		want  Outcome
	}{
		"older evidence":     {nil, Pass},
		"none":               {&Sampled{}, Pass},
		"all were compared":  {&Sampled{10, 10}, Pass},
		"few were compared":  {&Sampled{10, 1}, Defer},
		"none was compared":  {&Sampled{10, 0}, Defer},
		"most were compared": {&Sampled{10, 9}, Pass},
	} {
		p, e := parsePolicy(t, fullPolicy), passing()
		for i := range e.Performance.Rounds {
			for k := range e.Performance.Rounds[i].Series {
				s := &e.Performance.Rounds[i].Series[k]
				s.Verified, s.Apart = 60, c.apart
			}
		}
		v := Judge(p, "policy.yaml", e)
		if v.Outcome != c.want {
			t.Errorf("%s: %s (%s), want %s", name, v.Outcome, v.Summary, c.want)
		}
		if need := Next(p, e); (need.Gate == GatePerformance && need.Rounds > 6) != (c.want == Defer) {
			t.Errorf("%s: next is %+v", name, need)
		}
		if c.want == Defer && (v.Reason != ReasonInconclusive || !strings.Contains(v.Summary, "were compared with the reference")) {
			t.Errorf("%s: %s: %s", name, v.Reason, v.Summary)
		}
	}
}
