package tensor

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const scratchManifest = `
version: 1
name: decode
mode: cuda
arch: [sm_90]
entry: decode
arguments:
  - {name: q, dtype: f32, access: in, shape: [S]}
  - {name: out, dtype: f32, access: out, shape: [S]}
  - name: p
    access: struct
    fields: [{name: q, pointer: q}, {name: bias, pointer: none}, {name: partial, pointer: partial}, {name: scale, dtype: f32, value: 2}]
scratch:
  - {name: unused, dtype: f64, shape: [S]}
  - {name: partial, dtype: f32, shape: [SPLITS, S]}
  - {name: done, dtype: u8, shape: [3]}
launch: {grid: [1], block: [32], args: [p, out, done]}
variants: {a: {source: a.cu}, b: {source: b.cu, launch: {grid: [1], block: [32], args: [q, out, unused]}}}
default_variant: a
toggles: {SPLITS: {values: [2, 8], default: 2, layer: micro}}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [32]}}
tolerance: {abs: 1}
shapes: {one: {S: 16}}
`

// TestScratch checks that each launch has the scratch that it uses, by its own toggles. Scratch is
// not part of the problem, is poisoned and guarded, and a struct can point to it.
func TestScratch(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(scratchManifest))
	if err != nil {
		t.Fatal(err)
	}
	shape, _ := m.Shape("one")
	p, err := Outline(m, shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Args {
		if a.Access == manifest.Scratched {
			t.Errorf("%s is among the problem's arguments", a.Name)
		}
	}
	scratch, err := Scratch(m, "a", shape, map[string]int{"SPLITS": 8})
	if err != nil || len(scratch) != 2 || scratch[0].Name != "partial" || scratch[0].Size() != 4*8*16 || scratch[1].Name != "done" {
		t.Fatalf("%+v, %v", scratch, err)
	}
	if other, err := Scratch(m, "b", shape, nil); err != nil || len(other) != 1 || other[0].Name != "unused" {
		t.Errorf("%+v, %v", other, err)
	}
	all := append(p.Args, scratch...)
	address := func(arg int) uint64 { return 0x100 + uint64(arg) }
	const q, none, partial, scale = "0001000000000000", "0000000000000000", "0401000000000000", "00000040"
	if got := hex.EncodeToString(p.Args[2].Passed(all, address)); got != q+none+partial+scale+"00000000" {
		t.Errorf("the struct is %s", got)
	}
	l := NewLayout(scratch, 0)
	slot := make([]byte, l.Size)
	l.Fill(slot, scratch)
	poisoned := make([]byte, 3)
	Poison(manifest.U8, poisoned)
	if hex.EncodeToString(l.Array(slot, 1)) != hex.EncodeToString(poisoned) {
		t.Errorf("scratch begins as %x", l.Array(slot, 1))
	}
	for _, d := range manifest.DTypes() {
		if d.Packed() {
			continue // no scratch is packed
		}
		litter, values := make([]byte, 4096), make([]float64, 4096/d.Size())
		Litter(d, litter, rand.New(rand.NewPCG(1, 2)))
		Decode(d, values, litter)
		_, nan := notANumber[d]
		seen := map[string]bool{}
		for i, v := range values {
			seen[string(litter[i*d.Size():(i+1)*d.Size()])] = true
			if nan != math.IsNaN(v) {
				t.Fatalf("%s: element %d of the litter is %v", d, i, v)
			}
		}
		if few := map[manifest.DType]int{manifest.E4M3: 2, manifest.E5M2: 4}[d]; len(seen) < 100 && len(seen) != few {
			t.Errorf("%s: the litter has %d different elements", d, len(seen))
		}
	}
	short := []byte{0, 0, 0}
	Litter(manifest.U8, short, rand.New(rand.NewPCG(1, 2)))
	l.Array(slot, 0)[5]++
	if _, outside := l.Changed(slot, scratch); outside {
		t.Error("a write to scratch is taken for one beside it")
	}
	slot[l.Offsets[1]+3]++
	if _, outside := l.Changed(slot, scratch); !outside {
		t.Error("a write behind scratch is not seen")
	}
}
