package arm

import "math"

// MeanLog is the speedup of a round over all shapes: the mean of log(baseline/candidate). It is NaN
// if a shape has no undisturbed sample.
func MeanLog(speedups map[string]float64, shapes []string) float64 {
	sum := 0.0
	for _, shape := range shapes {
		ratio, ok := speedups[shape]
		if !ok || !(ratio > 0) {
			return math.NaN()
		}
		sum += math.Log(ratio)
	}
	return sum / float64(len(shapes))
}
