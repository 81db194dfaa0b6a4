package manifest

import (
	"fmt"

	"github.com/kernelgate/kernelgate/policies/strict"
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
	I16  DType = "i16"
	U16  DType = "u16"
	U32  DType = "u32"
	U64  DType = "u64"  // exact up to 2⁵³ only
	Bool DType = "bool" // a byte that is 0 or 1
	Int4 DType = "int4" // −8 to 7, two to a byte, the first in the low half
	E2M1 DType = "e2m1" // FP4: ±0, ½, 1, 1½, 2, 3, 4 and 6, two to a byte, the first in the low half
)

// DTypes lists every format, narrow floats first. Device code knows them by their index here.
func DTypes() []DType {
	return []DType{E4M3, E5M2, F16, BF16, F32, F64, I8, U8, I32, I64, I16, U16, U32, U64, Bool, Int4, E2M1}
}

var (
	scalarDTypes    = []DType{I8, U8, I16, U16, I32, U32, I64, U64, Bool, F16, BF16, F32, F64}
	quantizedDTypes = []DType{E4M3, E5M2, I8, Int4, E2M1}
)

// formatNames are the formats' names in other tools.
var formatNames = map[string]string{
	"fp32": "f32", "float32": "f32", "float": "f32", "single": "f32", "tf32": "f32", "fp16": "f16", "float16": "f16", "half": "f16", "bfloat16": "bf16", "fp64": "f64", "float64": "f64", "double": "f64",
	"fp8": "e4m3 or e5m2", "f8": "e4m3 or e5m2", "float8": "e4m3 or e5m2", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "fp8e4m3": "e4m3", "fp8e5m2": "e5m2", "fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "fp4": "e2m1", "nvfp4": "e2m1",
	"int": "i32", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "long": "i64", "short": "i16", "uint": "u32", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
	"byte": "u8", "char": "i8", "i4": "int4", "boolean": "bool", "size_t": "u64", "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8",
}

func (d *DType) UnmarshalStrict(n *strict.Node) { strict.WordCalled(n, d, DTypes(), formatNames) }
func (d *DType) JSONSchema() map[string]any     { return strict.WordSchema(DTypes()) }

var sizes = map[DType]int{E4M3: 1, E5M2: 1, I8: 1, U8: 1, F16: 2, BF16: 2, F32: 4, I32: 4, F64: 8, I64: 8, I16: 2, U16: 2, U32: 4, U64: 8, Bool: 1}

// Packed reports whether two elements share a byte. An array of an odd number of them ends with
// half a byte of zeros.
func (d DType) Packed() bool { return d == Int4 || d == E2M1 }

// Bytes returns the length of n elements.
func (d DType) Bytes(elements int) int {
	if d.Packed() {
		return (elements + 1) / 2
	}
	return elements * d.Size()
}

// Size returns the bytes of one element, in a format that is not packed.
func (d DType) Size() int {
	n, ok := sizes[d]
	if !ok {
		panic(unknown(d))
	}
	return n
}

// Float reports whether the format is a floating-point one. All of these except e2m1 have NaNs to
// poison with.
func (d DType) Float() bool {
	switch d {
	case E4M3, E5M2, F16, BF16, F32, F64, E2M1:
		return true
	case I8, U8, I16, U16, I32, U32, I64, U64, Bool, Int4:
		return false
	}
	panic(unknown(d))
}

func unknown(d DType) string { return fmt.Sprintf("kernels: unknown element format %q", string(d)) }
