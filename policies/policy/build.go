package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A BuildGate only asks that the compiler succeeds in time.
type BuildGate struct {
	Enforcement
	Deadline
}

func (g *BuildGate) String() string { return fmt.Sprintf("the kernel compiles within %v", g.Timeout) }

func (g *BuildGate) fill(*strict.Node) {
	g.Timeout = cmp.Or(g.Timeout, quantity.Duration(10*time.Minute))
}

func (g *BuildGate) check(n *strict.Node, _ rest) {
	if !g.Decides() {
		n.Child("required").Errorf("a kernel that does not compile passes nothing (delete it)")
	}
}

func (g *BuildGate) compare(l *compare.List, path string, old *BuildGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
}

// buildDeclared is the entry of the one gate that every rule has.
var buildDeclared = declared{
	name:    "build",
	asked:   func(g *Gates) gate { return &g.Build },
	drop:    func(*Gates) {},
	narrow:  func(*Gates, []string, []int64) {},
	compare: func(l *compare.List, path string, old, new *Gates) { new.Build.compare(l, path, &old.Build) },
}
