package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// An Error is a call that the CUDA driver refused, or a failure of earlier work that the driver
// reported on this call. A fault inside a kernel surfaces at the next call that waits for the
// kernel.
type Error struct {
	Code Code
	Name string // for example CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // the driver's description
	Op   string // the operation, and the object that it was for
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d): %s", e.Op, e.Name, int(e.Code), e.Text)
	if remedy := remedies[e.Code]; remedy != "" {
		s += "; " + remedy
	}
	return s
}

// Is reports whether target is the error's code, so that errors.Is(err, driver.OutOfMemory) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// KernelFault reports whether the code on the GPU raised an exception. That is the fault of the
// kernel, not of the runner.
func (e *Error) KernelFault() bool { return e.Code.kernelFault() }

// CodeOf returns the CUDA code in err, or success if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return success
}

// check returns nil if the call succeeded.
func (d *Driver) check(code Code, op string) error {
	if code != success {
		return d.newError(code, op)
	}
	return nil
}

// newError asks the driver for the code's name and text. A driver older than the code returns none;
// then the name in this package is used.
func (d *Driver) newError(code Code, op string) *Error {
	e := &Error{Code: code, Name: code.String(), Text: "the driver gives no description", Op: op}
	var name, text *byte
	if d.sym.cuGetErrorName.call(uintptr(code), uintptr(unsafe.Pointer(&name))) == success && name != nil {
		e.Name = dynlib.GoString(name)
	}
	if d.sym.cuGetErrorString.call(uintptr(code), uintptr(unsafe.Pointer(&text))) == success && text != nil {
		e.Text = dynlib.GoString(text)
	}
	return e
}

// A Code is a CUresult. It implements error, so that errors.Is can look for it.
type Code int32

// The codes that this project handles. All others pass through as numbers, with the driver's names.
const (
	success                  Code = 0
	invalidValue             Code = 1
	OutOfMemory              Code = 2
	stubLibrary              Code = 34
	deviceUnavailable        Code = 46
	noDevice                 Code = 100
	invalidDevice            Code = 101
	invalidImage             Code = 200
	invalidContext           Code = 201
	noBinaryForGPU           Code = 209
	eccUncorrectable         Code = 214
	invalidPTX               Code = 218
	nvLinkUncorrectable      Code = 220
	unsupportedPTXVersion    Code = 222
	contained                Code = 226
	operatingSystem          Code = 304
	NotFound                 Code = 500
	notReady                 Code = 600
	IllegalAddress           Code = 700
	launchOutOfResources     Code = 701
	launchTimeout            Code = 702
	assertFailed             Code = 710
	hardwareStackError       Code = 714
	illegalInstruction       Code = 715
	MisalignedAddress        Code = 716
	invalidAddressSpace      Code = 717
	invalidPC                Code = 718
	launchFailed             Code = 719
	tensorMemoryLeak         Code = 721
	notSupported             Code = 801
	systemNotReady           Code = 802
	SystemDriverMismatch     Code = 803
	streamCaptureUnsupported Code = 900
	streamCaptureInvalidated Code = 901
	invalidClusterSize       Code = 912
	unknown                  Code = 999
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.String() }

// String returns the name in cuda.h, or CUDA_ERROR_n if this package does not know it.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("CUDA_ERROR_%d", int(c))
}

// kernelFault reports whether the code is an exception that a running kernel raised.
func (c Code) kernelFault() bool {
	switch c {
	case IllegalAddress, launchTimeout, assertFailed, hardwareStackError, illegalInstruction,
		MisalignedAddress, invalidAddressSpace, invalidPC, launchFailed, tensorMemoryLeak:
		return true
	}
	return false
}

// remedies say what to do next, for the codes whose cause is not the user's kernel.
var remedies = map[Code]string{
	OutOfMemory:           "free memory on the GPU, or measure smaller shapes",
	stubLibrary:           "the toolkit's stub was loaded: put the driver's own libcuda.so.1 first in the library path",
	deviceUnavailable:     "another process holds the GPU exclusively: end it, or set the compute mode to default",
	noDevice:              "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it",
	invalidContext:        "make the call inside Thread.Do",
	noBinaryForGPU:        "build the kernel for this GPU's architecture",
	unsupportedPTXVersion: "upgrade the NVIDIA driver, or build with an older CUDA toolkit",
	eccUncorrectable:      "the hardware failed: see dmesg for the Xid, and take the GPU out of service",
	nvLinkUncorrectable:   "the hardware failed: see dmesg for the Xid, and take the GPU out of service",
	systemNotReady:        "start nvidia-fabricmanager",
	SystemDriverMismatch:  "reload the NVIDIA kernel module, or reboot: it does not match the library",
	unknown:               "see dmesg for an Xid of the NVIDIA driver",
}

