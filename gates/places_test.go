package gates

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A field is found at its line and column; where there is none, the place is that of what holds it.
func TestPlaceOfAField(t *testing.T) {
	const text = "{\n \"a\": 1,\n \"list\": [\n  {\"x\": 1},\n  {\"x\": 2, \"y\": [5, 6]}\n ]\n}"
	for field, want := range map[string]string{
		"a": "f:2:5", "list": "f:3:8", "list[0]": "f:4:3", "list[0].x": "f:4:7", "list[1].x": "f:5:7", "list[1].y": "f:5:15", "list[1].y[0]": "f:5:18", "list[1].y[1]": "f:5:19",
		"list[1].z": "f:4:11", "list[9]": "f:3:8", "nobody": "f:1:1", "a.b": "f:2:5",
	} {
		if got := locateField("f", []byte(text), field); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}

// Values of several kinds are brought to the geometric mean of their medians; a kind with one value counts as any other.
func TestLevelledKinds(t *testing.T) {
	sample := stats.Sample{Rounds: [][]float64{{1, 4}, {1}, {1}}}
	medians := centreKinds(sample, [][]int{{0, 2}, {0}, {0}}, 3)
	if !slices.Equal(medians, []float64{1, 0, 4}) {
		t.Errorf("the medians are %v", medians)
	}
	for _, round := range sample.Rounds {
		for _, v := range round {
			if !near(v, 2) {
				t.Errorf("%v", sample.Rounds)
			}
		}
	}
	one := stats.Sample{Rounds: [][]float64{{1, 4}}}
	if medians := centreKinds(one, [][]int{{0, 0}}, 1); medians != nil || one.Rounds[0][1] != 4 {
		t.Errorf("one kind: %v, %v", medians, one)
	}
	for _, c := range []struct {
		medians []float64
		want    bool
	}{{nil, false}, {[]float64{1}, false}, {[]float64{1, 1.02}, false}, {[]float64{1, 1.021}, true}, {[]float64{0, 1}, false}, {[]float64{0.5, 0, 0.6}, true}} {
		if got := (&strata{medians: c.medians}).differs(); got != c.want {
			t.Errorf("%v differ: %v", c.medians, got)
		}
	}
	s := &strata{kinds: []string{"a", "b"}, rounds: [][]int{{0, 1}}}
	if got := s.split(stats.Sample{Rounds: [][]float64{{1, 2}}}); len(got) != 2 || got[0].Rounds[0][0] != 1 || got[1].Rounds[0][0] != 2 {
		t.Errorf("%v", got)
	}
	if got := s.split(stats.Sample{}); got != nil {
		t.Errorf("other rounds than the kinds': %v", got)
	}
	if got := s.centre(stats.Sample{}); got != nil {
		t.Errorf("other rounds than the kinds': %v", got)
	}
}

// A rule fits where nothing that was measured speaks against it, and it asks for no gain.
func TestRulesThatHold(t *testing.T) {
	slight, gain, none := faster(-0.02), faster(0.1), faster(0)
	micros := within(5, 0)
	for _, c := range []struct {
		name  string
		gate  *policy.PerformanceGate
		speed Estimate
		want  bool
	}{
		{"nothing asked", nil, Estimate{Value: -0.5}, true},
		{"a guard, within it", &policy.PerformanceGate{Guard: &slight}, Estimate{Value: -0.01}, true},
		{"a guard, beyond it", &policy.PerformanceGate{Guard: &slight}, Estimate{Value: -0.05}, false},
		{"a guard, perhaps within it", &policy.PerformanceGate{Guard: &slight}, Estimate{Value: -0.05, Lower: new(-0.1), Upper: new(0.0)}, true},
		{"a guard, surely beyond it", &policy.PerformanceGate{Guard: &slight}, Estimate{Value: -0.05, Lower: new(-0.1), Upper: new(-0.03)}, false},
		{"a target", &policy.PerformanceGate{Target: &gain}, Estimate{Value: 0.5}, false},
		{"a target without a gain", &policy.PerformanceGate{Target: &none}, Estimate{Value: -0.5}, true},
		{"a guard that asks for a gain", &policy.PerformanceGate{Guard: &gain}, Estimate{Value: 0.5}, false},
		{"a time", &policy.PerformanceGate{Guard: &micros}, Estimate{Value: -0.5}, true},
	} {
		j := &judgement{comparisons: []Comparison{{Speedup: c.speed}}}
		if got := j.mayMeet(c.gate); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The chance of so many heads among fair coins.
func TestFairCoins(t *testing.T) {
	for _, c := range []struct {
		heads, n int
		want     float64
	}{{0, 4, 1}, {1, 4, 15.0 / 16}, {2, 4, 11.0 / 16}, {3, 4, 5.0 / 16}, {4, 4, 1.0 / 16}, {5, 4, 0}, {6, 6, math.Ldexp(1, -6)}} {
		if got := signP(c.heads, c.n); !near(got, c.want) {
			t.Errorf("%d of %d: %g, want %g", c.heads, c.n, got, c.want)
		}
	}
}

// Kinds of input that differ by noise are not shown side by side; kinds that differ by as much without noise are.
func TestKindsThatDifferByNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	shown := func(noise, step float64) (n int) {
		for range 200 {
			s := &strata{kinds: []string{"a", "b", "c", "d", "e"}}
			var sample stats.Sample
			for range 6 {
				var ratios []float64
				var kinds []int
				for i := range 40 {
					kind := i % len(s.kinds)
					truth := 1.0
					if kind == 0 {
						truth += step
					}
					ratios, kinds = append(ratios, truth*math.Exp(noise*r.NormFloat64())), append(kinds, kind)
				}
				sample.Rounds, s.rounds = append(sample.Rounds, ratios), append(s.rounds, kinds)
			}
			s.errors = medianErrors(s.split(sample))
			s.medians = s.centre(sample)
			if s.differs() {
				n++
			}
		}
		return n
	}
	if n := shown(0.15, 0); n > 20 {
		t.Errorf("noise alone is shown in %d of 200 shapes", n)
	}
	if n := shown(0.01, 0.05); n != 200 {
		t.Errorf("a step of 5 %% is shown in %d of 200 shapes", n)
	}
}
