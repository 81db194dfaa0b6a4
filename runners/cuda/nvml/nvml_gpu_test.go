package nvml

import (
	"maps"
	"slices"
	"testing"
)

// On a machine with a GPU every figure is printed, and those that cannot be
// absent are checked.
func TestGPUFigures(t *testing.T) {
	l, err := Open()
	if err != nil {
		t.Skipf("no GPU to ask: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	version, err := l.DriverVersion()
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.DeviceCount()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("driver %s, %d GPUs", version, n)
	for i := range n {
		d, err := l.DeviceByIndex(i)
		if err != nil {
			t.Fatal(err)
		}
		got := figures(d)
		for _, name := range slices.Sorted(maps.Keys(got)) {
			t.Logf("%s %-13s %s", d, name, got[name])
		}
		for _, name := range []string{"name", "UUID", "PCI", "SM clock", "reasons", "temperature"} {
			if v := got[name]; v == "" || v == "absent" || len(v) > 5 && v[:5] == "ERROR" {
				t.Errorf("%s of %s: %q", name, d, v)
			}
		}
		for _, find := range []func() (Device, error){
			func() (Device, error) { return l.DeviceByUUID(got["UUID"]) },
			func() (Device, error) { return l.DeviceByPCI(got["PCI"]) },
		} {
			same, err := find()
			if err != nil {
				t.Error(err)
				continue
			}
			if name, err := same.UUID(); err != nil || name != got["UUID"] {
				t.Errorf("found by %s: UUID %q, %v", same, name, err)
			}
		}
	}
}
