package tensor

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// drawn returns the values of an argument x at a shape of N, V and H.
func drawn(t *testing.T, argument string, n, v, h int, seed uint64) []float64 {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(fmt.Sprintf(`version: 1
name: f
mode: cpu
entry: f
source: f.c
arguments:
  - {name: x, access: in, %s}
  - {name: o, dtype: f32, access: out, shape: [N]}
reference: {source: r.c, entry: r}
tolerance: {abs: 0.1}
shapes: {one: {N: %d, V: %d, H: %d}}
`, argument, n, v, h)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(m, m.Shapes[0], nil, distribution.Normal, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p.Args[0].Real
}

// TestBoundedIntegers checks that indices stay within their bounds, reach both limits in every
// launch, and differ between launches.
func TestBoundedIntegers(t *testing.T) {
	ends := map[[2]int]bool{}
	for seed := range uint64(40) {
		x := drawn(t, "dtype: i32, shape: [N], init: 0..V-1", 9, 100000, 1, seed)
		if slices.Min(x) != 0 || slices.Max(x) != 99999 {
			t.Errorf("seed %d: from %v to %v", seed, slices.Min(x), slices.Max(x))
		}
		ends[[2]int{slices.Index(x, 0), slices.Index(x, 99999)}] = true
		if y := drawn(t, "dtype: i32, shape: [N], init: 0..V-1", 9, 100000, 1, seed+40); slices.Equal(x, y) {
			t.Errorf("seeds %d and %d draw the same", seed, seed+40)
		}
	}
	if len(ends) < 20 {
		t.Errorf("the ends stand at %d pairs of places only", len(ends))
	}
	seen := map[float64]int{}
	for seed := range uint64(200) {
		seen[drawn(t, "dtype: u8, shape: [1], init: 3..5", 1, 1, 1, seed)[0]]++
	}
	if len(seen) != 3 || seen[3] < 50 || seen[5] < 50 || seen[4] < 15 {
		t.Errorf("one index of three values is %v", seen)
	}
	counts := map[float64]int{}
	for _, v := range drawn(t, "dtype: i64, shape: [N], init: -3..V", 70000, 3, 1, 1) {
		counts[v]++
	}
	for v := -3.0; v <= 3; v++ {
		if math.Abs(float64(counts[v])-10000) > 500 {
			t.Errorf("%v was drawn %d times of 70000", v, counts[v])
		}
	}
	for _, d := range []string{"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool"} {
		x := drawn(t, "dtype: "+d+", shape: [N], init: any", 500, 1, 1, 1)
		if low, high := slices.Min(x), slices.Max(x); high <= low || high != math.Trunc(high) {
			t.Errorf("any of %s is from %v to %v", d, low, high)
		}
	}
}

func TestRealRanges(t *testing.T) {
	x := drawn(t, "dtype: f64, shape: [N], init: -0.5..2.5", 20000, 1, 1, 1)
	if mean, _, _ := moments(x); slices.Min(x) < -0.5 || slices.Max(x) > 2.5 || math.Abs(mean-1) > 0.05 {
		t.Errorf("from %v to %v, mean %v", slices.Min(x), slices.Max(x), mean)
	}
	x = drawn(t, "dtype: f64, shape: [N], init: {scale: 0.02}", 20000, 1, 1, 1)
	if _, sigma, _ := moments(x); math.Abs(sigma-0.02) > 0.001 {
		t.Errorf("scaled by 0.02, sigma is %v", sigma)
	}
	x = drawn(t, "dtype: f64, shape: [N], init: {draw: normal, range: 0..V}", 20000, 1, 1, 1)
	if slices.Min(x) != 0 || slices.Max(x) != 1 {
		t.Errorf("held to 0..1, the values are from %v to %v", slices.Min(x), slices.Max(x))
	}
}

func TestPermutations(t *testing.T) {
	for n := 1; n < 70; n++ {
		x := drawn(t, "dtype: i32, shape: [N], init: permutation", n, 1, 1, uint64(n))
		sorted := slices.Sorted(slices.Values(x))
		for i, v := range sorted {
			if v != float64(i) {
				t.Fatalf("%d elements: %v is no permutation", n, x)
			}
		}
	}
	// All orders of four occur, about equally often.
	orders := map[string]int{}
	for seed := range uint64(4800) {
		k := KeyOf("permutation", seed, "x", []int{4})
		orders[fmt.Sprint(k.permuted(0, 0, 4), k.permuted(0, 1, 4), k.permuted(0, 2, 4), k.permuted(0, 3, 4))]++
	}
	for order, times := range orders {
		if len(orders) != 24 || times < 80 || times > 400 {
			t.Errorf("%d orders; %s %d times of 4800", len(orders), order, times)
		}
	}
	x := drawn(t, "dtype: i32, shape: [N, H], init: {draw: permutation, range: 10..V, each: row}", 50, 17, 3, 1)
	rows := map[string]bool{}
	for row := range slices.Chunk(x, 3) {
		rows[fmt.Sprint(row)] = true
		if row[0] == row[1] || row[1] == row[2] || row[0] == row[2] || slices.Min(row) < 10 || slices.Max(row) > 17 {
			t.Errorf("row %v has no three of 10 to 17", row)
		}
	}
	if len(rows) < 30 {
		t.Errorf("50 rows have %d orders", len(rows))
	}
	pages := drawn(t, "dtype: i32, shape: [H, N], init: {draw: permutation, range: 0..V-1}", 100, 100000, 7, 1)
	slices.Sort(pages)
	if len(slices.Compact(pages)) != 700 {
		t.Error("a page is in the table twice")
	}
}

func TestOffsets(t *testing.T) {
	empty, long, all := 0, 0, 0
	for seed := range uint64(30) {
		x := drawn(t, "dtype: i32, shape: [N+1], init: {draw: offsets, total: V}", 32, 4096, 1, seed)
		if x[0] != 0 || x[32] != 4096 || !slices.IsSorted(x) {
			t.Fatalf("seed %d: %v", seed, x)
		}
		for i := range 32 {
			all++
			switch length := x[i+1] - x[i]; {
			case length == 0:
				empty++
			case length > 256:
				long++
			}
		}
		x = drawn(t, "dtype: i32, shape: [H, N+1], init: {draw: offsets, total: V, lengths: 1..H+2, each: row}", 31, 70, 3, seed)
		for row := range slices.Chunk(x, 32) {
			for i := range 31 {
				if length := row[i+1] - row[i]; row[0] != 0 || row[31] != 70 || length < 1 || length > 5 {
					t.Fatalf("seed %d: lengths of 1 to 5 that add up to 70: %v", seed, row)
				}
			}
		}
	}
	if empty < all/50 || long < all/50 {
		t.Errorf("of %d lengths that are 128 on average %d are 0 and %d above 256", all, empty, long)
	}
	x := drawn(t, "dtype: i64, shape: [N+1], init: {draw: offsets, total: V}", 5000, 3, 1, 1)
	if x[5000] != 3 || !slices.IsSorted(x) {
		t.Error("few of many lengths are not 0, and they go wrong")
	}
}

func TestSorted(t *testing.T) {
	for seed := range uint64(20) {
		x := drawn(t, "dtype: i32, shape: [H, N], init: {draw: sorted, range: -2..V, each: row}", 50, 30, 4, seed)
		for row := range slices.Chunk(x, 50) {
			if row[0] != -2 || row[49] != 30 || !slices.IsSorted(row) {
				t.Fatalf("seed %d: %v", seed, row)
			}
			if n := len(slices.Compact(slices.Clone(row))); n < 5 || n == 50 {
				t.Errorf("seed %d: %d different values of 33", seed, n)
			}
		}
		y := drawn(t, "dtype: f32, shape: [N], init: {draw: sorted, range: 0..V}", 50, 3, 1, seed)
		if y[0] != 0 || y[49] != 3 || !slices.IsSorted(y) || len(slices.Compact(slices.Clone(y))) < 30 {
			t.Fatalf("seed %d: %v", seed, y)
		}
	}
}

func TestMasks(t *testing.T) {
	inf := math.Inf(-1)
	masked, whole := 0, 0
	for seed := range uint64(40) {
		for row := range slices.Chunk(drawn(t, "dtype: f16, shape: [N, H], init: {draw: mask, share: 0.9}", 50, 1, 4, seed), 4) {
			if slices.Max(row) == inf {
				t.Fatalf("seed %d: a row is wholly masked", seed)
			}
		}
		for row := range slices.Chunk(drawn(t, "dtype: f16, shape: [N, H], init: {draw: mask, share: 0.9, whole_rows: true}", 50, 1, 4, seed), 4) {
			for _, v := range row {
				if v == inf {
					masked++
				} else if v != 0 {
					t.Fatalf("a mask has %v", v)
				}
			}
			if slices.Max(row) == inf {
				whole++
			}
		}
	}
	if share := float64(masked) / (40 * 50 * 4); math.Abs(share-0.9) > 0.02 || whole == 0 {
		t.Errorf("%v are masked, and %d rows", share, whole)
	}
	want := []float64{0, 0, inf, inf, 0, 0, 0, inf, 0, 0, 0, 0}
	if x := drawn(t, "dtype: f32, shape: [H, N], init: causal", 4, 1, 3, 1); !slices.Equal(x, want) {
		t.Errorf("three rows of four: %v", x)
	}
	if x := drawn(t, "dtype: bool, shape: [N, H], init: causal", 3, 1, 2, 1); !slices.Equal(x, []float64{1, 0, 1, 1, 1, 1}) {
		t.Errorf("three rows of two: %v", x)
	}
}

// TestOrdersGolden pins the bits, like TestFillGolden.
func TestOrdersGolden(t *testing.T) {
	for _, test := range []struct {
		argument string
		want     []float64
	}{
		{"dtype: i32, shape: [N], init: 0..V-1", []float64{0, 999, 20, 194, 469, 602, 776, 752}},
		{"dtype: i32, shape: [N], init: {draw: permutation, range: 0..V-1}", []float64{187, 884, 97, 889, 912, 977, 615, 458}},
		{"dtype: i32, shape: [N], init: {draw: offsets, total: V}", []float64{0, 177, 302, 411, 564, 687, 884, 1000}},
		{"dtype: i32, shape: [N], init: {draw: sorted, range: 0..V-1}", []float64{0, 78, 247, 430, 659, 741, 839, 999}},
		{"dtype: bool, shape: [N], init: {draw: mask, share: 0.5}", []float64{0, 1, 1, 0, 0, 1, 0, 1}},
	} {
		if got := drawn(t, test.argument, 8, 1000, 1, 7); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.argument, got, test.want)
		}
	}
}

