package nvml

import (
	"maps"
	"slices"
	"testing"
)

// TestGPUFigures prints every value on a machine with a GPU, and checks the values that must be
// available.
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
		for _, name := range []string{"name", "SM clock", "reasons", "temperature"} {
			if v := got[name]; v == "" || v == "absent" || len(v) > 5 && v[:5] == "ERROR" {
				t.Errorf("%s of %s: %q", name, d, v)
			}
		}
	}
}
