package nvml

import "github.com/ebitengine/purego"

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

// symbols are the functions; the tag is the name that nvml.h maps the plain one to,
// where that is another. Questions about a device may be missing: they are then
// unsupported.
type symbols struct {
	nvmlInit                      proc `c:"nvmlInit_v2"`
	nvmlShutdown                  proc
	nvmlErrorString               proc
	nvmlSystemGetDriverVersion    proc
	nvmlDeviceGetCount            proc `c:"nvmlDeviceGetCount_v2"`
	nvmlDeviceGetHandleByIndex    proc `c:"nvmlDeviceGetHandleByIndex_v2"`
	nvmlDeviceGetHandleByPciBusId proc `c:"nvmlDeviceGetHandleByPciBusId_v2"`
	nvmlDeviceGetName             proc `optional:"true"`
	nvmlDeviceGetUUID             proc `optional:"true"`
	nvmlDeviceGetMinorNumber      proc `optional:"true"`
	nvmlDeviceGetClockInfo        proc `optional:"true"`
	nvmlDeviceGetMaxClockInfo     proc `optional:"true"`
	// Renamed in driver 535; the bits are the same.
	nvmlDeviceGetCurrentClocksEventReasons proc `c:"nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons" optional:"true"`
	nvmlDeviceGetTemperature               proc `optional:"true"`
	nvmlDeviceGetTemperatureV              proc `optional:"true"`
	nvmlDeviceGetPowerUsage                proc `optional:"true"`
	nvmlDeviceGetComputeRunningProcesses   proc `c:"nvmlDeviceGetComputeRunningProcesses_v3" optional:"true"`
	nvmlDeviceGetTotalEccErrors            proc `optional:"true"`
	nvmlDeviceGetPersistenceMode           proc `optional:"true"`
	nvmlEventSetCreate                     proc `optional:"true"`
	nvmlDeviceRegisterEvents               proc `optional:"true"`
	nvmlEventSetWait                       proc `c:"nvmlEventSetWait_v2" optional:"true"`
	nvmlEventSetFree                       proc `optional:"true"`
}
