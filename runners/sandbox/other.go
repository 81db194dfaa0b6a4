//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// A Process is a program in a sandbox.
type Process struct{}

// Run fails.
func Run(ctx context.Context, s Spec) (Result, error) {
	_, err := Start(ctx, s)
	return Result{}, err
}

// Start fails.
func Start(context.Context, Spec) (*Process, error) {
	return nil, fmt.Errorf("start a sandbox: %w: it needs Linux, and this is %s; run kernelgate there", ErrUnsupported, runtime.GOOS)
}

// Wait returns an empty result; there is no process to wait for.
func (*Process) Wait() (Result, error) { return Result{}, nil }

// Kill does nothing.
func (*Process) Kill() {}

// Pid is 0.
func (*Process) Pid() int { return 0 }

// Probe says that there is no sandbox here.
func Probe() Support {
	return Support{Checks: []Check{{Name: "sandbox", Needed: true, Detail: "this is " + runtime.GOOS, Remedy: "run kernelgate on Linux"}}}
}

// SystemPaths returns nothing.
func SystemPaths() []string { return nil }
