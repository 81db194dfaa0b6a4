package attempts

import (
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// Two devices share no evidence, even if their hardware has one name. Those that block share the list of a pull request's machine
// codes, in which each has its own place; one that informs has its own list.
func TestDevicesAreApart(t *testing.T) {
	c := runners.Code{Baseline: "b", Candidate: "c", Compiler: "cc", Device: "one name", Arch: "x"}
	one := Key{Repo: 7, Folder: "k", Requirements: "a", Policy: "p"}
	l4, h200, informs := one, one, one
	l4.Label, h200.Label, informs.Label, informs.Informs = "l4", "h200", "a100", true
	for name, of := range map[string]func(Key) string{
		"the attempts at a machine code": func(m Key) string { return m.OfCode(c) },
		"the attempts at sources":        func(m Key) string { return m.OfSources("s", c) },
		"the place in a list":            func(m Key) string { return m.Listed(c) },
		"the list of an author":          func(m Key) string { return m.OfAuthor("walt", c) },
	} {
		seen := map[string]bool{}
		for _, m := range []Key{one, l4, h200, informs} {
			seen[of(m)] = true
		}
		if len(seen) != 4 {
			t.Errorf("%s: %v", name, seen)
		}
	}
	if l4.OfPull(3) != h200.OfPull(3) || l4.OfPull(3) != one.OfPull(3) {
		t.Error("devices that block have separate lists of machine codes")
	}
	if informs.OfPull(3) == l4.OfPull(3) {
		t.Error("a device that informs spends the error rate of those that block")
	}
}
