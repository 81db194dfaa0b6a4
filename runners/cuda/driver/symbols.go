package driver

import (
	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/cuda/dynlib"
)

// A proc is the address of one C function; zero where the driver lacks it.
//
// Every entry point used here takes integers and pointers alone, never a float
// by value, so purego.SyscallN is enough. It costs a sixth of what a function
// registered through reflection costs, and that time lies between an event and
// the launch it measures.
type proc uintptr

// call passes args as the C function expects them. The directive keeps what a
// pointer argument points at on the heap and alive until the function returns,
// but only where the caller writes uintptr(unsafe.Pointer(…)) in the call
// itself: the conversion must not be hidden in a function of its own.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) Code {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return Code(int32(r))
}

// symbols are the entry points, each under the name that cuda.h maps the plain
// one to.
type symbols struct {
	cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString proc

	cuDeviceGetCount, cuDeviceGet, cuDeviceGetName, cuDeviceGetUuid,
	cuDeviceTotalMem, cuDeviceGetAttribute, cuDeviceGetPCIBusId proc

	cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease,
	cuCtxSetCurrent, cuCtxSynchronize,
	cuCtxResetPersistingL2Cache proc

	cuMemAlloc, cuMemFree,
	cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuMemcpyDtoDAsync,
	cuMemsetD8Async, cuMemsetD32Async proc

	cuMemGetAllocationGranularity, cuMemCreate, cuMemRelease,
	cuMemExportToShareableHandle, cuMemImportFromShareableHandle,
	cuMemAddressReserve, cuMemAddressFree, cuMemMap, cuMemUnmap, cuMemSetAccess proc

	cuModuleLoadDataEx, cuModuleUnload, cuModuleGetFunction, cuModuleGetGlobal,
	cuFuncGetAttribute, cuFuncSetAttribute, cuFuncLoad, cuFuncGetParamInfo,
	cuOccupancyMaxActiveBlocksPerMultiprocessor,
	cuLaunchKernel, cuLaunchKernelEx, cuTensorMapEncodeTiled proc

	cuStreamCreate, cuStreamDestroy, cuStreamSynchronize, cuStreamQuery,
	cuEventCreate, cuEventDestroy, cuEventRecord, cuEventQuery,
	cuEventSynchronize, cuEventElapsedTime proc

	cuStreamBeginCapture, cuStreamEndCapture, cuGraphGetNodes,
	cuGraphInstantiateWithFlags, cuGraphUpload, cuGraphLaunch,
	cuGraphExecDestroy, cuGraphDestroy proc
}

func (s *symbols) table() []dynlib.Symbol {
	need := func(to *proc, names ...string) dynlib.Symbol { return dynlib.Symbol{To: (*uintptr)(to), Names: names} }
	want := func(to *proc, names ...string) dynlib.Symbol {
		return dynlib.Symbol{To: (*uintptr)(to), Names: names, Optional: true}
	}
	return []dynlib.Symbol{
		need(&s.cuInit, "cuInit"),
		need(&s.cuDriverGetVersion, "cuDriverGetVersion"),
		need(&s.cuGetErrorName, "cuGetErrorName"),
		need(&s.cuGetErrorString, "cuGetErrorString"),

		need(&s.cuDeviceGetCount, "cuDeviceGetCount"),
		need(&s.cuDeviceGet, "cuDeviceGet"),
		need(&s.cuDeviceGetName, "cuDeviceGetName"),
		// The first version gives every MIG slice its parent's UUID.
		need(&s.cuDeviceGetUuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
		need(&s.cuDeviceTotalMem, "cuDeviceTotalMem_v2"),
		need(&s.cuDeviceGetAttribute, "cuDeviceGetAttribute"),
		need(&s.cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId"),

		need(&s.cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2"),
		need(&s.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"),
		need(&s.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"),
		need(&s.cuCtxSetCurrent, "cuCtxSetCurrent"),
		need(&s.cuCtxSynchronize, "cuCtxSynchronize"),
		need(&s.cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache"),

		need(&s.cuMemAlloc, "cuMemAlloc_v2"),
		need(&s.cuMemFree, "cuMemFree_v2"),
		need(&s.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"),
		need(&s.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"),
		need(&s.cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"),
		need(&s.cuMemsetD8Async, "cuMemsetD8Async"),
		need(&s.cuMemsetD32Async, "cuMemsetD32Async"),

		need(&s.cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity"), // CUDA 10.2, as all of these
		need(&s.cuMemCreate, "cuMemCreate"),
		need(&s.cuMemRelease, "cuMemRelease"),
		need(&s.cuMemExportToShareableHandle, "cuMemExportToShareableHandle"),
		need(&s.cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle"),
		need(&s.cuMemAddressReserve, "cuMemAddressReserve"),
		need(&s.cuMemAddressFree, "cuMemAddressFree"),
		need(&s.cuMemMap, "cuMemMap"),
		need(&s.cuMemUnmap, "cuMemUnmap"),
		need(&s.cuMemSetAccess, "cuMemSetAccess"),

		need(&s.cuModuleLoadDataEx, "cuModuleLoadDataEx"),
		need(&s.cuModuleUnload, "cuModuleUnload"),
		need(&s.cuModuleGetFunction, "cuModuleGetFunction"),
		need(&s.cuModuleGetGlobal, "cuModuleGetGlobal_v2"),
		need(&s.cuFuncGetAttribute, "cuFuncGetAttribute"),
		need(&s.cuFuncSetAttribute, "cuFuncSetAttribute"),
		want(&s.cuFuncLoad, "cuFuncLoad"),                 // CUDA 12.4
		want(&s.cuFuncGetParamInfo, "cuFuncGetParamInfo"), // CUDA 12.4
		need(&s.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor"),
		need(&s.cuLaunchKernel, "cuLaunchKernel"),
		want(&s.cuLaunchKernelEx, "cuLaunchKernelEx"),             // CUDA 11.8
		want(&s.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled"), // CUDA 12.0

		need(&s.cuStreamCreate, "cuStreamCreate"),
		need(&s.cuStreamDestroy, "cuStreamDestroy_v2"),
		need(&s.cuStreamSynchronize, "cuStreamSynchronize"),
		need(&s.cuStreamQuery, "cuStreamQuery"),
		need(&s.cuEventCreate, "cuEventCreate"),
		need(&s.cuEventDestroy, "cuEventDestroy_v2"),
		need(&s.cuEventRecord, "cuEventRecord"),
		need(&s.cuEventQuery, "cuEventQuery"),
		need(&s.cuEventSynchronize, "cuEventSynchronize"),
		need(&s.cuEventElapsedTime, "cuEventElapsedTime_v2", "cuEventElapsedTime"), // _v2: CUDA 12.8

		need(&s.cuStreamBeginCapture, "cuStreamBeginCapture_v2"),
		need(&s.cuStreamEndCapture, "cuStreamEndCapture"),
		need(&s.cuGraphGetNodes, "cuGraphGetNodes"),
		need(&s.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags"), // CUDA 11.4
		need(&s.cuGraphUpload, "cuGraphUpload"),
		need(&s.cuGraphLaunch, "cuGraphLaunch"),
		need(&s.cuGraphExecDestroy, "cuGraphExecDestroy"),
		need(&s.cuGraphDestroy, "cuGraphDestroy"),
	}
}
