package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestDescribe(t *testing.T) {
	hundredOne := make([]float64, 101)
	for i := range hundredOne {
		hundredOne[i] = float64(i)
	}
	cases := []struct {
		name   string
		values []float64
		want   stats.Summary
	}{
		{"none", nil, stats.Summary{}},
		{"one", []float64{7}, stats.Summary{N: 1, Min: 7, P50: 7, P90: 7, P99: 7, Mean: 7}},
		{"constant", []float64{0.1, 0.1, 0.1}, stats.Summary{N: 3, Min: 0.1, P50: 0.1, P90: 0.1, P99: 0.1, Mean: 0.1}},
		// Positions 1.5, 2.7 and 2.97 of 0 … 3; squared deviations sum to 20.
		{"interpolated", []float64{7, 1, 5, 3}, stats.Summary{N: 4, Min: 1, P50: 4, P90: 6.4, P99: 6.94, Mean: 4, Std: math.Sqrt(20. / 3), CV: math.Sqrt(20./3) / 4}},
		{"on the ranks", hundredOne, stats.Summary{N: 101, P50: 50, P90: 90, P99: 99, Mean: 50, Std: math.Sqrt(858.5), CV: math.Sqrt(858.5) / 50}},
		{"mean of zero", []float64{-1, 1}, stats.Summary{N: 2, Min: -1, P90: 0.8, P99: 0.98, Std: math.Sqrt2}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.values)
			got := stats.Describe(c.values)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-12, 1e-15)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !slices.Equal(before, c.values) {
				t.Error("the values were reordered")
			}
		})
	}
}
