package tensor

import (
	"fmt"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// poisonWord returns the 32-bit pattern that Poison repeats, least significant byte first. Every
// format's pattern has a period of at most four bytes, so that a plain memset can poison device
// memory: of bytes for 8-bit formats, of 16-bit words for 16-bit ones, of 32-bit words for the
// rest.
//
// Floats are poisoned with a *signalling* NaN. Arithmetic on it gives a quiet NaN. So an element
// that a kernel computed, even from poison that it read, differs from one that it never wrote. E4M3
// has only two NaN codes, and the poison is the negative one, because CUDA's conversions of float
// and half produce the positive one. Integers and E2M1 have no NaN; their poison repeats 0xA5,
// which may also be a genuine result.
func poisonWord(d manifest.DType) uint32 {
	switch d {
	case manifest.E4M3:
		return 0xFFFFFFFF
	case manifest.E5M2:
		return 0xFDFDFDFD
	case manifest.F16:
		return 0xFDA5FDA5
	case manifest.BF16:
		return 0xFFA5FFA5
	case manifest.F32:
		return 0xFFA5A5A5
	case manifest.F64:
		return 0xFFF5A5A5
	case manifest.Int4, manifest.E2M1, manifest.I8, manifest.U8, manifest.I16, manifest.U16, manifest.I32, manifest.U32, manifest.I64, manifest.U64, manifest.Bool:
		return 0xA5A5A5A5
	}
	panic(fmt.Sprintf("tensor: unknown element format %q", string(d)))
}

// Poison fills dst with elements that no kernel should leave behind, so that unwritten elements can
// be detected.
func Poison(d manifest.DType, dst []byte) {
	if !d.Packed() {
		check(d, len(dst), len(dst)/d.Size())
	}
	var word [4]byte
	le.PutUint32(word[:], poisonWord(d))
	filled := copy(dst, word[:])
	for filled < len(dst) {
		filled += copy(dst[filled:], dst[:filled])
	}
}

// A pattern is one poisoned element, looked up once for many comparisons.
type pattern struct {
	size int // bytes; 0 of a format with two elements in a byte
	word uint32
}

func patternOf(d manifest.DType) pattern {
	if d.Packed() {
		return pattern{0, poisonWord(d)}
	}
	return pattern{d.Size(), poisonWord(d)}
}

// at reports whether element i of src is exactly what Poison writes.
func (p pattern) at(src []byte, i int) bool {
	switch p.size {
	case 0:
		return (src[i/2]^byte(p.word))>>(i%2*4)&0xF == 0
	case 1:
		return src[i] == byte(p.word)
	case 2:
		return le.Uint16(src[2*i:]) == uint16(p.word)
	case 4:
		return le.Uint32(src[4*i:]) == p.word
	default:
		return le.Uint64(src[8*i:]) == uint64(p.word)<<32|uint64(p.word)
	}
}
