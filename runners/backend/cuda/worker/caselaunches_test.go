package worker

import "testing"

// A slot is one of the candidate's as a simulated kernel sees it.
type slot struct{ address, input, output int }

// unwritten is an output that no kernel has written.
const unwritten = -1

// A memory is what a simulated kernel keeps: the last address, the answers by address, and how many
// launches there were.
type memory struct {
	last    int
	answers map[int]int
	count   int
}

// The right answer to an input is twice the input.
var simulated = map[string]struct {
	run    func(m *memory, s *slot)
	honest bool
}{
	"honest": {func(_ *memory, s *slot) { s.output = 2 * s.input }, true},
	"honest, with a counter": {func(m *memory, s *slot) {
		m.count++
		s.output = 2 * s.input
	}, true},
	"returns where the last launch was": {func(m *memory, s *slot) {
		if m.last != s.address {
			s.output, m.last = 2*s.input, s.address
		}
	}, false},
	"gives the answer of the last launch at the same address": {func(m *memory, s *slot) {
		if m.last != s.address {
			m.last, m.answers = s.address, map[int]int{s.address: 2 * s.input}
		}
		s.output = m.answers[s.address]
	}, false},
	"gives the first answer at every address": {func(m *memory, s *slot) {
		if _, ok := m.answers[s.address]; !ok {
			m.answers[s.address] = 2 * s.input
		}
		s.output = m.answers[s.address]
	}, false},
	"returns after the first launch": {func(m *memory, s *slot) {
		if m.count == 0 {
			s.output = 2 * s.input
		}
		m.count++
	}, false},
	"gives the answer to the last question": {func(m *memory, s *slot) {
		s.output, m.last = m.last, 2*s.input
	}, false},
}

// TestLaunchesFindRememberedAddresses simulates kernels that remember addresses, and checks that the
// launches of a few cases find each, whether or not a reset reaches what it remembers, and even if
// nothing asks whether it is deterministic.
func TestLaunchesFindRememberedAddresses(t *testing.T) {
	for name, kernel := range simulated {
		for _, state := range []bool{false, true} {
			wrong, varies, keeps := simulate(kernel.run, state)
			if found := wrong || keeps; found == kernel.honest {
				t.Errorf("%s, with state that is reset %v: found %v", name, state, found)
			}
			if varies && (state || kernel.honest) {
				t.Errorf("%s, with state that is reset %v: it looks as if it were not deterministic", name, state)
			}
		}
	}
}

// simulate runs three cases as caseSession.compare does.
func simulate(run func(*memory, *slot), state bool) (wrong, varies, keeps bool) {
	fresh := func() *memory { return &memory{last: unwritten, answers: map[int]int{}} }
	m, turn := fresh(), 0
	var own [candidateSlots]slot
	for i := range own {
		own[i].address = 100 + i
	}
	launches := candidateLaunches(state)
	for c := range 3 {
		input, different := 10+c, 20+c
		turn = nextTurn(turn, launches)
		at := func(role int) *slot { return &own[turned(role, turn)] }
		for role := range candidateSlots {
			at(role).input, at(role).output = input, unwritten
		}
		at(lastSlot(launches)).input = different
		for _, l := range launches {
			if l.reset && state {
				m = fresh()
			}
			run(m, at(l.slot))
			if l.other {
				at(l.slot).input, at(l.slot).output = input, unwritten
			}
		}
		wrong = wrong || at(first).output != 2*input
		varies = varies || at(first).output != at(second).output
		keeps = keeps || state && at(first).output == at(second).output && at(first).output != at(kept).output
	}
	return wrong, varies, keeps
}

// TestTurnsRotateTheCandidatesSlots checks that a place in a turn's list is the one that the side's
// process launches in, and that the baseline's slots stay.
func TestTurnsRotateTheCandidatesSlots(t *testing.T) {
	list := []int{0, 1, 2, 3, 4}
	for turn := range candidateSlots {
		got := rotated(list, turn)
		for slot := range candidateSlots {
			if got[slot] != turned(slot, turn) {
				t.Errorf("turn %d: slot %d is memory %d, and the process launches in %d", turn, slot, got[slot], turned(slot, turn))
			}
		}
		if len(got) != len(list) || got[3] != 3 || got[4] != 4 {
			t.Errorf("turn %d: %v", turn, got)
		}
	}
}
