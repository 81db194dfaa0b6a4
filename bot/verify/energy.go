package verify

import (
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
)

// energy: every shape that the gate names was measured, with all segments of both sides, or the candidate failed.
func (c checker) energy() error {
	found, gate := c.evidence.Energy, c.rule.Gates.Energy
	switch {
	case found == nil:
		return nil
	case gate == nil:
		return errors.New("energy: nobody asked for it")
	case len(found.Series) > 0 && c.mode.Clock != gates.ClockDevice:
		return fmt.Errorf("energy.series: nothing reads the energy of a %s kernel", c.evidence.Mode)
	case len(found.Series) > 0 && found.Skipped != "":
		return errors.New("energy.skipped: there are series, and it says that nothing was measured")
	}
	want := gate.Shapes.Pick(c.job.ShapeNames())
	for i, s := range found.Series {
		switch field := fmt.Sprintf("energy.series[%d]", i); {
		case len(want) == 0 || s.Shape != want[i%len(want)]:
			return differs(field+".shape", s.Shape, want)
		case found.Failure != nil && i == len(found.Series)-1:
			// It ended in this series.
		case len(s.Segments) != 2*gates.EnergyPairs:
			return differs(field+".segments", len(s.Segments), 2*gates.EnergyPairs)
		case s.Verified < s.Batch*gates.EnergyPairs:
			return fmt.Errorf("%s.verified: %d outputs were compared of %d pairs of %d launches", field, s.Verified, gates.EnergyPairs, s.Batch)
		}
	}
	// An attempt measures all shapes.
	if n := len(found.Series); found.Skipped == "" && found.Failure == nil && len(want) > 0 && (n == 0 || n%len(want) != 0) {
		return fmt.Errorf("energy.series: there are %d, and each attempt has %d shapes", len(found.Series), len(want))
	}
	return nil
}
