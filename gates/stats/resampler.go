package stats

import (
	"math"
	"math/rand/v2"
)

// A resampler draws quantiles of resamples. It keeps the pooled values in
// ascending order and, at every stride-th rank, a rung: how many values of each
// round lie at or below that rank. A search jumps from rung to rung and walks
// the last few ranks. A rung at every rank would save the walk, but take memory
// of rounds × values; with a stride in proportion to the rounds it is linear in
// the values.
type resampler struct {
	values []float64 // ascending
	owner  []int32   // the round of each value
	sizes  []float64 // values per round
	rungs  []int32   // one row of counts per rung, after 0, stride, 2·stride … values
	stride int

	// State of one draw.
	weights []float64 // how often each round was drawn
	shares  []float64 // weights / sizes
	counts  []int32
}

// newResampler takes the values to draw in the order of all.
func newResampler(s Sample, all []pooled, values []float64) *resampler {
	n := len(s.Rounds)
	r := &resampler{
		values:  values,
		owner:   make([]int32, len(all)),
		sizes:   make([]float64, n),
		stride:  (n + 3) / 4,
		weights: make([]float64, n),
		shares:  make([]float64, n),
		counts:  make([]int32, n),
	}
	for i, round := range s.Rounds {
		r.sizes[i] = float64(len(round))
	}
	r.rungs = make([]int32, 0, (len(all)/r.stride+2)*n)
	for i, p := range all {
		if i%r.stride == 0 {
			r.rungs = append(r.rungs, r.counts...)
		}
		r.owner[i] = p.round
		r.counts[p.round]++
	}
	r.rungs = append(r.rungs, r.counts...)
	return r
}

// quantile draws the q-quantile of one resample.
func (r *resampler) quantile(rng *rand.Rand, q float64) float64 {
	total := r.drawRounds(rng)
	z := rng.NormFloat64()
	i, frac := position(total, q)
	target := float64(i) + 0.5

	w := r.rungBelow(target, z)
	low := w.to(target, z)
	if frac == 0 {
		return r.values[low]
	}
	high := w.to(target+1, z)
	return r.values[low] + float64(frac*(r.values[high]-r.values[low]))
}

// drawRounds draws as many rounds as there are and returns how many values
// they hold.
func (r *resampler) drawRounds(rng *rand.Rand) int {
	clear(r.weights)
	n := len(r.weights)
	for range n {
		r.weights[rng.IntN(n)]++
	}
	total := 0.0
	for i, w := range r.weights {
		total += w * r.sizes[i]
		r.shares[i] = w / r.sizes[i]
	}
	return int(total)
}

// momentsAt gives the mean and the variance of the number of resampled values
// at or below rung k. The mean is a whole number and exact.
func (r *resampler) momentsAt(k int) (mean, variance float64) {
	n := len(r.sizes)
	sizes, weights, shares := r.sizes, r.weights[:n], r.shares[:n]
	for i, c := range r.rungs[k*n : (k+1)*n] {
		count := float64(c)
		mean += weights[i] * count
		variance += float64(shares[i] * (count * (sizes[i] - count)))
	}
	return mean, variance
}

// shortfall is how much the mean lacks to reach the target; at 0 or less it
// does.
func shortfall(mean, variance, target, z float64) float64 {
	return target - mean + float64(z*math.Sqrt(max(variance, 0)))
}

// rungBelow finds the last rung short of the target.
//
// The shortfall need not fall from each rung to the next where rounds lie far
// apart, but the first rung is always short and the last one never, so
// there is a crossing to close in on. A rank is worth about one value, which
// makes the shortfall itself a good guess of the distance; bisection takes
// over where it is not.
func (r *resampler) rungBelow(target, z float64) walk {
	low, high := 0, len(r.rungs)/len(r.sizes)-1
	below := walk{resampler: r}
	next := (low + high) / 2
	for try := 0; high-low > 1; try++ {
		mean, variance := r.momentsAt(next)
		lack := shortfall(mean, variance, target, z)
		if lack > 0 {
			low, below.mean, below.variance = next, mean, variance
		} else {
			high = next
		}
		if try < 4 {
			next += int(lack / float64(r.stride))
			next = max(low+1, min(next, high-1))
		} else {
			next = (low + high) / 2
		}
	}
	n := len(r.sizes)
	copy(r.counts, r.rungs[low*n:(low+1)*n])
	below.rank = low * r.stride
	return below
}

// A walk goes up the ranks one by one.
type walk struct {
	*resampler
	rank           int // values passed
	mean, variance float64
}

// to returns the index of the first value, from the last one passed on, that
// reaches the target.
func (w *walk) to(target, z float64) int {
	for w.rank < len(w.values) && shortfall(w.mean, w.variance, target, z) > 0 {
		round := w.owner[w.rank]
		count := float64(w.counts[round])
		// c·(n−c) grows by n−2c−1 when c grows by 1.
		w.mean += w.weights[round]
		w.variance += float64(w.shares[round] * (w.sizes[round] - 2*count - 1))
		w.counts[round]++
		w.rank++
	}
	return max(w.rank-1, 0)
}
