package tensor

import "math/bits"

// Checksum is a 64-bit fingerprint of parts, in order and with their boundaries, that is the same in every
// process and on every machine. It guards inputs against a kernel that edits them, so seed must be one
// that the kernel's author cannot know in advance.
//
// Each part is hashed as a polynomial over the field of 2⁶¹ − 1 elements at a point drawn from seed. That is what
// a multiply-and-shift hash does not give: whatever an author who knows this code changes, two different
// contents of n bytes agree for at most about n/7 of the 2⁶¹ points, and a change within one 7-byte group is
// seen at every point. It is not a cryptographic hash: whoever knows the seed can forge it.
func Checksum(seed uint64, parts ...[]byte) uint64 {
	inner, outer := point(seed, 1), point(seed, 2)
	sum := uint64(1) // a leading coefficient, so that leading empty parts count
	for _, part := range parts {
		sum = multiplyAdd(sum, outer, polynomial(part, inner))
		sum = multiplyAdd(sum, outer, uint64(len(part)))
	}
	return mix(canonical(sum))
}

// mersenne is the prime 2⁶¹ − 1: reducing by it takes a shift and an addition.
const mersenne = 1<<61 - 1

// polynomial takes each 7 bytes of part, the last padded with zeros, as a coefficient; the first is the highest.
// Seven, because a coefficient must be smaller than the prime for every change of it to be seen. Four at a time
// share one reduction.
func polynomial(part []byte, x uint64) uint64 {
	const block = 4 * 7
	x2 := multiplyAdd(x, x, 0)
	x3 := multiplyAdd(x2, x, 0)
	x4 := multiplyAdd(x3, x, 0)
	const seven = 1<<56 - 1
	var sum uint64
	var last [block + 1]byte
	for len(part) > 0 {
		b := &last
		if len(part) > block { // one byte more, because the last coefficient is read as 8 bytes
			b = (*[block + 1]byte)(part)
		} else {
			copy(last[:], part)
		}
		part = part[min(block, len(part)):]

		hi, lo := bits.Mul64(sum, x4)
		h, l := bits.Mul64(le.Uint64(b[0:])&seven, x3)
		lo, carry := bits.Add64(lo, l, 0)
		hi += h + carry
		h, l = bits.Mul64(le.Uint64(b[7:])&seven, x2)
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
		h, l = bits.Mul64(le.Uint64(b[14:])&seven, x)
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
		lo, carry = bits.Add64(lo, le.Uint64(b[21:])&seven, 0)
		sum = reduce(hi+carry, lo)
	}
	return sum
}

// multiplyAdd is a·b + c in the field, for c below 2⁶².
func multiplyAdd(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c, 0)
	return reduce(hi+carry, lo)
}

// reduce folds a sum of products twice. The result may exceed the prime by a little, which the next product
// absorbs; only canonical makes it unique.
func reduce(hi, lo uint64) uint64 {
	r := lo&mersenne + (hi<<3 | lo>>61)
	return r&mersenne + r>>61
}

func canonical(r uint64) uint64 {
	if r >= mersenne {
		return r - mersenne
	}
	return r
}

// point draws the n-th evaluation point for seed, never 0.
func point(seed, n uint64) uint64 {
	return 1 + mix(mix(seed)+n)%(mersenne-1)
}

// mix is a bijection that spreads every input bit over all 64. Its factors are the fractions of √2 and √3, made odd.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0x6A09E667F3BCC909
	x ^= x >> 29
	x *= 0xBB67AE8584CAA73B
	x ^= x >> 32
	return x
}
