package nvml

import "github.com/ebitengine/purego"

// A proc is the address of one C function, or zero if the library lacks it. Every function used
// here takes only integers and pointers.
type proc uintptr

// call passes args as the C function expects them. The directive keeps the target of a pointer
// argument on the heap and alive until the function returns. It works only if the caller writes
// uintptr(unsafe.Pointer(…)) in the call itself. For a function that the library lacks, call
// returns the code that NVML itself would return.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) Code {
	if p == 0 {
		return functionNotFound
	}
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return Code(int32(r))
}

// symbols are the functions. The tag gives the name to which nvml.h maps the plain name, if they
// differ. Queries about a device may be missing; they are then unsupported.
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
	nvmlDeviceGetTotalEnergyConsumption    proc `optional:"true"`
	nvmlDeviceGetFieldValues               proc `optional:"true"`
	nvmlDeviceGetComputeRunningProcesses   proc `c:"nvmlDeviceGetComputeRunningProcesses_v3" optional:"true"`
	nvmlDeviceGetTotalEccErrors            proc `optional:"true"`
	nvmlDeviceGetPersistenceMode           proc `optional:"true"`
	nvmlEventSetCreate                     proc `optional:"true"`
	nvmlDeviceRegisterEvents               proc `optional:"true"`
	nvmlEventSetWait                       proc `c:"nvmlEventSetWait_v2" optional:"true"`
	nvmlEventSetFree                       proc `optional:"true"`
}
