package tensor

import (
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

const benchElements = 1 << 20

var benchShape = []int{1, 8, 2048, 64}

func BenchmarkEncode(b *testing.B) {
	values := fill(distribution.Normal, 0, "x", benchShape...)
	for _, d := range manifest.DTypes() {
		b.Run(string(d), func(b *testing.B) {
			buf := make([]byte, d.Bytes(benchElements))
			for b.Loop() {
				Encode(d, buf, values)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	values := fill(distribution.Normal, 0, "x", benchShape...)
	for _, d := range manifest.DTypes() {
		b.Run(string(d), func(b *testing.B) {
			buf := output(d, values)
			back := make([]float64, benchElements)
			for b.Loop() {
				Decode(d, back, buf)
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	values := make([]float64, benchElements)
	for _, dist := range distribution.All() {
		b.Run(string(dist), func(b *testing.B) {
			for b.Loop() {
				Fill(values, dist, 0, "x", benchShape)
			}
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	values := fill(distribution.Normal, 0, "x", benchShape...)
	for name, axes := range map[string][]int{"head": {1}, "channel": {3}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := quantize(manifest.E4M3, values, benchShape, axes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	values := fill(distribution.Normal, 0, "x", benchShape...)
	for _, d := range []manifest.DType{manifest.E4M3, manifest.F16, manifest.F32, manifest.I8} {
		b.Run(string(d), func(b *testing.B) {
			buf := output(d, values)
			for b.Loop() {
				if _, err := Compare(d, buf, values, manifest.Tolerance{Abs: 0.06}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPoison(b *testing.B) {
	buf := make([]byte, benchElements*2)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			Poison(manifest.F16, buf)
		}
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			countPoison(manifest.F16, buf)
		}
	})
}
