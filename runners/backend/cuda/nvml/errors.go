package nvml

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
)

// A Code is an nvmlReturn_t. It implements error, so that errors.Is can look for it.
type Code int32

const (
	success            Code = 0
	NotSupported       Code = 3
	noPermission       Code = 4
	insufficientSize   Code = 7
	driverNotLoaded    Code = 9
	timeout            Code = 10
	functionNotFound   Code = 13
	GPUIsLost          Code = 15
	ResetRequired      Code = 16
	libVersionMismatch Code = 18
	deprecated         Code = 26
	unknownError       Code = 999
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.String() }

// String returns the name in nvml.h, or NVML_ERROR_n if this package does not know it.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("NVML_ERROR_%d", int(c))
}

var codeNames = map[Code]string{
	success:            "NVML_SUCCESS",
	1:                  "NVML_ERROR_UNINITIALIZED",
	2:                  "NVML_ERROR_INVALID_ARGUMENT",
	NotSupported:       "NVML_ERROR_NOT_SUPPORTED",
	noPermission:       "NVML_ERROR_NO_PERMISSION",
	6:                  "NVML_ERROR_NOT_FOUND",
	insufficientSize:   "NVML_ERROR_INSUFFICIENT_SIZE",
	driverNotLoaded:    "NVML_ERROR_DRIVER_NOT_LOADED",
	timeout:            "NVML_ERROR_TIMEOUT",
	functionNotFound:   "NVML_ERROR_FUNCTION_NOT_FOUND",
	GPUIsLost:          "NVML_ERROR_GPU_IS_LOST",
	ResetRequired:      "NVML_ERROR_RESET_REQUIRED",
	17:                 "NVML_ERROR_OPERATING_SYSTEM",
	libVersionMismatch: "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
	deprecated:         "NVML_ERROR_DEPRECATED",
	unknownError:       "NVML_ERROR_UNKNOWN",
}

// remedies say what to do next, for the codes that a person can act on.
var remedies = map[Code]string{
	noPermission:       "run as a user with access to /dev/nvidia*",
	driverNotLoaded:    "load the NVIDIA kernel module",
	libVersionMismatch: "reload the NVIDIA kernel module, or reboot: it does not match the library",
	GPUIsLost:          "reset the GPU or reboot, and see dmesg for the Xid",
	ResetRequired:      "reset the GPU or reboot, and see dmesg for the Xid",
}

// An Error is a query that NVML did not answer.
type Error struct {
	Code Code
	Text string // the library's description
	Op   string // the operation, and the object that it was for
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d): %s", e.Op, e.Code, int(e.Code), e.Text)
	if remedy := remedies[e.Code]; remedy != "" {
		s += "; " + remedy
	}
	return s
}

// Is reports whether target is the error's code, so that errors.Is(err, noPermission) works.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unsupported reports whether the error means that this GPU or this driver does not have the value.
// Nothing is wrong then; there is only nothing to show.
func Unsupported(err error) bool {
	return errors.Is(err, NotSupported) || errors.Is(err, functionNotFound) || errors.Is(err, deprecated)
}

// check returns nil if the call succeeded.
func (l *Library) check(code Code, op string) error {
	if code != success {
		return l.newError(code, op)
	}
	return nil
}

func (l *Library) newError(code Code, op string) *Error {
	e := &Error{Code: code, Text: "the library gives no description", Op: op}
	r, _, _ := purego.SyscallN(uintptr(l.sym.nvmlErrorString), uintptr(code))
	// This is the address of a string in the library, never one in Go's heap.
	if p := *(**byte)(unsafe.Pointer(&r)); p != nil {
		e.Text = dynlib.GoString(p)
	}
	return e
}
