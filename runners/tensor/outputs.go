package tensor

import (
	"bytes"
	"slices"
)

// An Output is an array of values that the kernel writes: an argument, or one member of an array of structs. Each is compared
// with the reference separately.
type Output struct {
	Arg
	Of int // index of the argument
}

// Outputs lists what a kernel with these arguments writes, in the order in which a reference gives it.
func Outputs(args []Arg) []Output {
	var all []Output
	for i, a := range args {
		if !a.Array() || !a.Writes() {
			continue
		}
		for _, member := range a.Members {
			all = append(all, Output{member, i})
		}
		if a.Members == nil {
			all = append(all, Output{a, i})
		}
	}
	return all
}

// Values returns the output's values without what lies between them, from the bytes of the argument.
func (o Output) Values(argument []byte) []byte {
	if o.Pitch == 0 {
		return argument
	}
	size := o.DType.Bytes(o.Count)
	values := make([]byte, 0, o.Arg.Size())
	for at := o.Offset; at < len(argument); at += o.Pitch {
		values = append(values, argument[at:at+size]...)
	}
	return values
}

// Poison fills an argument's memory so that unwritten values can be detected: see [Poison].
func (a Arg) Poison(dst []byte) {
	if a.Members == nil {
		Poison(a.DType, dst)
		return
	}
	if len(dst) == 0 {
		return
	}
	element := make([]byte, a.Members[0].Pitch)
	for _, member := range a.Members {
		Poison(member.DType, element[member.Offset:][:member.DType.Bytes(member.Count)])
	}
	copy(dst, bytes.Repeat(element, len(dst)/len(element)))
}

// withoutPadding returns a copy of an argument's memory. Bytes between the members of structs are zero: they are not the
// kernel's answer.
func (a Arg) withoutPadding(memory []byte) []byte {
	out := bytes.Clone(memory)
	if a.Members == nil || len(out) == 0 {
		return out
	}
	padding := slices.Repeat([]bool{true}, a.Members[0].Pitch)
	for _, member := range a.Members {
		for i := range member.DType.Bytes(member.Count) {
			padding[member.Offset+i] = false
		}
	}
	for i := range out {
		if padding[i%len(padding)] {
			out[i] = 0
		}
	}
	return out
}
