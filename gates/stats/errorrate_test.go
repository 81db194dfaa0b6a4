package stats_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestSpend(t *testing.T) {
	cases := []struct {
		name     string
		alpha    float64
		interims []int
		want     []float64
		err      string
	}{
		{"one look", 0.05, []int{10}, []float64{0.05}, ""},
		{"even interims", 0.05, []int{5, 10, 15, 20}, []float64{0.0125, 0.0125, 0.0125, 0.0125}, ""},
		{"uneven interims", 0.1, []int{5, 8, 20}, []float64{0.025, 0.015, 0.06}, ""},
		{"no interims", 0.05, nil, nil, "no interim analyses"},
		{"falling", 0.05, []int{5, 4}, nil, "ascending"},
		{"equal", 0.05, []int{5, 5}, nil, "ascending"},
		{"zero rounds", 0.05, []int{0, 5}, nil, "more than 0"},
		{"alpha 0", 0, []int{5}, nil, "alpha 0"},
		{"alpha 1", 1, []int{5}, nil, "alpha 1"},
		{"alpha NaN", math.NaN(), []int{5}, nil, "alpha NaN"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := stats.Spend(c.alpha, c.interims)
			if c.err != "" {
				if err == nil || got != nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, %v; want an error with %q", got, err, c.err)
				}
				return
			}
			if err != nil || !slices.EqualFunc(got, c.want, nearly) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestSpendSumsToAlpha(t *testing.T) {
	sums := func(steps []uint8, a uint16) bool {
		alpha := (float64(a) + 1) / (1<<16 + 1)
		interims, n := []int{1}, 1
		for _, s := range steps {
			n += int(s) + 1
			interims = append(interims, n)
		}
		shares, err := stats.Spend(alpha, interims)
		if err != nil {
			return false
		}
		sum := 0.0
		for _, s := range shares {
			if s <= 0 {
				return false
			}
			sum += s
		}
		return math.Abs(sum-alpha) <= 4e-16*alpha*float64(len(interims))
	}
	if err := quick.Check(sums, nil); err != nil {
		t.Error(err)
	}
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		name  string
		p     []float64
		alpha float64
		want  []bool
	}{
		{"none", nil, 0.05, []bool{}},
		{"one at alpha", []float64{0.05}, 0.05, []bool{true}},
		// Sorted 0.005 ≤ 0.0125, 0.01 ≤ 0.0167, 0.03 > 0.025: stop.
		{"stops at the first failure", []float64{0.01, 0.04, 0.03, 0.005}, 0.05, []bool{true, false, false, true}},
		// 0.04 ≤ 0.05 would do alone, but 0.03 > 0.025 stands before it.
		{"a failure shields what follows", []float64{0.04, 0.03}, 0.05, []bool{false, false}},
		{"step-down rejects what Bonferroni keeps", []float64{0.01, 0.02, 0.05}, 0.05, []bool{true, true, true}},
		{"ties", []float64{0.02, 0.02}, 0.05, []bool{true, true}},
		{"NaN counts as a test", []float64{nan, 0.03}, 0.05, []bool{false, false}},
		{"NaN is never rejected", []float64{nan, 0.01}, 0.05, []bool{false, true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := stats.Holm(c.p, c.alpha); !slices.Equal(got, c.want) {
				t.Errorf("Holm(%v, %v) = %v, want %v", c.p, c.alpha, got, c.want)
			}
		})
	}
}
