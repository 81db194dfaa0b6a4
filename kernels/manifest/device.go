package manifest

import (
	"cmp"
	"slices"
)

// smsName is the number of SMs of the GPU in an expression. A dim or a toggle of that name comes first.
const smsName = "SMS"

// SupposedSMs is the number of SMs that expressions are tried with where there is no GPU: that of an H100 or H200.
const SupposedSMs = 132

// On returns the manifest for a GPU with so many SMs.
func (m *Manifest) On(sms int) *Manifest {
	if m == nil {
		return nil
	}
	on := *m
	on.sms = sms
	return &on
}

func (m *Manifest) smsHere() int { return cmp.Or(m.sms, SupposedSMs) }

// followsSMs reports whether a launch depends on the number of SMs.
func (m *Manifest) followsSMs() bool {
	for e := range m.launchExprs() {
		if slices.Contains(e.names, smsName) {
			return true
		}
	}
	return false
}

// launchExprs are the expressions that are computed on the GPU's own host and may depend on it: grids, blocks and scratch, and
// settings. What is compiled, and what is asked, is the same on every GPU.
func (m *Manifest) launchExprs() map[*Expr]bool {
	all := exprsOf(m.Scratch)
	for _, l := range m.allLaunches() {
		all = slices.Concat(all, exprsOf(&l.Start))
		for i := range l.Steps {
			all = slices.Concat(all, exprsOf(&l.Steps[i].Start, l.Steps[i].Scalars))
		}
	}
	for i := range m.Arguments {
		all = slices.Concat(all, m.Arguments[i].settings())
	}
	set := map[*Expr]bool{}
	for _, e := range all {
		set[e] = true
	}
	return set
}
