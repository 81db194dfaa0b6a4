package stats

// A resampler finds quantiles of resamples. It keeps the pooled values in ascending
// order and, at every stride-th rank, a rung: how many values of each round lie at
// or below that rank. A search jumps from rung to rung and walks the last few
// ranks. A rung at every rank would save the walk, but take memory of rounds ×
// values; with a stride in proportion to the rounds it is linear in the values.
type resampler struct {
	values []float64 // ascending
	owner  []int32   // the round of each value
	sizes  []float64 // values per round
	rungs  []float64 // one row of counts per rung, after 0, stride, 2·stride … values
	stride int
}

// newResampler takes the values to draw in the order of all.
func newResampler(s Sample, all []pooled, values []float64) *resampler {
	n := len(s.Rounds)
	r := &resampler{
		values: values,
		owner:  make([]int32, len(all)),
		sizes:  make([]float64, n),
		stride: (n + 3) / 4,
	}
	for i, round := range s.Rounds {
		r.sizes[i] = float64(len(round))
	}
	counts := make([]float64, n)
	r.rungs = make([]float64, 0, (len(all)/r.stride+2)*n)
	for i, p := range all {
		if i%r.stride == 0 {
			r.rungs = append(r.rungs, counts...)
		}
		r.owner[i] = p.round
		counts[p.round]++
	}
	r.rungs = append(r.rungs, counts...)
	return r
}

// quantile is the q-quantile of the values of a resample, which holds round i
// weights[i] times.
func (r *resampler) quantile(weights []float64, q float64) float64 {
	total := 0.0
	for i, w := range weights {
		total += w * r.sizes[i]
	}
	i, frac := position(int(total), q)
	rank, count := r.rungBelow(weights, float64(i)+1, int(q*float64(len(r.values)))/r.stride)
	rank, count = r.walk(weights, rank, count, float64(i)+1)
	low := r.values[rank-1]
	if frac == 0 {
		return low
	}
	rank, _ = r.walk(weights, rank, count, float64(i)+2)
	return low + float64(frac*(r.values[rank-1]-low))
}

// countAt is the number of resampled values at or below rung k, a whole number.
func (r *resampler) countAt(weights []float64, k int) float64 {
	n := len(weights)
	rung := r.rungs[k*n : (k+1)*n]
	// Whole numbers add up to the same in any order, and four sums at a time do not
	// wait for each other.
	var a, b, c, d float64
	for len(rung) >= 4 && len(weights) >= 4 {
		a += weights[0] * rung[0]
		b += weights[1] * rung[1]
		c += weights[2] * rung[2]
		d += weights[3] * rung[3]
		rung, weights = rung[4:], weights[4:]
	}
	for i, x := range rung {
		a += weights[i] * x
	}
	return a + b + c + d
}

// rungBelow finds the last rung with fewer values than wanted, as the rank and the
// count there. The search begins at a guess. A rank is worth about one value, which makes what is lacking a good
// guess of the distance; bisection takes over where it is not.
func (r *resampler) rungBelow(weights []float64, want float64, guess int) (rank int, count float64) {
	low, high := 0, len(r.rungs)/len(r.sizes)-1
	next := max(low+1, min(guess, high-1))
	for try := 0; high-low > 1; try++ {
		have := r.countAt(weights, next)
		if have < want {
			low, count = next, have
		} else {
			high = next
		}
		if try < 4 {
			next += int((want - have) / float64(r.stride))
			next = max(low+1, min(next, high-1))
		} else {
			next = (low + high) / 2
		}
	}
	return low * r.stride, count
}

// walk goes up from a rank until as many values as wanted were passed.
func (r *resampler) walk(weights []float64, rank int, count, want float64) (int, float64) {
	for count < want {
		count += weights[r.owner[rank]]
		rank++
	}
	return rank, count
}
