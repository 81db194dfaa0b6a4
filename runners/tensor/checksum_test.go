package tensor

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"
)

func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	buf := make([]byte, n)
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	return buf
}

func TestChecksumGolden(t *testing.T) {
	for _, test := range []struct {
		name  string
		seed  uint64
		parts [][]byte
		want  uint64
	}{
		{"nothing", 0, nil, 0xb5129dbb8d1d79c9},
		{"one empty part", 0, [][]byte{{}}, 0x6834064034d887e7},
		{"text", 0, [][]byte{[]byte("kernelgate")}, 0xb1cd3e355d1f93d8},
		{"text, seed 1", 1, [][]byte{[]byte("kernelgate")}, 0x80016c58acc3b605},
		{"1000 bytes", 42, [][]byte{noise(0, 1000)}, 0xdd6b048abd1fbe37},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Checksum(test.seed, test.parts...); got != test.want {
				t.Errorf("%#x, want %#x", got, test.want)
			}
		})
	}
}

func TestChecksumSeesEveryBit(t *testing.T) {
	for _, n := range []int{0, 1, 6, 7, 8, 13, 27, 28, 29, 30, 55, 56, 57, 100, 199} {
		for name, buf := range map[string][]byte{"noise": noise(uint64(n), n), "zeros": make([]byte, n)} {
			seed := uint64(n) * 12345
			before := Checksum(seed, buf)
			for i := range buf {
				for bit := range 8 {
					buf[i] ^= 1 << bit
					if Checksum(seed, buf) == before {
						t.Fatalf("%s of %d bytes: bit %d of byte %d goes unseen", name, n, bit, i)
					}
					buf[i] ^= 1 << bit
				}
			}
		}
	}
}

// Edits that a weaker sum would miss: moved, swapped, cancelling.
func TestChecksumSeesEdits(t *testing.T) {
	base := noise(1, 256)
	edit := func(change func(b []byte)) []byte {
		b := append([]byte(nil), base...)
		change(b)
		return b
	}
	sums := map[uint64]string{}
	for name, parts := range map[string][][]byte{
		"base":                {base},
		"words swapped":       {edit(func(b []byte) { copy(b, base[8:16]); copy(b[8:], base[:8]) })},
		"rows swapped":        {edit(func(b []byte) { copy(b, base[32:64]); copy(b[32:], base[:32]) })},
		"halves swapped":      {edit(func(b []byte) { copy(b, base[4:8]); copy(b[4:], base[:4]) })},
		"signs 4 words apart": {edit(func(b []byte) { b[7] ^= 0x80; b[39] ^= 0x80 })},
		"neighbouring signs":  {edit(func(b []byte) { b[7] ^= 0x80; b[15] ^= 0x80 })},
		"zeroed":              {make([]byte, 256)},
		"zeroed, longer":      {make([]byte, 257)},
		"zeroed, in two":      {make([]byte, 128), make([]byte, 128)},
		"cut elsewhere":       {base[:64], base[64:]},
		"cut elsewhere again": {base[:32], base[32:]},
		"empty part first":    {nil, base},
		"empty part last":     {base, nil},
		"parts swapped":       {base[64:], base[:64]},
	} {
		sum := Checksum(9, parts...)
		if other, ok := sums[sum]; ok {
			t.Errorf("%q and %q have the same checksum", name, other)
		}
		sums[sum] = name
	}
}

func TestChecksumDependsOnSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(1000) {
		seen[Checksum(seed, []byte("kernelgate"))] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 seeds give %d checksums", len(seen))
	}
}

func TestChecksumSpreadsBits(t *testing.T) {
	buf := noise(3, 64)
	before := Checksum(0, buf)
	flips := 0
	for i := range 512 {
		buf[i/8] ^= 1 << (i % 8)
		flips += bits.OnesCount64(before ^ Checksum(0, buf))
		buf[i/8] ^= 1 << (i % 8)
	}
	if mean := float64(flips) / 512; mean < 30 || mean > 34 {
		t.Errorf("a flipped bit changes %.2f bits of the checksum on average, expected about 32", mean)
	}
}

// The field's arithmetic, against the schoolbook's.
func TestFieldArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	edges := []uint64{0, 1, mersenne - 1, mersenne, mersenne + 1, mersenne + 7}
	for range 2000 {
		pick := func() uint64 {
			if r.IntN(3) == 0 {
				return edges[r.IntN(len(edges))]
			}
			return r.Uint64() >> 3
		}
		a, b, c := pick(), pick(), pick()
		mod := func(x, y uint64) uint64 {
			hi, lo := bits.Mul64(x%mersenne, y%mersenne)
			return bits.Rem64(hi, lo, mersenne)
		}
		if got, want := canonical(multiplyAdd(a, b, c)), (mod(a, b)+c%mersenne)%mersenne; got != want {
			t.Fatalf("%d·%d + %d = %d, want %d", a, b, c, got, want)
		}
	}
}

// The polynomial as its definition has it: one coefficient at a time.
func TestPolynomial(t *testing.T) {
	for n := range 120 {
		for name, part := range map[string][]byte{"noise": noise(uint64(n), n), "ones": bytes.Repeat([]byte{0xFF}, n)} {
			for _, x := range []uint64{1, 2, 12345, mersenne - 1, point(uint64(n), 1)} {
				padded := append(part[:n:n], make([]byte, 28)...)
				var want uint64
				for i := 0; i < (n+27)/28*28; i += 7 {
					var coefficient [8]byte
					copy(coefficient[:7], padded[i:])
					want = canonical(multiplyAdd(want, x, le.Uint64(coefficient[:])))
				}
				if got := canonical(polynomial(part, x)); got != want {
					t.Fatalf("%s of %d bytes at %d: %d, want %d", name, n, x, got, want)
				}
			}
		}
	}
}
