package bisect

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/number"
)

// speed is the speedup over the good commit, with its interval.
func speed(s Step) string {
	gain, lower, upper := s.Speed-1, s.Lower-1, s.Upper-1
	return number.Gain(gain, &lower, &upper) + " " + number.GainInterval(gain, &lower, &upper)
}

func sorted(steps []Step) []Step {
	return slices.SortedStableFunc(slices.Values(steps), func(a, b Step) int { return cmp.Compare(a.Commit, b.Commit) })
}
