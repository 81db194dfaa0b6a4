package gates

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// PairedSpeeds returns the shapes in their order. The speed of a shape with equal machine code is exactly
// 1. The secret shape and shapes without times are left out. More shapes make the upper bounds wider, and
// do not change the lower bounds.
func TestPairedSpeeds(t *testing.T) {
	e := &Evidence{Baseline: &Build{OK: true}, Candidate: &Build{OK: true}, SameShapes: []string{"same"}, Performance: &Performance{}}
	for _, name := range []string{"slow", "same", "untimed", "secret"} {
		e.Shapes = append(e.Shapes, Shape{Name: name, Dims: "N=1", Secret: name == "secret"})
	}
	for r := range 8 {
		var round Round
		for _, name := range []string{"slow", "secret"} {
			s := Series{Shape: name, Order: strings.TrimSpace(strings.Repeat("bcaacb ", 4))}
			for i := range 24 {
				ns := 1000 * (1 + 0.001*float64((i*7+r*5)%11))
				if s.Order[i/6*7+i%6] == SideCandidate {
					ns /= 0.9 * (1 + 0.004*math.Sin(float64(5*r+i/6)))
				}
				s.Nanos = append(s.Nanos, ns)
			}
			round.Series = append(round.Series, s)
		}
		e.Performance.Rounds = append(e.Performance.Rounds, round)
	}
	all := PairedSpeeds(e, 0.001, 0.001)
	if len(all) != 2 || all[0].Shape != "slow" || all[1] != (PairedSpeed{Shape: "same", Dims: "N=1", Same: true, Speed: 1, Lower: 1, Upper: 1}) {
		t.Fatalf("%+v", all)
	}
	slow := all[0]
	if math.Abs(slow.Speed-0.9) > 0.005 || slow.Lower >= slow.Speed || slow.Upper <= slow.Speed || math.Abs(slow.Baseline/slow.Candidate-0.9) > 0.01 || math.Abs(slow.Baseline-1) > 0.02 {
		t.Errorf("%+v", slow)
	}
	e.Shapes[3].Secret = false
	more := PairedSpeeds(e, 0.001, 0.001)
	if i := slices.IndexFunc(more, func(p PairedSpeed) bool { return p.Shape == "slow" }); len(more) != 3 || more[i].Upper <= slow.Upper || more[i].Lower != slow.Lower {
		t.Errorf("with one more shape: %+v", more)
	}
}
