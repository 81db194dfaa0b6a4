package nvml

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// A proc is the address of one C function; zero where the library lacks it.
// Every function used here takes integers and pointers alone.
type proc uintptr

// call passes args as the C function expects them. The directive keeps what a
// pointer argument points at on the heap and alive until the function returns,
// but only where the caller writes uintptr(unsafe.Pointer(…)) in the call
// itself. A function that the library lacks answers as NVML itself would.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) Code {
	if p == 0 {
		return FunctionNotFound
	}
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return Code(int32(r))
}

type symbols struct {
	init, shutdown, errorString,
	systemGetDriverVersion,
	deviceGetCount, deviceGetHandleByIndex, deviceGetHandleByUUID, deviceGetHandleByPciBusId,
	deviceGetName, deviceGetUUID, deviceGetPciInfo,
	deviceGetClockInfo, deviceGetMaxClockInfo, deviceGetCurrentClocksEventReasons,
	deviceGetTemperature, deviceGetTemperatureV,
	deviceGetPowerUsage, deviceGetEnforcedPowerLimit,
	deviceGetComputeRunningProcesses,
	deviceGetTotalEccErrors, deviceGetEccMode,
	deviceGetPersistenceMode proc
}

// resolve finds the functions, each under the name that nvml.h maps the plain
// one to. Questions about a device may be missing: they are then unsupported.
func (s *symbols) resolve(handle uintptr, library string) error {
	for _, f := range []struct {
		to    *proc
		names []string
	}{
		{&s.init, []string{"nvmlInit_v2"}},
		{&s.shutdown, []string{"nvmlShutdown"}},
		{&s.errorString, []string{"nvmlErrorString"}},
		{&s.systemGetDriverVersion, []string{"nvmlSystemGetDriverVersion"}},
		{&s.deviceGetCount, []string{"nvmlDeviceGetCount_v2"}},
		{&s.deviceGetHandleByIndex, []string{"nvmlDeviceGetHandleByIndex_v2"}},
		{&s.deviceGetHandleByUUID, []string{"nvmlDeviceGetHandleByUUID"}},
		{&s.deviceGetHandleByPciBusId, []string{"nvmlDeviceGetHandleByPciBusId_v2"}},
	} {
		if *f.to = lookup(handle, f.names); *f.to == 0 {
			return fmt.Errorf("%s lacks %s: upgrade the NVIDIA driver to 525 or newer, or use --runner cpu", library, f.names[0])
		}
	}
	for to, names := range map[*proc][]string{
		&s.deviceGetName:         {"nvmlDeviceGetName"},
		&s.deviceGetUUID:         {"nvmlDeviceGetUUID"},
		&s.deviceGetPciInfo:      {"nvmlDeviceGetPciInfo_v3"},
		&s.deviceGetClockInfo:    {"nvmlDeviceGetClockInfo"},
		&s.deviceGetMaxClockInfo: {"nvmlDeviceGetMaxClockInfo"},
		// Renamed in driver 535; the bits are the same.
		&s.deviceGetCurrentClocksEventReasons: {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
		&s.deviceGetTemperature:               {"nvmlDeviceGetTemperature"},
		&s.deviceGetTemperatureV:              {"nvmlDeviceGetTemperatureV"},
		&s.deviceGetPowerUsage:                {"nvmlDeviceGetPowerUsage"},
		&s.deviceGetEnforcedPowerLimit:        {"nvmlDeviceGetEnforcedPowerLimit"},
		&s.deviceGetComputeRunningProcesses:   {"nvmlDeviceGetComputeRunningProcesses_v3"},
		&s.deviceGetTotalEccErrors:            {"nvmlDeviceGetTotalEccErrors"},
		&s.deviceGetEccMode:                   {"nvmlDeviceGetEccMode"},
		&s.deviceGetPersistenceMode:           {"nvmlDeviceGetPersistenceMode"},
	} {
		*to = lookup(handle, names)
	}
	return nil
}

// lookup finds the first of the names that the library has.
func lookup(handle uintptr, names []string) proc {
	for _, name := range names {
		if addr, err := purego.Dlsym(handle, name); err == nil {
			return proc(addr)
		}
	}
	return 0
}
