package stats

import "math"

// sortFloats sorts numbers, none of which is NaN, upwards. Thousands of them are sorted for every statistic of every
// look, and by their digits in half of the time that comparing takes.
func sortFloats(values []float64) {
	const (
		bits   = 11
		digits = (64 + bits - 1) / bits
		base   = 1 << bits
	)
	from, to := make([]uint64, len(values)), make([]uint64, len(values))
	var counts [digits][base]uint32
	for i, v := range values {
		key := math.Float64bits(v)
		key ^= uint64(int64(key)>>63) | 1<<63 // of two negative ones the larger number is the smaller; and they come first
		from[i] = key
		for d := range digits {
			counts[d][key>>(d*bits)%base]++
		}
	}
	for d := range digits {
		shift := d * bits
		if len(from) > 0 && int(counts[d][from[0]>>shift%base]) == len(from) {
			continue // all have the same
		}
		at := uint32(0)
		for i, n := range counts[d] {
			counts[d][i] = at
			at += n
		}
		for _, key := range from {
			place := &counts[d][key>>shift%base]
			to[*place] = key
			*place++
		}
		from, to = to, from
	}
	for i, key := range from {
		if key>>63 == 1 {
			key ^= 1 << 63
		} else {
			key = ^key
		}
		values[i] = math.Float64frombits(key)
	}
}
