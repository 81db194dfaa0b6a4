package toolchain

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
)

// A loop is the instructions from the target of a backward branch to the last branch that goes there.
type loop struct {
	first, last int // in the listing
	depth       int // 1 for a loop that is in no other
}

// loops finds the loops of a listing by their backward branches. A branch to itself is how a program traps, and no loop.
func (l listing) loops() []loop {
	ends := map[int]int{}
	for i, in := range l {
		if head := in.Back - 1; head >= 0 && head < i {
			ends[head] = max(ends[head], i)
		}
	}
	var all []loop
	for head, end := range ends {
		all = append(all, loop{first: head, last: end})
	}
	slices.SortFunc(all, func(a, b loop) int { return cmp.Or(a.first-b.first, b.last-a.last) })
	for i := range all {
		for _, outer := range all[:i+1] {
			if outer.last >= all[i].last {
				all[i].depth++ // it begins before, or is this one
			}
		}
	}
	return all
}

// Without samples, an instruction counts by what it does. Barriers count nothing: the loops in which a warp waits for one are short and
// deep, and do no work.
var loopWeight = map[class]int{classTensor: 8, classMemory: 4, classSpecial: 2, classOther: 1}

// A loop within a loop is taken to run four times for each time around.
const timesAround, deepest = 4, 8

// hottest returns the loop in which a sampling profiler found most warps: of nested loops the innermost that has at least half of them.
// Without samples it is the loop with most work by its instructions. ok is false if there is no loop.
func (l listing) hottest(samples map[int]int) (found gates.CodeLoop, at loop, ok bool) {
	all := l.loops()
	if len(all) == 0 {
		return found, at, false
	}
	whole, inner := 0, make([]int, len(all))
	for _, in := range l {
		whole += samples[in.At]
	}
	for i, o := range all {
		for _, in := range l[o.first : o.last+1] {
			inner[i] += samples[in.At]
		}
	}
	best := 0
	if most := slices.Max(inner); most > 0 {
		for i, o := range all {
			if inner[i] >= (most+1)/2 && (inner[best] < (most+1)/2 || o.depth > all[best].depth || o.depth == all[best].depth && inner[i] > inner[best]) {
				best = i
			}
		}
		found.Sampled = float64(inner[best]) / float64(whole)
	} else {
		weight := l.weights(all)
		best = slices.Index(weight, slices.Max(weight))
	}
	at = all[best]
	found.First, found.Last = at.first+1, at.last+1
	for _, in := range l[at.first : at.last+1] {
		switch {
		case in.File == "" || found.File != "" && in.File != found.File:
		case found.File == "":
			found.File, found.Line, found.LastLine = in.File, in.Line, in.Line
		default:
			found.Line, found.LastLine = min(found.Line, in.Line), max(found.LastLine, in.Line)
		}
	}
	return found, at, true
}

// weights is how much work each loop does, by its instructions. An outer loop does not count what is within another loop: it would
// always be the heavier one.
func (l listing) weights(all []loop) []int {
	own := make([]int, len(all))
	innermost := make([]int, len(l))
	for i := range innermost {
		innermost[i] = -1
	}
	for k, o := range all { // outer loops come first
		for i := o.first; i <= o.last; i++ {
			if before := innermost[i]; before < 0 || all[before].depth <= o.depth {
				innermost[i] = k
			}
		}
	}
	for i, in := range l {
		if k := innermost[i]; k >= 0 {
			around := 1
			for range min(all[k].depth, deepest) {
				around *= timesAround
			}
			own[k] += around * loopWeight[in.Class]
		}
	}
	return own
}
