package runners

import (
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// TestModes checks that every mode of a manifest has its row, and that each row is complete.
func TestModes(t *testing.T) {
	all := []manifest.Mode{manifest.ModeCPU, manifest.ModeCUDA, manifest.ModeCommand}
	for _, mode := range all {
		info := ModeOf(&manifest.Manifest{Mode: mode})
		if info.Mode != mode || info.Clock == "" || info.Label == "" || info.OwnHarness() != (mode == manifest.ModeCommand) {
			t.Errorf("%s: %+v", mode, info)
		}
	}
	if len(modes) != len(all) || slices.ContainsFunc(modes, func(i ModeInfo) bool { return !slices.Contains(all, i.Mode) }) {
		t.Errorf("there are %d rows", len(modes))
	}
	if cpu, gpu := ModeOn(gates.DeviceCPU).Mode, ModeOn(gates.DeviceGPU).Mode; cpu != manifest.ModeCPU || gpu != manifest.ModeCUDA {
		t.Errorf("%s runs on a CPU, and %s on a GPU", cpu, gpu)
	}
	if unknown := ModeOf(&manifest.Manifest{Mode: "quantum"}); unknown.Label != "" || unknown.SingleLaunches {
		t.Errorf("a mode that nobody knows: %+v", unknown)
	}
}

// TestUnrecordedAbilities checks that the judge reads evidence without abilities as that of today's backends. A backend that
// changes its abilities ends this: evidence of the two is then judged differently, and the row leaves the test.
func TestUnrecordedAbilities(t *testing.T) {
	for _, info := range modes {
		if e := (&gates.Evidence{Mode: string(info.Mode)}); !e.Can().Equal(info.Abilities) {
			t.Errorf("%s: %+v", info.Mode, e.Can())
		}
	}
}
