package bisect

import (
	"cmp"
	"fmt"
	"slices"
)

// speed is a speed with its bounds, in percent of the good commit's.
func speed(s Step) string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*s.Speed, 100*s.Lower, 100*s.Upper)
}

func sorted(steps []Step) []Step {
	return slices.SortedStableFunc(slices.Values(steps), func(a, b Step) int { return cmp.Compare(a.Commit, b.Commit) })
}
