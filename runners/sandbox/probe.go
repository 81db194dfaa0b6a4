package sandbox

import "errors"

// ErrUnsupported means that this host's kernel, or how it is set up, refuses the sandbox. The error that
// wraps it says what to do.
var ErrUnsupported = errors.New("the sandbox is not supported here")

// Support is what a host allows.
type Support struct {
	Checks   []Check
	Landlock int // the kernel's Landlock version, 0 for none
}

// A Check is one thing that the sandbox relies on.
type Check struct {
	Name   string
	OK     bool
	Needed bool   // Start fails without it
	Detail string // what was found
	Remedy string // what to do if it is not OK
}

// Works reports whether Start works at all.
func (s Support) Works() bool {
	for _, c := range s.Checks {
		if c.Needed && !c.OK {
			return false
		}
	}
	return true
}
