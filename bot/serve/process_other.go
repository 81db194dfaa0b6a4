//go:build !linux

package serve

import (
	"errors"
	"os/exec"
)

func dieTogether(*exec.Cmd) (release func()) { return func() {} }

// Conceal does nothing here: only Linux can.
func Conceal() error { return nil }

// room is not asked for here.
func room(string) (free, size float64, err error) { return 0, 0, errors.ErrUnsupported }
