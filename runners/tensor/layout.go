package tensor

import (
	"bytes"
)

const (
	alignment = 256
	guardSize = 256 // between arrays, to detect a write beyond an array's end
)

// GuardByte fills what lies between arrays.
const GuardByte = 0xC3

// A Layout says where the arguments of one launch lie in a slot of memory that a kernel may write
// to. Guards lie between the arrays, to detect a kernel that writes outside them.
type Layout struct {
	args    []Arg
	Offsets []int // of the arrays, from the slot's start
	Size    int   // of a slot
	header  int
}

// NewLayout lays out arrays behind a header that the caller uses.
func NewLayout(args []Arg, header int) Layout {
	l := Layout{args: args, Offsets: make([]int, len(args)), header: header}
	at := align(header) + guardSize
	for i, a := range args {
		if a.Array() {
			l.Offsets[i] = at
			at += align(a.Size()) + guardSize
		}
	}
	l.Size = align(at)
	return l
}

func align(n int) int { return (n + alignment - 1) / alignment * alignment }

// Array returns one argument's part of a slot.
func (l Layout) Array(slot []byte, arg int) []byte {
	return slot[l.Offsets[arg] : l.Offsets[arg]+l.args[arg].Size()]
}

// Fill writes one launch's arguments into a slot: inputs as given, outputs poisoned, guards around
// them. It does not touch the header.
func (l Layout) Fill(slot []byte, args []Arg) {
	rest := slot[l.header:l.Size]
	for i := range rest {
		rest[i] = GuardByte
	}
	for i, a := range args {
		if !a.Array() {
			continue
		}
		if array := l.Array(slot, i); a.Reads() {
			clear(array[copy(array, a.Bytes):]) // arrays that a device draws have only padding here
		} else {
			a.Poison(array)
		}
	}
}

// Outputs copies the kernel's outputs, by argument. The entry is nil if the argument is not an
// output.
func (l Layout) Outputs(slot []byte) [][]byte {
	out := make([][]byte, len(l.args))
	for i, a := range l.args {
		if a.Array() && a.Writes() {
			out[i] = a.withoutPadding(l.Array(slot, i))
		}
	}
	return out
}

// Changed reports forbidden writes of the kernel: inputs by name, and memory outside its arguments.
// Everything except outputs must still be what Fill wrote, byte for byte.
func (l Layout) Changed(slot []byte, args []Arg) (inputs []string, outside bool) {
	at := l.header
	guard := func(to int) {
		for _, b := range slot[at:to] {
			outside = outside || b != GuardByte
		}
	}
	for i, a := range args {
		if !a.Array() {
			continue
		}
		guard(l.Offsets[i])
		at = l.Offsets[i] + a.Size()
		if !a.Writes() && !bytes.Equal(l.Array(slot, i), a.Bytes) {
			inputs = append(inputs, a.Name)
		}
	}
	guard(l.Size)
	return inputs, outside
}
