package worker

import "slices"

// Indices of the slots that each side needs for a case.
const (
	first  = iota // the candidate's launch with its state reset; also the baseline's first launch
	second        // the same again
	kept          // the candidate's launches with the state that the others left behind
	candidateSlots
	baselineSlots = 2 // for the baseline's first launch, and for those that repeat it
)

// A caseLaunch is one of the candidate's launches in a case.
type caseLaunch struct {
	slot  int
	reset bool // begins with the state that the code has when it is loaded
	other bool // on a different input; then the slot is filled again with the case's own
}

// candidateLaunches returns the candidate's launches in a case. The last two have the same slot, with a
// different input first and the case's own then, and no variable is reset between them: a kernel
// that remembers the address of its input answers the wrong question. If the code has variables that
// can be reset, two launches with the initial values tell whether it is deterministic. If it has
// none, the first and the last launch tell: a kernel that keeps something all the same gives
// different bits.
func candidateLaunches(state bool) []caseLaunch {
	if !state {
		return []caseLaunch{{slot: first, reset: true}, {slot: second, reset: true, other: true}, {slot: second, reset: true}}
	}
	return []caseLaunch{{slot: first, reset: true}, {slot: second, reset: true}, {slot: kept, other: true}, {slot: kept}}
}

// nextTurn returns by how many places the candidate's slots are rotated in the next case, so that
// its first launch has the slot of the last launch before it. A kernel that remembers addresses in
// memory that no reset reaches, such as constant memory, finds a new input at one of them.
func nextTurn(turn int, launches []caseLaunch) int {
	return turned(lastSlot(launches), turn)
}

func lastSlot(launches []caseLaunch) int { return launches[len(launches)-1].slot }

// turned returns the index in the side's process of one of the candidate's slots.
func turned(slot, turn int) int { return (slot + turn) % candidateSlots }

// rotated returns a list that begins with one entry for each of the candidate's slots, with these
// in the order of a turn.
func rotated[T any](list []T, turn int) []T {
	return slices.Concat(list[turn:candidateSlots], list[:turn], list[candidateSlots:])
}
