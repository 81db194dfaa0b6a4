package highwater

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// A state is one state of the kernel: of a merged commit, or of one before the known history.
type state struct {
	commit, folder, branch string
	place                  int     // in the order of merges; -1 of what was not merged
	prev                   *state  // that the merge found; nil where that is not known
	edges                  []edge  // to the states that it was compared with
	measured               bool    // against a state that is known
	compared               bool    // something was measured against it
	onBranch               bool    // it was merged, or is what a merge found
	level                  float64 // relative to the others of its group; 0 before it is known
	group                  int     // whose levels can be compared
	at                     time.Time
	outcome                gates.Outcome
}

// An edge leads to a state that is so much faster.
type edge struct {
	to    *state
	ratio float64
}

// A chain is the states of one shape on one device. Comparisons connect states, and fix the levels within
// each connected part. Parts that no comparison connects are joined in the order of merges: the first merge of one keeps
// the level of the state that it found.
type chain struct {
	before map[string]string
	merges []*state          // in their order
	states map[string]*state // by commit
	groups int
}

func (h History) chain(d Device, shape Shape) *chain {
	c := &chain{before: h.Before, states: map[string]*state{}}
	newest := map[string]Merge{} // measurement on the device
	for _, m := range h.Merges {
		s := c.states[m.Commit]
		if s == nil {
			s = &state{commit: m.Commit, branch: m.Branch, place: len(c.merges), onBranch: true}
			c.states[m.Commit] = s
			c.merges = append(c.merges, s)
		}
		s.folder = m.Folder
		if _, measured := newest[m.Commit]; !measured {
			s.at, s.outcome = m.At, m.Outcome
		}
		if ratio := m.Ratios[shape]; m.Device == d && ratio > 0 && !math.IsInf(ratio, 0) && m.Against != "" && m.Against != m.Commit {
			newest[m.Commit] = m
			s.at, s.outcome = m.At, m.Outcome
		}
	}
	for _, s := range c.merges {
		m, measured := newest[s.commit]
		if before := c.before[s.commit]; before != "" && before != s.commit {
			s.prev = c.resolve(before, s)
			s.prev.onBranch = true
		}
		switch {
		case measured:
			against := c.resolve(m.Against, s)
			connect(against, s, m.Ratios[shape])
			s.measured, against.compared = true, true
			if against.at.IsZero() {
				against.at = m.At
			}
		case s.prev != nil:
			connect(s.prev, s, 1)
		}
	}
	for _, s := range c.merges {
		if s.group == 0 {
			c.join(s)
		}
	}
	return c
}

func connect(before, after *state, ratio float64) {
	before.edges = append(before.edges, edge{after, ratio})
	after.edges = append(after.edges, edge{before, 1 / ratio})
}

// resolve finds the state of a commit: its own or, where its push did not touch the kernel, that of the commit before
// it. Where the walk back ends without one, the kernel there is a state of before the known history. For a merge it is another
// one than its own.
func (c *chain) resolve(commit string, of *state) *state {
	asked := commit
	for seen := map[string]bool{}; ; {
		if s := c.states[commit]; s != nil && s != of {
			return s
		}
		seen[commit] = true
		before := c.before[commit]
		if before == "" || seen[before] {
			break
		}
		commit = before
	}
	if s := c.states[commit]; s != nil { // the merge itself: nothing is known before it
		commit = asked
	}
	s := &state{commit: asked, place: -1}
	if of != nil {
		s.folder, s.branch = of.folder, of.branch
		c.states[commit] = s
	}
	return s
}

// join gives levels to all states that comparisons connect with a merge, the first of them. It keeps the level of the
// state that it found or, where that is not known, of the last one of its branch.
func (c *chain) join(s *state) {
	level, group := 1.0, 0
	if s.prev != nil && s.prev.group != 0 {
		level, group, s.measured = s.prev.level, s.prev.group, false
	} else if last := c.lastBefore(s); last != nil {
		first := s
		if p := s.prev; p != nil && p.place < 0 { // the gap is before what the merge found
			first = p
		} else {
			s.measured = false
		}
		first.prev, level, group = last, last.level, last.group
		s = first
	}
	if group == 0 {
		c.groups++
		group = c.groups
	}
	s.level, s.group = level, group
	for open := []*state{s}; len(open) > 0; {
		from := open[len(open)-1]
		open = open[:len(open)-1]
		for _, e := range from.edges {
			if e.to.group == 0 {
				e.to.level, e.to.group = from.level*e.ratio, group
				open = append(open, e.to)
			}
		}
	}
}

// lastBefore is the last merge to the branch before one, among those whose level is known.
func (c *chain) lastBefore(s *state) *state {
	for _, earlier := range slices.Backward(c.merges[:s.place]) {
		if earlier.branch == s.branch && earlier.group != 0 {
			return earlier
		}
	}
	return nil
}

// find is the state of any commit of a branch; nil where nothing is known about it.
func (c *chain) find(commit, branch string) *state {
	if s := c.resolve(commit, nil); s.group != 0 {
		return s
	}
	for _, newest := range slices.Backward(c.merges) {
		if newest.branch == branch {
			return &state{commit: commit, level: newest.level, group: newest.group, prev: newest, place: -1}
		}
	}
	return nil
}

// candidates is the states of a group that may be the mark, oldest first. A state that was neither measured nor
// measured against is none: its level is another's. Nor is a tag or a branch that a policy compares with.
func (c *chain) candidates(group int) []*state {
	var all []*state
	for _, s := range c.states {
		if s.group == group && s.onBranch && (s.measured || s.compared) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *state) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.commit, b.commit)) })
	return all
}

// mark is the best state of a group, the first of equal ones; nil where nothing was measured.
func (c *chain) mark(group int) *state {
	all := c.candidates(group)
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *state) int { return cmp.Compare(a.level, b.level) })
}

// since is what was lost and not measured from the mark to a state.
func since(mark, s *state) (lost []gates.Loss, unmeasured int) {
	for seen := map[*state]bool{}; s != mark && !seen[s] && s.prev != nil; s = s.prev {
		seen[s] = true
		ratio := s.level / s.prev.level
		switch {
		case !s.measured:
			unmeasured++
		case ratio < 1-1e-9:
			lost = append(lost, gates.Loss{Commit: s.commit, Speedup: ratio - 1})
		}
	}
	slices.Reverse(lost)
	for len(lost) > gates.MaxLosses {
		least := slices.MaxFunc(lost, func(a, b gates.Loss) int { return cmp.Compare(a.Speedup, b.Speedup) })
		lost = slices.DeleteFunc(lost, func(l gates.Loss) bool { return l == least })
	}
	return lost, unmeasured
}
