package sandbox

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A madeCall is a system call as a filter sees it.
type madeCall struct {
	number    uint32
	arch      uint32
	arguments [6]uint64
}

// answer runs a filter on a call, as the kernel does.
func answer(t *testing.T, f []unix.SockFilter, c madeCall) uint32 {
	t.Helper()
	data := binary.NativeEndian.AppendUint32(nil, c.number)
	data = binary.NativeEndian.AppendUint32(data, c.arch)
	data = binary.NativeEndian.AppendUint64(data, 0)
	for _, a := range c.arguments {
		data = binary.NativeEndian.AppendUint64(data, a)
	}
	var acc uint32
	for at := 0; at < len(f); at++ {
		switch i := f[at]; i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(data[i.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if acc == i.K {
				at += int(i.Jt)
			} else {
				at += int(i.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d is %#x", at, i.Code)
		}
	}
	t.Fatal("the filter has no answer")
	return 0
}

// TestAllow checks that a filter lets through only the calls on its list.
func TestAllow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	word := func() uint64 { return []uint64{0, 1, 2, 3, 1 << 31, 1 << 32, 1<<32 | 1, ^uint64(0)}[rng.IntN(8)] }
	arch := auditArch[runtime.GOARCH]
	allowed := 0
	for range 3000 {
		var calls []Call
		for range rng.IntN(8) {
			c := Call{Number: uintptr(rng.IntN(4))}
			for range rng.IntN(3) {
				mask := word()
				c.When = append(c.When, Argument{Index: rng.IntN(6), Mask: mask, Value: word() & mask})
			}
			c.Answer = []uint32{0, 0, Absent, Nothing, TrappedAs(7)}[rng.IntN(5)]
			calls = append(calls, c)
		}
		f, err := Allow(calls, denied)
		if err != nil {
			t.Skip(err)
		}
		made := madeCall{number: uint32(rng.IntN(4)), arch: arch}
		for i := range made.arguments {
			made.arguments[i] = word()
		}
		want := uint32(denied)
		for _, c := range calls {
			fits := c.Number == uintptr(made.number)
			for _, a := range c.When {
				fits = fits && made.arguments[a.Index]&a.Mask == a.Value
			}
			if fits {
				want = cmp.Or(c.Answer, unix.SECCOMP_RET_ALLOW)
				allowed++
				break
			}
		}
		if got := answer(t, f, made); got != want {
			t.Fatalf("%+v under %+v: got %#x, want %#x", made, calls, got, want)
		}
		for _, other := range []madeCall{{number: made.number | x32Bit, arch: arch}, {number: made.number, arch: arch + 1}} {
			other.arguments = made.arguments
			if got := answer(t, f, other); got == unix.SECCOMP_RET_ALLOW {
				t.Fatalf("%+v under %+v is let through", other, calls)
			}
		}
	}
	if allowed < 300 {
		t.Errorf("only %d of the calls were allowed: the test shows little", allowed)
	}
}

// TestCalls checks that a program with a list of calls can make no others.
func TestCalls(t *testing.T) {
	needSandbox(t)
	s := shell("echo on")
	s.Calls = []Call{{Number: unix.SYS_EXIT_GROUP}}
	if r, out := run(t, s); r.OK() || strings.Contains(out, "on") {
		t.Errorf("a shell that can open no library ran: %+v, %q", r, out)
	}
	s = shell("ulimit -v")
	s.Limits.AddressSpace = 300 << 20
	if r, out := run(t, s); !r.OK() || out != fmt.Sprintln(300<<10) {
		t.Errorf("got %+v, %q", r, out)
	}
}
