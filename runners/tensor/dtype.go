// Package tensor holds the numbers that go into a kernel and come out of it: element formats, pseudo-random
// inputs, quantisation, poison, and the comparison of an output with its reference.
//
// Values are float64 on the host's side and little-endian bytes on the kernel's side. The package does no I/O,
// allocates no device memory and judges nothing: it neither knows where a shape or a tolerance came from nor
// whether an error is small enough.
//
// Lengths and formats are the caller's to get right: a slice that does not match its shape, or a DType that
// ParseDType would refuse, is a bug in the caller and panics.
package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A DType is an element format.
type DType string

const (
	E4M3 DType = "e4m3" // FP8 as OCP's "FN" variant: bias 7, no infinity, S.1111.111 is the only NaN, largest 448
	E5M2 DType = "e5m2" // FP8 with IEEE's infinities and NaNs: bias 15, largest 57344
	F16  DType = "f16"
	BF16 DType = "bf16"
	F32  DType = "f32"
	F64  DType = "f64"
	I8   DType = "i8"
	U8   DType = "u8"
	I32  DType = "i32"
	I64  DType = "i64" // exact up to ±2⁵³ only: values pass through float64
)

// DTypes lists every format, narrow floats first.
func DTypes() []DType {
	return []DType{E4M3, E5M2, F16, BF16, F32, F64, I8, U8, I32, I64}
}

// ParseDType reads a format's name as a manifest writes it.
func ParseDType(s string) (DType, error) {
	if slices.Contains(DTypes(), DType(s)) {
		return DType(s), nil
	}
	return "", fmt.Errorf("unknown element format %q: use one of %s", s, join(DTypes()))
}

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case E4M3, E5M2, I8, U8:
		return 1
	case F16, BF16:
		return 2
	case F32, I32:
		return 4
	case F64, I64:
		return 8
	}
	panic(unknown(d))
}

// Float says whether the format is a floating-point one, and so has NaNs to poison with.
func (d DType) Float() bool {
	switch d {
	case E4M3, E5M2, F16, BF16, F32, F64:
		return true
	case I8, U8, I32, I64:
		return false
	}
	panic(unknown(d))
}

// Elements is the number of elements of a shape; a shape of no axes is a scalar. Shapes come out of manifest
// expressions, so a negative axis and a product too large to address are errors, not panics.
func Elements(shape []int) (int, error) {
	n, empty := 1, false
	for axis, length := range shape {
		switch {
		case length < 0:
			return 0, fmt.Errorf("shape %v: axis %d is %d: make it 0 or more", shape, axis, length)
		case length == 0:
			empty = true
		case n > math.MaxInt/8/length:
			return 0, fmt.Errorf("shape %v: more elements than memory can hold: make it smaller", shape)
		default:
			n *= length
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

func unknown(d DType) string { return fmt.Sprintf("tensor: unknown element format %q", string(d)) }

func join[S ~string](names []S) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
	}
	return strings.Join(words, ", ")
}
