package sandbox

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// A Call is a system call that a program may make. If When has entries, all of them must hold. A
// call that is listed twice is allowed if either entry matches.
type Call struct {
	Number uintptr
	When   []Argument
	// Answer is what the program gets instead of the call: Absent, Nothing or TrappedAs. If it is 0,
	// the call is made.
	Answer uint32
}

// Answers to a call that is not made.
const (
	// Absent is ENOSYS, as if the kernel had no such call, so that a library tries a different one.
	Absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	// Nothing is 0, whatever the call asks for.
	Nothing uint32 = unix.SECCOMP_RET_ERRNO
)

// TrappedAs is [Trapped] with a number in si_errno of the signal.
func TrappedAs(number uint16) uint32 { return Trapped | uint32(number) }

// An Argument is a condition on one argument of a call: the bits under Mask must equal Value.
type Argument struct {
	Index       int
	Mask, Value uint64
}

// The answers to a call that the program may not make.
const (
	// Trapped sends SIGSYS, with the call's number in its siginfo.
	Trapped = unix.SECCOMP_RET_TRAP
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM) // EPERM
)

// Allow returns a filter that lets only these calls through. The caller installs the filter;
// [Spec.Calls] installs it before the program starts.
func Allow(calls []Call, otherwise uint32) ([]unix.SockFilter, error) {
	// Calls of the x32 convention on amd64 have numbers that match no entry.
	f, err := filterHead()
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		f = append(f, c.block()...)
	}
	return append(f, unix.SockFilter{Code: bpfAnswer, K: otherwise}), nil
}

// block returns instructions that answer if the call is this one. Otherwise they fall through with
// the call's number loaded.
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
	answer := cmp.Or(c.Answer, unix.SECCOMP_RET_ALLOW)
	tests = append(tests, unix.SockFilter{Code: bpfAnswer, K: answer})
	// A failed test jumps past the permission to the instruction that loads the number again.
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
