package driver

import "github.com/ebitengine/purego"

// A proc is the address of one C function, or zero if the driver lacks it.
//
// Every function used here takes only integers and pointers, never a float by value, so
// purego.SyscallN is enough. It costs a sixth of what a function registered through reflection
// costs, and that time lies between an event and the launch it measures.
type proc uintptr

// call passes args as the C function expects them. The directive keeps the target of a pointer
// argument on the heap and alive until the function returns. It works only if the caller writes
// uintptr(unsafe.Pointer(…)) in the call itself: a helper function must not hide the conversion.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) Code {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return Code(int32(r))
}

// symbols are the entry points. The tag gives the name to which cuda.h maps the plain name, if they
// differ; see [dynlib.Symbols].
type symbols struct {
	cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString, cuDeviceGetCount, cuDeviceGet proc
	cuDeviceGetName                                                                             proc
	// The first version returns the parent's UUID for every MIG slice.
	cuDeviceGetUuid                                                proc `c:"cuDeviceGetUuid_v2 cuDeviceGetUuid"`
	cuDeviceTotalMem                                               proc `c:"cuDeviceTotalMem_v2"`
	cuDeviceGetAttribute, cuDeviceGetPCIBusId                      proc
	cuDevicePrimaryCtxSetFlags                                     proc `c:"cuDevicePrimaryCtxSetFlags_v2"`
	cuDevicePrimaryCtxRetain                                       proc
	cuDevicePrimaryCtxRelease                                      proc `c:"cuDevicePrimaryCtxRelease_v2"`
	cuCtxSetCurrent, cuCtxSynchronize, cuCtxResetPersistingL2Cache proc
	cuMemAlloc                                                     proc `c:"cuMemAlloc_v2"`
	cuMemFree                                                      proc `c:"cuMemFree_v2"`
	cuMemcpyHtoDAsync                                              proc `c:"cuMemcpyHtoDAsync_v2"`
	cuMemcpyDtoHAsync                                              proc `c:"cuMemcpyDtoHAsync_v2"`
	cuMemcpyDtoDAsync                                              proc `c:"cuMemcpyDtoDAsync_v2"`
	cuMemsetD8Async, cuMemsetD32Async                              proc
	// This and the other functions for shared memory need CUDA 10.2.
	cuMemGetAllocationGranularity proc
	cuMemCreate, cuMemExportToShareableHandle, cuMemImportFromShareableHandle, cuMemAddressReserve, cuMemMap,
	cuMemSetAccess, cuMemUnmap, cuModuleLoadDataEx, cuModuleUnload, cuModuleGetFunction proc
	cuModuleGetGlobal  proc `c:"cuModuleGetGlobal_v2"`
	cuFuncSetAttribute proc
	// cuFuncLoad and cuFuncGetParamInfo need CUDA 12.4.
	cuFuncLoad                                                  proc `optional:"true"`
	cuFuncGetParamInfo                                          proc `optional:"true"`
	cuLaunchKernel, cuOccupancyMaxActiveBlocksPerMultiprocessor proc
	// cuLaunchKernelEx needs CUDA 11.8, cuTensorMapEncodeTiled CUDA 12.0.
	cuLaunchKernelEx                                  proc `optional:"true"`
	cuTensorMapEncodeTiled                            proc `optional:"true"`
	cuStreamCreate                                    proc
	cuStreamDestroy                                   proc `c:"cuStreamDestroy_v2"`
	cuStreamSynchronize, cuStreamQuery, cuEventCreate proc
	cuMemAllocHost                                    proc `c:"cuMemAllocHost_v2"`
	// cuStreamWaitValue32 needs CUDA 11.7.
	cuStreamWaitValue32 proc `c:"cuStreamWaitValue32_v2" optional:"true"`
	cuEventDestroy      proc `c:"cuEventDestroy_v2"`
	cuEventRecord       proc
	// The second version needs CUDA 12.8.
	cuEventElapsedTime                                               proc `c:"cuEventElapsedTime_v2 cuEventElapsedTime"`
	cuStreamBeginCapture                                             proc `c:"cuStreamBeginCapture_v2"`
	cuStreamEndCapture, cuGraphGetNodes                              proc
	cuGraphInstantiateWithFlags                                      proc // CUDA 11.4
	cuGraphUpload, cuGraphLaunch, cuGraphExecDestroy, cuGraphDestroy proc
}
