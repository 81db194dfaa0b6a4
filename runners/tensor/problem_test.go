package tensor

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

const manifestYAML = `version: 1
name: attention
mode: cpu
entry: f
source: f.c
arguments:
  - {name: q, dtype: e4m3, access: in, shape: [B, H, N], quantize: {per: [H], scale: q_scale}}
  - {name: q_scale, dtype: f32, access: in, shape: [H]}
  - {name: mask, dtype: f32, access: in, shape: [N], init: ones}
  - {name: o, dtype: f16, access: out, shape: [B, H, N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: r.c, entry: r}
tolerance: {abs: 0.1}
shapes:
  small: {B: 2, H: 3, N: 5}
`

func draw(t *testing.T, dist distribution.Kind, seed uint64) *Problem {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(m, m.Shapes[0], nil, dist, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestQuantizedArgument(t *testing.T) {
	p := draw(t, distribution.Normal, 7)
	q, scale, mask, n := p.Args[0], p.Args[1], p.Args[2], p.Args[4]
	if len(q.Bytes) != 30 || len(scale.Real) != 3 || !scale.IsScale || n.Real[0] != 5 {
		t.Fatalf("%d codes, %d scales, N is %v", len(q.Bytes), len(scale.Real), n.Real)
	}
	if !slices.Equal(mask.Real, []float64{1, 1, 1, 1, 1}) {
		t.Errorf("an argument with an init of its own is %v", mask.Real)
	}
	codes := make([]float64, 30)
	Decode(manifest.E4M3, codes, q.Bytes)
	for i, code := range codes {
		head := i / 5 % 3
		if got := code * scale.Real[head]; got != q.Real[i] {
			t.Errorf("element %d means %v, its code and scale %v", i, q.Real[i], got)
		}
		if math.Abs(q.Real[i]-q.Original[i]) > 0.07*math.Abs(q.Original[i])+0.01 {
			t.Errorf("element %d was drawn as %v and quantised to %v", i, q.Original[i], q.Real[i])
		}
	}
	if again := draw(t, distribution.Normal, 7); !bytes.Equal(again.Args[0].Bytes, q.Bytes) {
		t.Error("the same seed gave other bytes")
	}
	if other := draw(t, distribution.Normal, 8); bytes.Equal(other.Args[0].Bytes, q.Bytes) {
		t.Error("another seed gave the same bytes")
	}
}

func TestReferenceSeesRealNumbers(t *testing.T) {
	p := draw(t, distribution.Normal, 1)
	for _, original := range []bool{false, true} {
		args := p.ReferenceArgs(original)
		if len(args) != 4 || args[0].DType != manifest.F64 || args[2].Bytes != nil {
			t.Fatalf("the reference gets %+v", args)
		}
		got := make([]float64, 30)
		Decode(manifest.F64, got, args[0].Bytes)
		want := p.Args[0].Real
		if original {
			want = p.Args[0].Original
		}
		if !slices.Equal(got, want) {
			t.Errorf("original %v: got %v, want %v", original, got, want)
		}
	}
}

// TestLayoutSeesEveryByte checks that a write outside the outputs is detected at any byte.
func TestLayoutSeesEveryByte(t *testing.T) {
	p := draw(t, distribution.Uniform, 3)
	l := NewLayout(p.Args, 16)
	slot := make([]byte, l.Size)
	l.Fill(slot, p.Args)
	if inputs, outside := l.Changed(slot, p.Args); len(inputs) > 0 || outside {
		t.Fatalf("an untouched slot reads as changed: %v, %v", inputs, outside)
	}
	poisoned := make([]byte, 30*manifest.F16.Size())
	Poison(manifest.F16, poisoned)
	if got := l.Outputs(slot)[3]; !bytes.Equal(got, poisoned) {
		t.Errorf("the output is %x before the launch, want poison", got)
	}
	at := func(arg int) (from, to int) { return l.Offsets[arg], l.Offsets[arg] + p.Args[arg].Size() }
	for i := 16; i < l.Size; i++ {
		slot[i] ^= 0x10
		inputs, outside := l.Changed(slot, p.Args)
		slot[i] ^= 0x10
		where := "outside"
		for arg, a := range p.Args {
			if from, to := at(arg); a.Array() && i >= from && i < to {
				where = a.Name
			}
		}
		switch where {
		case "outside":
			if !outside || len(inputs) > 0 {
				t.Fatalf("byte %d between the arrays was written: %v, %v", i, inputs, outside)
			}
		case "o":
			if outside || len(inputs) > 0 {
				t.Fatalf("byte %d of the output was written: %v, %v", i, inputs, outside)
			}
		default:
			if outside || !slices.Equal(inputs, []string{where}) {
				t.Fatalf("byte %d of %s was written: %v, %v", i, where, inputs, outside)
			}
		}
	}
}
