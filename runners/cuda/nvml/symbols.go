package nvml

import (
	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/cuda/dynlib"
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
		return functionNotFound
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
	deviceGetPowerUsage,
	deviceGetComputeRunningProcesses,
	deviceGetTotalEccErrors, deviceGetEccMode,
	deviceGetPersistenceMode,
	eventSetCreate, deviceRegisterEvents, eventSetWait, eventSetFree proc
}

// table is the functions, each under the name that nvml.h maps the plain one to.
// Questions about a device may be missing: they are then unsupported.
func (s *symbols) table() []dynlib.Symbol {
	need := func(to *proc, names ...string) dynlib.Symbol { return dynlib.Symbol{To: (*uintptr)(to), Names: names} }
	want := func(to *proc, names ...string) dynlib.Symbol {
		return dynlib.Symbol{To: (*uintptr)(to), Names: names, Optional: true}
	}
	return []dynlib.Symbol{
		need(&s.init, "nvmlInit_v2"),
		need(&s.shutdown, "nvmlShutdown"),
		need(&s.errorString, "nvmlErrorString"),
		need(&s.systemGetDriverVersion, "nvmlSystemGetDriverVersion"),
		need(&s.deviceGetCount, "nvmlDeviceGetCount_v2"),
		need(&s.deviceGetHandleByIndex, "nvmlDeviceGetHandleByIndex_v2"),
		need(&s.deviceGetHandleByUUID, "nvmlDeviceGetHandleByUUID"),
		need(&s.deviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2"),

		want(&s.deviceGetName, "nvmlDeviceGetName"),
		want(&s.deviceGetUUID, "nvmlDeviceGetUUID"),
		want(&s.deviceGetPciInfo, "nvmlDeviceGetPciInfo_v3"),
		want(&s.deviceGetClockInfo, "nvmlDeviceGetClockInfo"),
		want(&s.deviceGetMaxClockInfo, "nvmlDeviceGetMaxClockInfo"),
		// Renamed in driver 535; the bits are the same.
		want(&s.deviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
		want(&s.deviceGetTemperature, "nvmlDeviceGetTemperature"),
		want(&s.deviceGetTemperatureV, "nvmlDeviceGetTemperatureV"),
		want(&s.deviceGetPowerUsage, "nvmlDeviceGetPowerUsage"),
		want(&s.deviceGetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v3"),
		want(&s.deviceGetTotalEccErrors, "nvmlDeviceGetTotalEccErrors"),
		want(&s.deviceGetEccMode, "nvmlDeviceGetEccMode"),
		want(&s.deviceGetPersistenceMode, "nvmlDeviceGetPersistenceMode"),
		want(&s.eventSetCreate, "nvmlEventSetCreate"),
		want(&s.deviceRegisterEvents, "nvmlDeviceRegisterEvents"),
		want(&s.eventSetWait, "nvmlEventSetWait_v2"),
		want(&s.eventSetFree, "nvmlEventSetFree"),
	}
}
