package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Spend divides the error rate alpha over interims at growing evidence; interims[k]
// is the number of rounds seen by look k. Each look gets its share in proportion
// to the rounds that it adds, and the shares sum to alpha: however often the gate
// interims, it errs no more often than if it had looked once at alpha.
func Spend(alpha float64, interims []int) ([]float64, error) {
	if !inUnit(alpha) {
		return nil, fmt.Errorf("spending alpha %v: choose one between 0 and 1", alpha)
	}
	if len(interims) == 0 {
		return nil, fmt.Errorf("spending alpha %v over no interim analyses: declare at least one", alpha)
	}
	last := interims[len(interims)-1]
	shares := make([]float64, len(interims))
	before, left := 0, alpha
	for k, n := range interims {
		if n <= before {
			return nil, fmt.Errorf("spending alpha over interims %v: look %d must come after more than %d rounds; list interims in ascending order", interims, k+1, before)
		}
		shares[k] = alpha * float64(n-before) / float64(last)
		if k == len(interims)-1 {
			shares[k] = left
		}
		left -= shares[k]
		before = n
	}
	return shares, nil
}

// Holm tells which hypotheses are rejected when all are tested together, so that
// the chance of even one false rejection is at most alpha. A NaN is never
// rejected, but counts as a test.
func Holm(p []float64, alpha float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	sortable := func(i int) float64 {
		if math.IsNaN(p[i]) {
			return math.Inf(1)
		}
		return p[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sortable(a), sortable(b)) })
	rejected := make([]bool, len(p))
	for rank, i := range order {
		if sortable(i) > alpha/float64(len(p)-rank) {
			break
		}
		rejected[i] = true
	}
	return rejected
}
