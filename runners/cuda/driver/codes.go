package driver

import "fmt"

// A Code is a CUresult. It is an error itself, so that errors.Is can look for it.
type Code int32

// The codes that a measuring worker meets. The driver knows more; they pass
// through as numbers, with the driver's own names.
const (
	success                  Code = 0
	invalidValue             Code = 1
	OutOfMemory              Code = 2
	notInitialized           Code = 3
	deinitialized            Code = 4
	stubLibrary              Code = 34
	callRequiresNewerDriver  Code = 36
	deviceUnavailable        Code = 46
	noDevice                 Code = 100
	invalidDevice            Code = 101
	invalidImage             Code = 200
	invalidContext           Code = 201
	noBinaryForGPU           Code = 209
	eccUncorrectable         Code = 214
	unsupportedLimit         Code = 215
	invalidPTX               Code = 218
	nvLinkUncorrectable      Code = 220
	jitCompilerNotFound      Code = 221
	unsupportedPTXVersion    Code = 222
	jitCompilationDisabled   Code = 223
	contained                Code = 226
	operatingSystem          Code = 304
	invalidHandle            Code = 400
	NotFound                 Code = 500
	notReady                 Code = 600
	IllegalAddress           Code = 700
	launchOutOfResources     Code = 701
	launchTimeout            Code = 702
	contextIsDestroyed       Code = 709
	assertFailed             Code = 710
	hardwareStackError       Code = 714
	illegalInstruction       Code = 715
	MisalignedAddress        Code = 716
	invalidAddressSpace      Code = 717
	invalidPC                Code = 718
	launchFailed             Code = 719
	cooperativeTooLarge      Code = 720
	tensorMemoryLeak         Code = 721
	notPermitted             Code = 800
	notSupported             Code = 801
	systemNotReady           Code = 802
	SystemDriverMismatch     Code = 803
	compatNotSupported       Code = 804
	mpsClientTerminated      Code = 810
	streamCaptureUnsupported Code = 900
	streamCaptureInvalidated Code = 901
	externalDevice           Code = 911
	invalidClusterSize       Code = 912
	functionNotLoaded        Code = 913
	unknown                  Code = 999
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

// kernelFault says that the code reports an exception raised by a running kernel.
func (c Code) kernelFault() bool {
	switch c {
	case IllegalAddress, launchTimeout, assertFailed, hardwareStackError, illegalInstruction,
		MisalignedAddress, invalidAddressSpace, invalidPC, launchFailed, tensorMemoryLeak:
		return true
	}
	return false
}

// remedy says what to do next, for the codes where that is not the reader's own kernel.
func (c Code) remedy() string {
	switch c {
	case OutOfMemory:
		return "free memory on the GPU, or measure smaller shapes"
	case stubLibrary:
		return "the toolkit's stub was loaded: put the driver's own libcuda.so.1 first in the library path"
	case deviceUnavailable:
		return "another process holds the GPU exclusively: end it, or set the compute mode to default"
	case noDevice:
		return "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it"
	case invalidContext:
		return "make the call inside Thread.Do"
	case noBinaryForGPU:
		return "build the kernel for this GPU's architecture"
	case unsupportedPTXVersion:
		return "upgrade the NVIDIA driver, or build with an older CUDA toolkit"
	case eccUncorrectable, nvLinkUncorrectable:
		return "the hardware failed: see dmesg for the Xid, and take the GPU out of service"
	case systemNotReady:
		return "start nvidia-fabricmanager"
	case SystemDriverMismatch:
		return "reload the NVIDIA kernel module, or reboot: it does not match the library"
	case unknown:
		return "see dmesg for an Xid of the NVIDIA driver"
	}
	return ""
}

var codeNames = map[Code]string{
	success:                  "CUDA_SUCCESS",
	invalidValue:             "CUDA_ERROR_INVALID_VALUE",
	OutOfMemory:              "CUDA_ERROR_OUT_OF_MEMORY",
	notInitialized:           "CUDA_ERROR_NOT_INITIALIZED",
	deinitialized:            "CUDA_ERROR_DEINITIALIZED",
	stubLibrary:              "CUDA_ERROR_STUB_LIBRARY",
	callRequiresNewerDriver:  "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
	deviceUnavailable:        "CUDA_ERROR_DEVICE_UNAVAILABLE",
	noDevice:                 "CUDA_ERROR_NO_DEVICE",
	invalidDevice:            "CUDA_ERROR_INVALID_DEVICE",
	invalidImage:             "CUDA_ERROR_INVALID_IMAGE",
	invalidContext:           "CUDA_ERROR_INVALID_CONTEXT",
	noBinaryForGPU:           "CUDA_ERROR_NO_BINARY_FOR_GPU",
	eccUncorrectable:         "CUDA_ERROR_ECC_UNCORRECTABLE",
	unsupportedLimit:         "CUDA_ERROR_UNSUPPORTED_LIMIT",
	invalidPTX:               "CUDA_ERROR_INVALID_PTX",
	nvLinkUncorrectable:      "CUDA_ERROR_NVLINK_UNCORRECTABLE",
	jitCompilerNotFound:      "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
	unsupportedPTXVersion:    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	jitCompilationDisabled:   "CUDA_ERROR_JIT_COMPILATION_DISABLED",
	contained:                "CUDA_ERROR_CONTAINED",
	operatingSystem:          "CUDA_ERROR_OPERATING_SYSTEM",
	invalidHandle:            "CUDA_ERROR_INVALID_HANDLE",
	NotFound:                 "CUDA_ERROR_NOT_FOUND",
	notReady:                 "CUDA_ERROR_NOT_READY",
	IllegalAddress:           "CUDA_ERROR_ILLEGAL_ADDRESS",
	launchOutOfResources:     "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
	launchTimeout:            "CUDA_ERROR_LAUNCH_TIMEOUT",
	contextIsDestroyed:       "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	assertFailed:             "CUDA_ERROR_ASSERT",
	hardwareStackError:       "CUDA_ERROR_HARDWARE_STACK_ERROR",
	illegalInstruction:       "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	MisalignedAddress:        "CUDA_ERROR_MISALIGNED_ADDRESS",
	invalidAddressSpace:      "CUDA_ERROR_INVALID_ADDRESS_SPACE",
	invalidPC:                "CUDA_ERROR_INVALID_PC",
	launchFailed:             "CUDA_ERROR_LAUNCH_FAILED",
	cooperativeTooLarge:      "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
	tensorMemoryLeak:         "CUDA_ERROR_TENSOR_MEMORY_LEAK",
	notPermitted:             "CUDA_ERROR_NOT_PERMITTED",
	notSupported:             "CUDA_ERROR_NOT_SUPPORTED",
	systemNotReady:           "CUDA_ERROR_SYSTEM_NOT_READY",
	SystemDriverMismatch:     "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	compatNotSupported:       "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	mpsClientTerminated:      "CUDA_ERROR_MPS_CLIENT_TERMINATED",
	streamCaptureUnsupported: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	streamCaptureInvalidated: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	externalDevice:           "CUDA_ERROR_EXTERNAL_DEVICE",
	invalidClusterSize:       "CUDA_ERROR_INVALID_CLUSTER_SIZE",
	functionNotLoaded:        "CUDA_ERROR_FUNCTION_NOT_LOADED",
	unknown:                  "CUDA_ERROR_UNKNOWN",
}
