package driver

import "fmt"

// A Code is a CUresult. It is an error itself, so that errors.Is can look for it.
type Code int32

// The codes that a measuring worker meets. The driver knows more; they pass
// through as numbers, with the driver's own names.
const (
	Success                  Code = 0
	InvalidValue             Code = 1
	OutOfMemory              Code = 2
	NotInitialized           Code = 3
	Deinitialized            Code = 4
	StubLibrary              Code = 34
	CallRequiresNewerDriver  Code = 36
	DeviceUnavailable        Code = 46
	NoDevice                 Code = 100
	InvalidDevice            Code = 101
	InvalidImage             Code = 200
	InvalidContext           Code = 201
	NoBinaryForGPU           Code = 209
	ECCUncorrectable         Code = 214
	UnsupportedLimit         Code = 215
	InvalidPTX               Code = 218
	NVLinkUncorrectable      Code = 220
	JITCompilerNotFound      Code = 221
	UnsupportedPTXVersion    Code = 222
	JITCompilationDisabled   Code = 223
	Contained                Code = 226
	OperatingSystem          Code = 304
	InvalidHandle            Code = 400
	NotFound                 Code = 500
	NotReady                 Code = 600
	IllegalAddress           Code = 700
	LaunchOutOfResources     Code = 701
	LaunchTimeout            Code = 702
	ContextIsDestroyed       Code = 709
	AssertFailed             Code = 710
	HardwareStackError       Code = 714
	IllegalInstruction       Code = 715
	MisalignedAddress        Code = 716
	InvalidAddressSpace      Code = 717
	InvalidPC                Code = 718
	LaunchFailed             Code = 719
	TensorMemoryLeak         Code = 721
	NotPermitted             Code = 800
	NotSupported             Code = 801
	SystemNotReady           Code = 802
	SystemDriverMismatch     Code = 803
	CompatNotSupported       Code = 804
	MPSClientTerminated      Code = 810
	StreamCaptureUnsupported Code = 900
	StreamCaptureInvalidated Code = 901
	ExternalDevice           Code = 911
	InvalidClusterSize       Code = 912
	FunctionNotLoaded        Code = 913
	Unknown                  Code = 999
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.String() }

// String is the name in cuda.h, or CUDA_ERROR_n where it is not known here.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("CUDA_ERROR_%d", int(c))
}

// Sticky says that after this code the process can do no more CUDA work.
func (c Code) Sticky() bool {
	switch c {
	case ECCUncorrectable, NVLinkUncorrectable, Contained, MPSClientTerminated, ExternalDevice:
		return true
	}
	return c.KernelFault()
}

// KernelFault says that the code reports an exception raised by a running kernel.
func (c Code) KernelFault() bool {
	switch c {
	case IllegalAddress, LaunchTimeout, AssertFailed, HardwareStackError, IllegalInstruction,
		MisalignedAddress, InvalidAddressSpace, InvalidPC, LaunchFailed, TensorMemoryLeak:
		return true
	}
	return false
}

// remedy says what to do next, for the codes where that is not the reader's own kernel.
func (c Code) remedy() string {
	switch c {
	case OutOfMemory:
		return "free memory on the GPU, or measure smaller shapes"
	case StubLibrary:
		return "the toolkit's stub was loaded: put the driver's own libcuda.so.1 first in the library path"
	case DeviceUnavailable:
		return "another process holds the GPU exclusively: end it, or set the compute mode to default"
	case NoDevice:
		return "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it"
	case InvalidContext:
		return "make the call inside Thread.Do"
	case NoBinaryForGPU:
		return "build the kernel for this GPU's architecture"
	case UnsupportedPTXVersion:
		return "upgrade the NVIDIA driver, or build with an older CUDA toolkit"
	case ECCUncorrectable, NVLinkUncorrectable:
		return "the hardware failed: see dmesg for the Xid, and take the GPU out of service"
	case SystemNotReady:
		return "start nvidia-fabricmanager"
	case SystemDriverMismatch:
		return "reload the NVIDIA kernel module, or reboot: it does not match the library"
	case Unknown:
		return "see dmesg for an Xid of the NVIDIA driver"
	}
	return ""
}

