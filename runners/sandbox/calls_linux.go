package sandbox

import (
	"golang.org/x/sys/unix"
)

// A Call is a system call that a program may make. Where it says something of its arguments, all of
// it must hold; one that is listed twice may be made either way.
type Call struct {
	Number uintptr
	When   []Argument
	Absent bool // it is answered as if the system had no such call, so that a library tries another
}

// An Argument is what one argument of a call must be: Value in the bits under Mask.
type Argument struct {
	Index       int
	Mask, Value uint64
}

// What happens to a program that makes a call which it may not make.
const (
	Trapped = unix.SECCOMP_RET_TRAP                       // SIGSYS, with the call's number in its siginfo
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM) // EPERM
	absent  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// Allow makes a filter that lets these calls through and no other. The caller
// installs it where it wants it; [Spec.Calls] does so before the program starts.
func Allow(calls []Call, otherwise uint32) ([]unix.SockFilter, error) {
	// A call of the third convention on amd64 has a number that no entry has.
	f, err := filterHead()
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		f = append(f, c.block()...)
	}
	return append(f, unix.SockFilter{Code: bpfAnswer, K: otherwise}), nil
}

// block answers if the call is this one, and falls through with the call's number
// loaded if it is not.
func (c Call) block() []unix.SockFilter {
	var tests []unix.SockFilter
	for _, check := range c.When {
		for half, shift := range []uint{0, 32} {
			mask, value := uint32(check.Mask>>shift), uint32(check.Value>>shift)
			if mask == 0 {
				continue
			}
			tests = append(tests,
				unix.SockFilter{Code: bpfLoad, K: uint32(argumentOffset + 8*check.Index + 4*half)},
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask},
				unix.SockFilter{Code: bpfEqual, K: value},
			)
		}
	}
	answer := uint32(unix.SECCOMP_RET_ALLOW)
	if c.Absent {
		answer = absent
	}
	tests = append(tests, unix.SockFilter{Code: bpfAnswer, K: answer})
	// A failed test jumps behind the permission, to where the number is loaded again.
	for i := range tests {
		if tests[i].Code == bpfEqual {
			tests[i].Jf = uint8(len(tests) - 1 - i)
		}
	}
	if len(tests) > 1 {
		tests = append(tests, unix.SockFilter{Code: bpfLoad, K: callOffset})
	}
	return append([]unix.SockFilter{{Code: bpfEqual, K: uint32(c.Number), Jf: uint8(len(tests))}}, tests...)
}
