package nvml

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/cuda/dynlib"
)

// A Code is an nvmlReturn_t. It is an error itself, so that errors.Is can look
// for it.
type Code int32

const (
	Success            Code = 0
	Uninitialized      Code = 1
	InvalidArgument    Code = 2
	NotSupported       Code = 3
	NoPermission       Code = 4
	NotFound           Code = 6
	InsufficientSize   Code = 7
	DriverNotLoaded    Code = 9
	Timeout            Code = 10
	FunctionNotFound   Code = 13
	GPUIsLost          Code = 15
	ResetRequired      Code = 16
	OperatingSystem    Code = 17
	LibVersionMismatch Code = 18
	Deprecated         Code = 26
	Unknown            Code = 999
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.String() }

// String is the name in nvml.h, or NVML_ERROR_n where it is not known here.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("NVML_ERROR_%d", int(c))
}

var codeNames = map[Code]string{
	Success:            "NVML_SUCCESS",
	Uninitialized:      "NVML_ERROR_UNINITIALIZED",
	InvalidArgument:    "NVML_ERROR_INVALID_ARGUMENT",
	NotSupported:       "NVML_ERROR_NOT_SUPPORTED",
	NoPermission:       "NVML_ERROR_NO_PERMISSION",
	NotFound:           "NVML_ERROR_NOT_FOUND",
	InsufficientSize:   "NVML_ERROR_INSUFFICIENT_SIZE",
	DriverNotLoaded:    "NVML_ERROR_DRIVER_NOT_LOADED",
	Timeout:            "NVML_ERROR_TIMEOUT",
	FunctionNotFound:   "NVML_ERROR_FUNCTION_NOT_FOUND",
	GPUIsLost:          "NVML_ERROR_GPU_IS_LOST",
	ResetRequired:      "NVML_ERROR_RESET_REQUIRED",
	OperatingSystem:    "NVML_ERROR_OPERATING_SYSTEM",
	LibVersionMismatch: "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
	Deprecated:         "NVML_ERROR_DEPRECATED",
	Unknown:            "NVML_ERROR_UNKNOWN",
}

// remedy says what to do next, for the codes that a person can act on.
func (c Code) remedy() string {
	switch c {
	case NoPermission:
		return "run as a user with access to /dev/nvidia*"
	case DriverNotLoaded:
		return "load the NVIDIA kernel module"
	case LibVersionMismatch:
		return "reload the NVIDIA kernel module, or reboot: it does not match the library"
	case GPUIsLost, ResetRequired:
		return "reset the GPU or reboot, and see dmesg for the Xid"
	}
	return ""
}

// An Error is a question that NVML did not answer.
type Error struct {
	Code Code
	Text string // the library's sentence about it
	Op   string // what was being done, to which thing
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d): %s", e.Op, e.Code, int(e.Code), e.Text)
	if remedy := e.Code.remedy(); remedy != "" {
		s += "; " + remedy
	}
	return s
}

// Is makes errors.Is(err, nvml.NoPermission) ask for a code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unsupported says that this GPU or this driver has no such figure: nothing is
// wrong, there is only nothing to show.
func Unsupported(err error) bool {
	return errors.Is(err, NotSupported) || errors.Is(err, FunctionNotFound) || errors.Is(err, Deprecated)
}

func (l *Library) newError(code Code, op string) *Error {
	e := &Error{Code: code, Text: "the library gives no description", Op: op}
	r, _, _ := purego.SyscallN(uintptr(l.sym.errorString), uintptr(code))
	// The address of a string in the library, never one in Go's heap.
	if p := *(**byte)(unsafe.Pointer(&r)); p != nil {
		e.Text = dynlib.GoString(p)
	}
	return e
}
