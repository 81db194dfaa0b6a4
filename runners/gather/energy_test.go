package gather

import (
	"context"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/runners"
)

// An energetic backend has a GPU whose candidate takes less energy by the given share in half of the pairs, and more in the others
// if it is noisy.
type energetic struct {
	scripted
	saves, noise float64
}

func (b *energetic) Energy(_ context.Context, gate *policy.EnergyGate, _ runners.Progress) (*gates.Energy, error) {
	segment := func(watts float64) gates.EnergySegment {
		return gates.EnergySegment{Passes: 10, Seconds: 1, Power: &gates.SensorChanges{At: []float64{0}, Values: []float64{watts}}}
	}
	e := &gates.Energy{}
	for _, name := range gate.Shapes.Pick(b.job.ShapeNames()) {
		s := gates.EnergySeries{Series: gates.Series{Shape: name, Batch: 1, Verified: gates.EnergyPairs, Worst: &gates.Errors{Elements: 1}}}
		for k := range gates.EnergyPairs {
			noise := b.noise * float64(1-2*(k%2))
			s.Order = strings.TrimSpace(s.Order + " bc")
			s.Nanos = append(s.Nanos, 1000, 1000)
			s.Segments = append(s.Segments, segment(500), segment(500*(1-b.saves+noise)))
		}
		s.Rests = append(s.Rests, segment(100))
		e.Series = append(e.Series, s)
	}
	return e, b.ask("energy")
}

// TestEnergyIsMeasuredOnlyUntilDecided: measuring again adds to what is known, and is no new chance.
func TestEnergyIsMeasuredOnlyUntilDecided(t *testing.T) {
	asksEnergy := func(b *energetic) {
		b.job = job(t)
		b.job.Policy = b.job.Policy.WithGates(func(g *policy.Gates) {
			g.Energy = &policy.EnergyGate{Increase: &quantity.Bound[quantity.Percent]{Op: quantity.AtMost, Value: 0.05}, Shapes: policy.Shapes{First: true}, Confidence: 0.95}
		})
	}
	gather := func(b energetic, m *memory) *gates.Evidence {
		asksEnergy(&b)
		if m != nil {
			b.job.Record, b.job.Rounds = m, 1
		}
		e, err := Gather(t.Context(), b.job, &b, silent{})
		if err != nil || e.Fault != "" {
			t.Fatalf("%v %s", err, e.Fault)
		}
		return e
	}
	calm, noisy := energetic{scripted: scripted{compile: true, ratio: 2}, saves: 0.1}, energetic{scripted: scripted{compile: true, ratio: 2}, noise: 0.4}
	for _, c := range []struct {
		name   string
		first  energetic
		again  bool
		untime bool // nothing was timed
		series int
	}{
		{"decided", calm, false, false, 1},
		{"decided, and asked again", calm, true, false, 1},
		{"undecided", noisy, false, false, 1},
		{"undecided, and asked again", noisy, true, false, 2},
		{"nothing was timed", calm, true, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := gather(c.first, nil)
			if len(was.Energy.Series) != 1 || was.Energy.Seconds <= 0 {
				t.Fatalf("%+v", was.Energy)
			}
			if c.untime {
				was.Performance = nil
			}
			now := gather(calm, &memory{earlier: runners.Earlier{Evidence: was, Again: c.again}, attempts: 1})
			if len(now.Energy.Series) != c.series || len(was.Energy.Series) != 1 {
				t.Errorf("%d series, want %d", len(now.Energy.Series), c.series)
			}
		})
	}
}
