package policy

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/compare"
)

func compareEnforcement(l *compare.List, path string, old, new Enforcement) {
	compare.Asked(l, path+".required", old.Decides(), new.Decides())
}

// compareDeadline treats more time as looser: work that did not end in time may do so now.
func compareDeadline(l *compare.List, path string, old, new Deadline) {
	switch {
	case old.Timeout == new.Timeout:
	case old.Timeout == 0 || new.Timeout == 0:
		l.Unknown(path+".timeout", old.Timeout, new.Timeout)
	default:
		compare.Less(l, path+".timeout", old.Timeout, new.Timeout)
	}
}

// compareShapes compares shapes; wider is the direction of more shapes.
func compareShapes(l *compare.List, path string, old, new Shapes, wider compare.Direction) {
	within := func(a, b Shapes) bool {
		if a.First || b.First { // this package does not know which shape is the first
			return b.All && !b.First || a.First && b.First
		}
		return b.All || !a.All && !slices.ContainsFunc(a.Names, func(name string) bool { return !slices.Contains(b.Names, name) })
	}
	more, less := within(old, new), within(new, old)
	l.Way(path, old.String(), new.String(), more && (less || wider == compare.Tightens), less)
}

// orNone returns the bounds, or bounds that ask for nothing if there are none.
func orNone[T any](bounds *T) (asked T) {
	if bounds != nil {
		asked = *bounds
	}
	return asked
}
