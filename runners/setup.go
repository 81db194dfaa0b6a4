package runners

import (
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// A SetupError is what is wrong with what the base brings, so that nothing can be said
// of any change to it: a reference that does not build or crashes, a manifest that asks
// for what is not there. It is neither the runner's fault nor the change's.
type SetupError struct {
	At  []gates.Diagnostic // the lines, where they are known
	Err error
}

func (e *SetupError) Error() string { return e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// SetupErrorf is a setup error. What a compiler says of it is kept, line by line.
func SetupErrorf(format string, args ...any) error {
	e := &SetupError{Err: fmt.Errorf(format, args...)}
	if refusal, ok := errors.AsType[*toolchain.CompileError](e.Err); ok {
		for _, d := range refusal.Diagnostics {
			if d.Severity == "error" {
				e.At = append(e.At, d)
			}
		}
	}
	return e
}
