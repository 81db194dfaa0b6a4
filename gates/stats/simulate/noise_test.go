package simulate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

func TestRatiosHaveTheNoiseAskedFor(t *testing.T) {
	cases := []struct {
		name  string
		noise simulate.Noise
	}{
		{"normal", simulate.Noise{Between: 0.01, Within: 0.02}},
		{"heavy tails", simulate.Noise{Between: 0.01, Within: 0.02, Dof: 5}},
		{"rounds alike", simulate.Noise{Within: 0.02}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const rounds, pairs, truth = 2000, 50, 1.1
			s := c.noise.Ratios(rand.New(rand.NewPCG(1, 2)), truth, rounds, pairs)
			var means []float64
			var within float64
			for _, round := range s.Rounds {
				logs := make([]float64, 0, pairs)
				for _, v := range round {
					logs = append(logs, math.Log(v/truth))
				}
				d := stats.Describe(logs)
				means = append(means, d.Mean)
				within += d.Std * d.Std / rounds
			}
			if len(s.Rounds) != rounds || len(s.Rounds[0]) != pairs {
				t.Fatalf("%d rounds of %d", len(s.Rounds), len(s.Rounds[0]))
			}
			if got := math.Sqrt(within); math.Abs(got/c.noise.Within-1) > 0.03 {
				t.Errorf("noise within rounds %v, want %v", got, c.noise.Within)
			}
			d := stats.Describe(means)
			want := math.Hypot(c.noise.Between, c.noise.Within/math.Sqrt(pairs))
			if math.Abs(d.Std/want-1) > 0.06 {
				t.Errorf("noise of round means %v, want %v", d.Std, want)
			}
			if math.Abs(d.P50) > 5*want/math.Sqrt(rounds) {
				t.Errorf("centre %v off the truth", d.P50)
			}
		})
	}
}

func TestRatiosFollowTheirGenerator(t *testing.T) {
	n := simulate.Noise{Between: 0.01, Within: 0.02, Dof: 3}
	draw := func(seed uint64) float64 {
		return n.Ratios(rand.New(rand.NewPCG(seed, 0)), 1, 2, 2).Rounds[1][1]
	}
	if draw(1) != draw(1) || draw(1) == draw(2) {
		t.Error("the draws do not follow the seed")
	}
}

func TestNoiseWithoutStandardDeviationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("2 degrees of freedom were accepted")
		}
	}()
	simulate.Noise{Within: 0.02, Dof: 2}.Ratios(rand.New(rand.NewPCG(1, 0)), 1, 2, 2)
}
