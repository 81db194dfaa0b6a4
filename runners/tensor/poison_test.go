package tensor

import (
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

func TestPoison(t *testing.T) {
	for _, d := range manifest.DTypes() {
		if d.Packed() {
			continue // see TestBlocksWritten of the backends
		}
		t.Run(string(d), func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 7, 100} {
				buf := make([]byte, n*d.Size())
				if got := countPoison(d, buf); got != 0 {
					t.Fatalf("%d zeros count as %d poisoned", n, got)
				}
				Poison(d, buf)
				if got := countPoison(d, buf); got != n {
					t.Fatalf("%d of %d elements poisoned", got, n)
				}
				values := make([]float64, n)
				Decode(d, values, buf)
				for i, x := range values {
					if d.Float() && x == x {
						t.Fatalf("element %d is poisoned with %v, want NaN", i, x)
					}
				}
				for i := range buf {
					buf[i] ^= 1 << (i % 8)
					if got := countPoison(d, buf); got != n-1 {
						t.Fatalf("byte %d changed: %d poisoned, want %d", i, got, n-1)
					}
					buf[i] ^= 1 << (i % 8)
				}
			}
		})
	}
}

// TestPoisonDoesNotSurviveArithmetic checks that the pattern is a signalling NaN, so that
// arithmetic on it does not return the pattern.
func TestPoisonDoesNotSurviveArithmetic(t *testing.T) {
	single := math.Float32frombits(poisonWord(manifest.F32))
	double := math.Float64frombits(uint64(poisonWord(manifest.F64))<<32 | uint64(poisonWord(manifest.F64)))
	buf := make([]byte, 12)
	le.PutUint32(buf, math.Float32bits(single+1))
	le.PutUint64(buf[4:], math.Float64bits(double*2))
	if countPoison(manifest.F32, buf[:4]) != 0 || countPoison(manifest.F64, buf[4:]) != 0 {
		t.Errorf("poison plus one is % x, times two % x: still poison", buf[:4], buf[4:])
	}
	quiet := map[manifest.DType]uint32{manifest.E5M2: 0x02, manifest.F16: 0x0200, manifest.BF16: 0x0040, manifest.F32: 0x00400000, manifest.F64: 0x00080000}
	for d, bit := range quiet {
		if poisonWord(d)&bit != 0 {
			t.Errorf("%s: the poison %#x is a quiet NaN", d, poisonWord(d))
		}
	}
}

// countPoison counts the elements that are still exactly what Poison wrote. For integers that is an
// upper bound on the unwritten elements.
func countPoison(d manifest.DType, src []byte) int {
	check(d, len(src), len(src)/d.Size())
	p := patternOf(d)
	count := 0
	for i := range len(src) / p.size {
		if p.at(src, i) {
			count++
		}
	}
	return count
}