// TestArrayOfStructs checks that a block of quantised weights has C's layout, that every field is
// drawn as specified, and that the reference sees the fields.
func TestArrayOfStructs(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(`version: 1
name: f
mode: cpu
entry: f
source: f.c
arguments:
  - name: w
    access: in
    shape: [R, C/32]
    fields: [{name: d, dtype: f16, init: {scale: 0.1}}, {name: qs, dtype: u8, count: 16, init: any}]
  - {name: x, access: in, shape: [R], fields: [{name: id, dtype: u8, init: 0..3}, {name: at, dtype: f64}, {name: low, dtype: int4, count: 4}]}
  - {name: o, dtype: f32, access: out, shape: [R]}
reference: {source: r.c, entry: r, dims: [C, R]}
tolerance: {abs: 0.1}
shapes: {one: {R: 3, C: 64}}
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProblem(m, m.Shapes[0], nil, distribution.Normal, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, x := p.Args[0], p.Args[1]
	if len(w.Bytes) != 6*18 || len(x.Bytes) != 3*24 {
		t.Fatalf("%d and %d bytes", len(w.Bytes), len(x.Bytes))
	}
	args := p.ReferenceArgs(false)
	var names []string
	values := map[string][]float64{}
	for _, a := range args {
		names = append(names, a.Name)
		if a.Reads() {
			values[a.Name] = make([]float64, a.Elements)
			Decode(manifest.F64, values[a.Name], a.Bytes)
		}
	}
	if want := []string{"w_d", "w_qs", "x_id", "x_at", "x_low", "o", "C", "R"}; !slices.Equal(names, want) {
		t.Errorf("the reference sees %v, want %v", names, want)
	}
	if c := args[6]; c.DType != manifest.I64 || !bytes.Equal(c.Bytes, []byte{64, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("the dim C is passed as %+v", c)
	}
	for block := range 6 {
		var d [1]float64
		Decode(manifest.F16, d[:], w.Bytes[18*block:18*block+2])
		if d[0] != values["w_d"][block] || math.Abs(d[0]) > 0.5 {
			t.Errorf("block %d has the scale %v, and the reference sees %v", block, d[0], values["w_d"][block])
		}
		for i, b := range w.Bytes[18*block+2 : 18*block+18] {
			if float64(b) != values["w_qs"][16*block+i] {
				t.Errorf("block %d, byte %d is %d, and the reference sees %v", block, i, b, values["w_qs"][16*block+i])
			}
		}
	}
	for row := range 3 {
		e := x.Bytes[24*row : 24*row+24]
		var low [4]float64
		Decode(manifest.Int4, low[:], e[16:18])
		if float64(e[0]) != values["x_id"][row] || !slices.Equal(low[:], values["x_low"][4*row:4*row+4]) || !bytes.Equal(e[1:8], make([]byte, 7)) || !bytes.Equal(e[18:], make([]byte, 6)) {
			t.Errorf("row %d is %x, and the reference sees %v and %v", row, e, values["x_id"][row], values["x_low"][4*row:4*row+4])
		}
	}
}

// FuzzOrders checks for any numbers that a permutation hits nothing twice, and that an ascending
// sequence goes from 0 to its total in allowed steps.
func FuzzOrders(f *testing.F) {
	f.Add(uint64(1), uint64(0), uint16(5), uint16(7), uint32(100), uint16(0), uint16(300))
	f.Add(uint64(9), uint64(1<<40), uint16(1), uint16(0), uint32(0), uint16(0), uint16(0))
	f.Add(uint64(3), uint64(77), uint16(999), uint16(1), uint32(5), uint16(2), uint16(2))
	f.Fuzz(func(t *testing.T, a, b uint64, width, spare uint16, more uint32, least, most uint16) {
		k, n := Key{a, b}, uint64(width)%2000+1
		values, seen := n+uint64(spare), map[uint64]bool{}
		for i := range n {
			v := k.permuted(b%1000, i, values)
			if v >= values || seen[v] {
				t.Fatalf("%d of %d places go to %d of %d values, not for the first time: %v", i, n, v, values, seen[v])
			}
			seen[v] = true
			if v := k.among(i, n, values); v >= values {
				t.Fatalf("%d is among %d", v, values)
			}
		}
		if n == 1 {
			return
		}
		low, high := float64(min(least, most)), float64(max(least, most))
		total := float64(n-1)*low + min(float64(more), float64(n-1)*(high-low))
		before := 0.0
		for i := range n {
			v := k.ascending(b%1000, i, n, total, low, high)
			if i == 0 && v != 0 || i == n-1 && v != total || i > 0 && (v-before < low || v-before > high) || v != math.Trunc(v) {
				t.Fatalf("%d numbers up to %v in steps of %v to %v: %v behind %v at %d", n, total, low, high, v, before, i)
			}
			before = v
		}
	})
}
