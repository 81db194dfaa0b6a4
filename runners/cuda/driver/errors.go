package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/kernelgate/kernelgate/runners/cuda/dynlib"
)

// An Error is a call that the CUDA driver refused, or the failure of earlier
// work that it reported on this call: faults inside a kernel surface at the
// next call that waits for it.
type Error struct {
	Code Code
	Name string // CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // the driver's sentence about it
	Op   string // what was being done, to which thing
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d): %s", e.Op, e.Name, int(e.Code), e.Text)
	if remedy := remedies[e.Code]; remedy != "" {
		s += "; " + remedy
	}
	return s
}

// Is makes errors.Is(err, driver.OutOfMemory) ask for a code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// KernelFault says that the code on the GPU did something it must not: the
// kernel's fault, not the runner's.
func (e *Error) KernelFault() bool { return e.Code.kernelFault() }

// CodeOf is the CUDA code inside err, or success where there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return success
}

// check is nil for a call that went well.
func (d *Driver) check(code Code, op string) error {
	if code != success {
		return d.newError(code, op)
	}
	return nil
}

// newError asks the driver for the code's name and text. A driver older than
// the code answers with nothing; the name known here then stands in.
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
