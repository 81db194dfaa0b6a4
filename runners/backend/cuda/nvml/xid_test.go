package nvml

import (
	"errors"
	"testing"
)

func TestXidsAreHeardInOrder(t *testing.T) {
	f := openFake(t)
	d, err := f.DeviceByIndex(0)
	if err != nil {
		t.Fatal(err)
	}
	f.xid(99) // nobody listens yet
	w, err := d.WatchXids()
	if err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		x, ok, err := w.Next(0)
		got := ""
		if ok {
			got = x.String()
		}
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	next("")
	f.xid(31)
	f.xid(7777)
	next("Xid 31 (GPU memory page fault)")
	next("Xid 7777")
	next("")
	f.fail("nvmlEventSetWait_v2", int32(GPUIsLost))
	if _, ok, err := w.Next(0); ok || !errors.Is(err, GPUIsLost) {
		t.Errorf("a lost GPU: %v, %v", ok, err)
	}
	if err := w.Close(); err != nil || f.sets() != 0 {
		t.Errorf("closed with %v, %d event sets are left", err, f.sets())
	}
}

// TestXidsThatNobodyTells checks that WatchXids returns an error and leaks nothing if events are
// not available.
func TestXidsThatNobodyTells(t *testing.T) {
	for _, c := range []struct {
		name, call string
		code       Code
	}{
		{"no event sets", "nvmlEventSetCreate", functionNotFound},
		{"no permission", "nvmlDeviceRegisterEvents", noPermission},
		{"not this GPU", "nvmlDeviceRegisterEvents", NotSupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := openFake(t)
			d, err := f.DeviceByIndex(0)
			if err != nil {
				t.Fatal(err)
			}
			f.fail(c.call, int32(c.code))
			if _, err := d.WatchXids(); !errors.Is(err, c.code) || f.sets() != 0 {
				t.Errorf("got %v, %d event sets are left", err, f.sets())
			}
		})
	}
}
