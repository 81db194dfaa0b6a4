package highwater

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A Candidate is a commit that may be a baseline.
type Candidate struct {
	Commit string
	Folder string // of the kernel, then
}

// Ranked is the merged commits that are faster than a commit of a branch, fastest first, by the geometric mean over those
// of the shapes that were measured on the device. Of equal ones the newest goes first.
func (h History) Ranked(commit, branch string, d Device, shapes []Shape) []Candidate {
	type sum struct {
		Candidate
		logs         float64
		times, place int
	}
	sums, chains := map[string]*sum{}, 0
	for _, shape := range h.shapes(d) {
		if !slices.Contains(shapes, shape) {
			continue
		}
		c := h.chain(d, shape)
		at := c.find(commit, branch)
		if at == nil {
			continue
		}
		chains++
		for _, s := range c.candidates(at.group) {
			if sums[s.commit] == nil {
				sums[s.commit] = &sum{Candidate: Candidate{Commit: s.commit, Folder: s.folder}, place: s.place}
			}
			sums[s.commit].logs += math.Log(s.level / at.level)
			sums[s.commit].times++
		}
	}
	var out []Candidate
	for _, s := range slices.SortedFunc(maps.Values(sums), func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.logs, a.logs), cmp.Compare(b.place, a.place), cmp.Compare(a.Commit, b.Commit))
	}) {
		if s.times == chains && s.logs > 1e-9 { // one that some shape lacks cannot be compared
			out = append(out, s.Candidate)
		}
	}
	return out
}

// Devices is those that something was measured on, the one of the last merge first.
func (h History) Devices() []Device {
	var all []Device
	for _, m := range slices.Backward(h.Merges) {
		if len(m.Ratios) > 0 && !slices.Contains(all, m.Device) {
			all = append(all, m.Device)
		}
	}
	return all
}

// DeviceOf is the device that the last measured merge ran on, of the runs for a device of the policy. Label is "" if any runner
// is enough: then the last merge counts, whatever it was measured for.
func (h History) DeviceOf(label string) (d Device, ok bool) {
	for _, m := range slices.Backward(h.Merges) {
		if len(m.Ratios) > 0 && (label == "" || m.Label == label) {
			return m.Device, true
		}
	}
	return d, false
}

// tip is the newest merge's commit, with its branch.
func (h History) tip() (commit, branch string) {
	if len(h.Merges) == 0 {
		return "", ""
	}
	last := h.Merges[len(h.Merges)-1]
	return last.Commit, last.Branch
}

// shapes is those that were measured on a device, in a fixed order.
func (h History) shapes(d Device) []Shape {
	found := map[Shape]bool{}
	for _, m := range h.Merges {
		if m.Device == d {
			for s := range m.Ratios {
				found[s] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dims, b.Dims))
	})
}
