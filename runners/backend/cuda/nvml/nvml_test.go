package nvml

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

func TestOpenOnThisMachine(t *testing.T) {
	_, err := Open()
	if err == nil || !errors.Is(err, dynlib.ErrMissing) {
		t.Skipf("this machine has an NVIDIA driver (%v)", err)
	}
	const want = "libnvidia-ml.so.1 not found: install the NVIDIA driver"
	if err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestOpenAndClose(t *testing.T) {
	f := openFake(t)
	f.fail("nvmlInit_v2", int32(driverNotLoaded))
	_, err := openPath(f.path)
	const want = "initialising NVML: NVML_ERROR_DRIVER_NOT_LOADED (9): Driver Not Loaded; load the NVIDIA kernel module"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if err := f.Close(); err != nil || f.opened() != 0 {
		t.Errorf("after Close the library is open %d times, %v", f.opened(), err)
	}
}

// figures makes every query and returns one line per result.
func figures(d Device) map[string]string {
	out := make(map[string]string)
	for name, ask := range map[string]func() (string, error){
		"name":         d.Name,
		"UUID":         d.UUID,
		"minor":        func() (string, error) { return show(d.Minor()) },
		"SM clock":     func() (string, error) { return show(d.Clock(SMClock)) },
		"memory clock": func() (string, error) { return show(d.Clock(MemoryClock)) },
		"max SM":       func() (string, error) { return show(d.MaxClock(SMClock)) },
		"max memory":   func() (string, error) { return show(d.MaxClock(MemoryClock)) },
		"reasons":      func() (string, error) { return show(d.Reasons()) },
		"temperature":  func() (string, error) { return show(d.Temperature()) },
		"power":        func() (string, error) { return show(d.Power()) },
		"energy":       func() (string, error) { return show(d.Energy()) },
		"power now":    func() (string, error) { return show(d.InstantPower()) },
		"persistence":  func() (string, error) { return show(d.Persistence()) },
		"uncorrected":  func() (string, error) { return show(d.UncorrectedErrors()) },
		"processes":    func() (string, error) { return show(d.Processes()) },
	} {
		v, err := ask()
		switch {
		case Unsupported(err):
			v = "absent"
		case err != nil:
			v = "ERROR " + err.Error()
		}
		out[name] = v
	}
	return out
}

func show[T any](v T, err error) (string, error) { return fmt.Sprint(v), err }

func TestFigures(t *testing.T) {
	first := map[string]string{
		"name":     "Fake GPU A",
		"UUID":     "GPU-a",
		"minor":    "1",
		"SM clock": "1001", "memory clock": "1002", "max SM": "2001", "max memory": "2002",
		"reasons":     "sw-power-cap, sw-thermal-slowdown, hw-thermal-slowdown, 0x8000000000000000",
		"temperature": "41", "power": "123.456", "energy": "2.147483673e+07", "power now": "654.321", "persistence": "true",
		"uncorrected": "7696581394442",
		"processes":   "[{4000000000 21474836480 true} {4000000001 0 false}]",
	}
	with := func(changes ...string) map[string]string {
		m := make(map[string]string)
		for k, v := range first {
			m[k] = v
		}
		for i := 0; i < len(changes); i += 2 {
			m[changes[i]] = changes[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		flags []string
		find  func(*Library) (Device, error)
		want  map[string]string
	}{
		"by index": {nil, func(l *Library) (Device, error) { return l.DeviceByIndex(0) }, first},
		"by PCI address": {nil,
			func(l *Library) (Device, error) { return l.DeviceByPCI("0000:17:00.0") }, first},
		"the other one": {nil, func(l *Library) (Device, error) { return l.DeviceByIndex(1) }, with("name", "Fake GPU B", "UUID", "GPU-b", "minor", "0")},
		"old library": {[]string{"-DFAKE_OLD"}, func(l *Library) (Device, error) { return l.DeviceByIndex(0) },
			with("reasons", "gpu-idle", "processes", "absent", "power now", "absent")},
		"future library": {[]string{"-DFAKE_NEW"}, func(l *Library) (Device, error) { return l.DeviceByIndex(0) },
			with("temperature", "-42")},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.find(openFake(t, c.flags...).Library)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, figures(d)); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	f := openFake(t)
	if v, err := f.DriverVersion(); err != nil || v != "580.82.07" {
		t.Errorf("driver version %q, %v", v, err)
	}
	if n, err := f.DeviceCount(); err != nil || n != 2 {
		t.Errorf("%d devices, %v", n, err)
	}
	_, err := f.DeviceByPCI("0000:99:00.0")
	if want := "finding GPU 0000:99:00.0: NVML_ERROR_NOT_FOUND (6): Not Found"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	d, err := f.DeviceByIndex(1)
	if err != nil {
		t.Fatal(err)
	}
	f.fail("nvmlDeviceGetTotalEccErrors", int32(NotSupported))
	_, err = d.UncorrectedErrors()
	if want := "reading the uncorrected memory errors of GPU 1: NVML_ERROR_NOT_SUPPORTED (3): Not Supported"; err == nil ||
		err.Error() != want || !Unsupported(err) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	f.fail("nvmlDeviceGetPowerUsage", int32(unknownError))
	_, err = d.Power()
	if want := "reading the power draw of GPU 1: NVML_ERROR_UNKNOWN (999): the library gives no description"; err == nil ||
		err.Error() != want || Unsupported(err) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestManyProcesses(t *testing.T) {
	f := openFake(t)
	d, err := f.DeviceByIndex(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 32, 33, 500} {
		f.running(int32(n))
		list, err := d.Processes()
		if err != nil || len(list) != n {
			t.Errorf("%d processes listed as %d, %v", n, len(list), err)
			continue
		}
		if n > 0 && list[n-1].PID != 4000000000+n-1 {
			t.Errorf("the last of %d is %+v", n, list[n-1])
		}
	}
}

func TestReasons(t *testing.T) {
	for name, c := range map[string]struct {
		reasons, throttling Reasons
		text                string
	}{
		"none":        {0, 0, "none"},
		"idle":        {GPUIdle, 0, "gpu-idle"},
		"fixed":       {ApplicationsClocksSetting | displayClockSetting, 0, "applications-clocks-setting, display-clock-setting"},
		"power":       {GPUIdle | SwPowerCap, SwPowerCap, "gpu-idle, sw-power-cap"},
		"heat":        {swThermalSlowdown | HwThermalSlowdown | hwSlowdown, swThermalSlowdown | HwThermalSlowdown | hwSlowdown, "hw-slowdown, sw-thermal-slowdown, hw-thermal-slowdown"},
		"later":       {syncBoost | hwPowerBrakeSlowdown | boardLimit | reliability, syncBoost | hwPowerBrakeSlowdown | boardLimit | reliability, "sync-boost, hw-power-brake-slowdown, board-limit, reliability"},
		"unknown bit": {1 << 20, 1 << 20, "0x100000"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.reasons.String(); got != c.text {
				t.Errorf("got %s, want %s", got, c.text)
			}
			if got := c.reasons.Throttling(); got != c.throttling {
				t.Errorf("throttling %s, want %s", got, c.throttling)
			}
		})
	}
}