// codeNames are the names of the codes that a measuring worker meets. The driver knows more.
var codeNames = map[Code]string{
	success:                  "CUDA_SUCCESS",
	invalidValue:             "CUDA_ERROR_INVALID_VALUE",
	OutOfMemory:              "CUDA_ERROR_OUT_OF_MEMORY",
	3:                        "CUDA_ERROR_NOT_INITIALIZED",
	4:                        "CUDA_ERROR_DEINITIALIZED",
	stubLibrary:              "CUDA_ERROR_STUB_LIBRARY",
	36:                       "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
	deviceUnavailable:        "CUDA_ERROR_DEVICE_UNAVAILABLE",
	noDevice:                 "CUDA_ERROR_NO_DEVICE",
	invalidDevice:            "CUDA_ERROR_INVALID_DEVICE",
	invalidImage:             "CUDA_ERROR_INVALID_IMAGE",
	invalidContext:           "CUDA_ERROR_INVALID_CONTEXT",
	noBinaryForGPU:           "CUDA_ERROR_NO_BINARY_FOR_GPU",
	eccUncorrectable:         "CUDA_ERROR_ECC_UNCORRECTABLE",
	215:                      "CUDA_ERROR_UNSUPPORTED_LIMIT",
	invalidPTX:               "CUDA_ERROR_INVALID_PTX",
	nvLinkUncorrectable:      "CUDA_ERROR_NVLINK_UNCORRECTABLE",
	221:                      "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
	unsupportedPTXVersion:    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	223:                      "CUDA_ERROR_JIT_COMPILATION_DISABLED",
	contained:                "CUDA_ERROR_CONTAINED",
	operatingSystem:          "CUDA_ERROR_OPERATING_SYSTEM",
	400:                      "CUDA_ERROR_INVALID_HANDLE",
	NotFound:                 "CUDA_ERROR_NOT_FOUND",
	notReady:                 "CUDA_ERROR_NOT_READY",
	IllegalAddress:           "CUDA_ERROR_ILLEGAL_ADDRESS",
	launchOutOfResources:     "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
	launchTimeout:            "CUDA_ERROR_LAUNCH_TIMEOUT",
	709:                      "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	assertFailed:             "CUDA_ERROR_ASSERT",
	hardwareStackError:       "CUDA_ERROR_HARDWARE_STACK_ERROR",
	illegalInstruction:       "CUDA_ERROR_ILLEGAL_INSTRUCTION",
	MisalignedAddress:        "CUDA_ERROR_MISALIGNED_ADDRESS",
	invalidAddressSpace:      "CUDA_ERROR_INVALID_ADDRESS_SPACE",
	invalidPC:                "CUDA_ERROR_INVALID_PC",
	launchFailed:             "CUDA_ERROR_LAUNCH_FAILED",
	720:                      "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
	tensorMemoryLeak:         "CUDA_ERROR_TENSOR_MEMORY_LEAK",
	800:                      "CUDA_ERROR_NOT_PERMITTED",
	notSupported:             "CUDA_ERROR_NOT_SUPPORTED",
	systemNotReady:           "CUDA_ERROR_SYSTEM_NOT_READY",
	SystemDriverMismatch:     "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	804:                      "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	810:                      "CUDA_ERROR_MPS_CLIENT_TERMINATED",
	streamCaptureUnsupported: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	streamCaptureInvalidated: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	911:                      "CUDA_ERROR_EXTERNAL_DEVICE",
	invalidClusterSize:       "CUDA_ERROR_INVALID_CLUSTER_SIZE",
	913:                      "CUDA_ERROR_FUNCTION_NOT_LOADED",
	unknown:                  "CUDA_ERROR_UNKNOWN",
}