var codeNames = map[Code]string{
	Success:                  "CUDA_SUCCESS",
	InvalidValue:             "CUDA_ERROR_INVALID_VALUE",
	OutOfMemory:              "CUDA_ERROR_OUT_OF_MEMORY",
	NotInitialized:           "CUDA_ERROR_NOT_INITIALIZED",
	Deinitialized:            "CUDA_ERROR_DEINITIALIZED",
	StubLibrary:              "CUDA_ERROR_STUB_LIBRARY",
	CallRequiresNewerDriver:  "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
	DeviceUnavailable:        "CUDA_ERROR_DEVICE_UNAVAILABLE",
	NoDevice:                 "CUDA_ERROR_NO_DEVICE",
	InvalidDevice:            "CUDA_ERROR_INVALID_DEVICE",
	InvalidImage:             "CUDA_ERROR_INVALID_IMAGE",
	InvalidContext:           "CUDA_ERROR_INVALID_CONTEXT",
	NoBinaryForGPU:           "CUDA_ERROR_NO_BINARY_FOR_GPU",
	ECCUncorrectable:         "CUDA_ERROR_ECC_UNCORRECTABLE",
	UnsupportedLimit:         "CUDA_ERROR_UNSUPPORTED_LIMIT",
	InvalidPTX:               "CUDA_ERROR_INVALID_PTX",
	NVLinkUncorrectable:      "CUDA_ERROR_NVLINK_UNCORRECTABLE",
	JITCompilerNotFound:      "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
	UnsupportedPTXVersion:    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	JITCompilationDisabled:   "CUDA_ERROR_JIT_COMPILATION_DISABLED",
	Contained:                "CUDA_ERROR_CONTAINED",
	OperatingSystem:          "CUDA_ERROR_OPERATING_SYSTEM",
	InvalidHandle:            "CUDA_ERROR_INVALID_HANDLE",
	NotFound:                 "CUDA_ERROR_NOT_FOUND",
	NotReady:                 "CUDA_ERROR_NOT_READY",
	IllegalAddress:           "CUDA_ERROR_ILLEGAL_ADDRESS",
	LaunchOutOfResources:     "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
	LaunchTimeout:            "CUDA_ERROR_LAUNCH_TIMEOUT",
	ContextIsDestroyed:       "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	AssertFailed:             "CUDA_ERROR_ASSERT",
	HardwareStackError:       "CUDA_ERROR_HARDWARE_STACK_ERROR",
	IllegalInstruction:       "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	MisalignedAddress:        "CUDA_ERROR_MISALIGNED_ADDRESS",
	InvalidAddressSpace:      "CUDA_ERROR_INVALID_ADDRESS_SPACE",
	InvalidPC:                "CUDA_ERROR_INVALID_PC",
	LaunchFailed:             "CUDA_ERROR_LAUNCH_FAILED",
	TensorMemoryLeak:         "CUDA_ERROR_TENSOR_MEMORY_LEAK",
	NotPermitted:             "CUDA_ERROR_NOT_PERMITTED",
	NotSupported:             "CUDA_ERROR_NOT_SUPPORTED",
	SystemNotReady:           "CUDA_ERROR_SYSTEM_NOT_READY",
	SystemDriverMismatch:     "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	CompatNotSupported:       "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	MPSClientTerminated:      "CUDA_ERROR_MPS_CLIENT_TERMINATED",
	StreamCaptureUnsupported: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	StreamCaptureInvalidated: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	ExternalDevice:           "CUDA_ERROR_EXTERNAL_DEVICE",
	InvalidClusterSize:       "CUDA_ERROR_INVALID_CLUSTER_SIZE",
	FunctionNotLoaded:        "CUDA_ERROR_FUNCTION_NOT_LOADED",
	Unknown:                  "CUDA_ERROR_UNKNOWN",
}
