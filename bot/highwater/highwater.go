// Package highwater finds the best state of a kernel among those that were merged. It
// multiplies the speedups that were measured for each merge to the default branch, for each device and
// shape, which gives the speed of each merged commit relative to the others. The commit with the best
// speed is the kernel's high-water mark.
//
// It is pure: a history goes in, which the ledger derives from events, and marks come out. It knows
// nothing of git and of policies.
//
//   - Only merges count. A branch that was measured and never merged is no state of the kernel.
//   - A merge without a measurement on the device keeps the level of the commit before it, and is counted.
//     Equal machine code has the ratio 1.
//   - A merge counts relative to the commit that it was measured against, whichever that was.
//   - A mark stays, whatever happens to the branch: a force push does not lower it, nor does a renamed kernel.
package highwater

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// A Device is what levels are comparable on.
type Device struct {
	Name string
	Arch string
}

// A Shape is a problem size. Another size under the same name is another shape.
type Shape struct {
	Name string
	Dims string
}

// A Merge is one push to the default branch that touched the kernel, and what was measured of it.
type Merge struct {
	Commit  string // the branch's tip after the push
	Folder  string // which kernel it is
	Branch  string
	Against string // the commit that it was measured against; none where it was compared with no commit
	Device  Device
	Label   string        // the device of the policy that the run was for; none if any runner was enough
	Outcome gates.Outcome // none before it was judged
	At      time.Time
	Ratios  map[Shape]float64 // baseline/candidate; none where it was not measured
}

// OnBranch is a commit as a baseline of changes to a branch, on a device of the policy.
type OnBranch struct{ Commit, Branch, Label string }

// A History is the merges of one kernel, oldest first.
type History struct {
	Merges []Merge
	// Before is, by the tip that a push brought, the commit that the push is compared with: the tip before it, or where a
	// forced one left the old branch. Pushes that did not touch the kernel are there too.
	Before map[string]string
	// Unbuildable is the commits whose kernel did not build as a baseline, for changes to one branch. Every branch has its own
	// policy, with its own compilers, and every device its own architecture, so a failure on one says nothing about another.
	Unbuildable map[OnBranch]bool
}

// A Position is where a commit stands relative to the mark of one shape.
type Position struct {
	Commit     string        // the mark
	At         time.Time     // of its verdict, or of the first that was measured against it
	Outcome    gates.Outcome // none where it was never judged as a candidate
	Level      float64       // speed of the commit relative to the mark, at most 1
	Lost       []gates.Loss  // by the merges from the mark to the commit, in their order
	Unmeasured int           // merges from the mark to the commit that were not measured on the device
}

// Positions is where a commit of a branch stands, by shape, on a device. Shapes that were never
// measured there are left out. A commit that no push is known for, such as one in the middle of a push, counts as
// the branch's newest.
func (h History) Positions(commit, branch string, d Device) map[Shape]Position {
	all := map[Shape]Position{}
	for _, s := range h.shapes(d) {
		c := h.chain(d, s)
		at := c.find(commit, branch)
		if at == nil {
			continue
		}
		mark := c.mark(at.group)
		if mark == nil {
			continue
		}
		p := Position{Commit: mark.commit, At: mark.at, Outcome: mark.outcome, Level: min(at.level/mark.level, 1)}
		p.Lost, p.Unmeasured = since(mark, at)
		all[s] = p
	}
	return all
}

// Marks is where the newest merge stands.
func (h History) Marks(d Device) map[Shape]Position {
	tip, branch := h.tip()
	return h.Positions(tip, branch, d)
}
