package driver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDevice(t *testing.T) {
	f := openFake(t)
	if v, err := f.Version(); err != nil || v != 12040 {
		t.Errorf("version %v, %v", v, err)
	}
	if n, err := f.DeviceCount(); err != nil || n != 2 {
		t.Errorf("%d devices, %v", n, err)
	}
	if _, err := f.Device(7); !errors.Is(err, invalidDevice) {
		t.Errorf("device 7: %v", err)
	}
	dev, err := f.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := dev.Properties()
	if err != nil {
		t.Fatal(err)
	}
	// The fake returns 1000 times the attribute's number, plus the device's number.
	want := Properties{
		Name:                "Fake GPU B",
		UUID:                UUID{0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF, 0xB0},
		PCIBusID:            "0000:3B:00.0",
		ComputeMajor:        75001,
		ComputeMinor:        76001,
		SMs:                 16001,
		TotalMemory:         141 << 30,
		L2Bytes:             38001,
		SharedPerBlockOptin: 97001,
		KernelTimeout:       true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if got, want := got.UUID.String(), "GPU-a1a2a3a4-a5a6-a7a8-a9aa-abacadaeafb0"; got != want {
		t.Errorf("UUID %s, want %s", got, want)
	}
	f.fail("cuDeviceGetAttribute", 1, 3)
	if _, err := dev.Properties(); !errors.Is(err, invalidValue) {
		t.Errorf("with one attribute failing: %v", err)
	}
	if got := (Properties{ComputeMajor: 9}).Arch(); got != "sm_90" {
		t.Errorf("Arch() = %s", got)
	}
}
