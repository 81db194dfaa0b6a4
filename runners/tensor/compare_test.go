package tensor

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// output encodes got, with poison at the indices in unwritten.
func output(d manifest.DType, got []float64, unwritten ...int) []byte {
	buf := make([]byte, len(got)*d.Size())
	Encode(d, buf, got)
	for _, i := range unwritten {
		Poison(d, buf[i*d.Size():(i+1)*d.Size()])
	}
	return buf
}

func TestCompare(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	const huge = math.MaxFloat64
	for _, test := range []struct {
		name      string
		d         manifest.DType
		got       []float64
		unwritten []int
		want      []float64
		tol       manifest.Tolerance
		expect    gates.Errors
	}{
		{
			name: "exact", d: manifest.F16, got: []float64{1, -2, 0}, want: []float64{1, -2, 0},
			expect: gates.Errors{Elements: 3},
		},
		{
			name: "empty", d: manifest.F16,
			expect: gates.Errors{},
		},
		{
			name: "one off", d: manifest.F32, got: []float64{3, 4, 0.5}, want: []float64{3, 4, 0}, tol: manifest.Tolerance{Abs: 0.25},
			expect: gates.Errors{Elements: 3, MaxAbs: 0.5, MeanAbs: 0.5 / 3, Norm: 0.1, Bad: 1},
		},
		{
			name: "at the tolerance", d: manifest.F32, got: []float64{1.5, 1.75, -4.75}, want: []float64{1, 1, -4}, tol: manifest.Tolerance{Abs: 0.25, Rel: 0.25},
			expect: gates.Errors{Elements: 3, MaxAbs: 0.75, MeanAbs: 2.0 / 3, Norm: math.Sqrt(1.375 / 18), Bad: 1},
		},
		{
			name: "nothing is tolerated", d: manifest.F64, got: []float64{1 + 0x1p-52}, want: []float64{1},
			expect: gates.Errors{Elements: 1, MaxAbs: 0x1p-52, MeanAbs: 0x1p-52, Norm: 0x1p-52, Bad: 1},
		},
		{
			name: "zeros for zeros", d: manifest.BF16, got: []float64{0, 0}, want: []float64{0, math.Copysign(0, -1)},
			expect: gates.Errors{Elements: 2},
		},
		{
			name: "something for zeros", d: manifest.BF16, got: []float64{0, 0.5}, want: []float64{0, 0}, tol: manifest.Tolerance{Abs: 1},
			expect: gates.Errors{Elements: 2, MaxAbs: 0.5, MeanAbs: 0.25, Norm: huge},
		},
		{
			name: "zeros for something: small, yet all of it is wrong", d: manifest.F16, got: []float64{0, 0}, want: []float64{0.03, -0.04}, tol: manifest.Tolerance{Abs: 0.06},
			expect: gates.Errors{Elements: 2, MaxAbs: 0.04, MeanAbs: 0.035, Norm: 1},
		},
		{
			name: "NaN and both infinities", d: manifest.F16, got: []float64{3, 9, nan, inf, -inf, 4}, want: []float64{3, 4, 0, 1, 2, 4}, tol: manifest.Tolerance{Abs: 10},
			expect: gates.Errors{Elements: 6, MaxAbs: 5, MeanAbs: 5.0 / 3, Norm: 5 / math.Sqrt(41), Bad: 3, NaN: 1, Inf: 2},
		},
		{
			name: "infinity first", d: manifest.F32, got: []float64{1, -inf, nan}, want: []float64{1, 2, 3}, tol: manifest.Tolerance{Abs: 10},
			expect: gates.Errors{Elements: 3, Bad: 2, NaN: 1, Inf: 1},
		},
		{
			name: "unwritten", d: manifest.F16, got: []float64{1, 2, nan, 4.5}, unwritten: []int{1}, want: []float64{1, 2, 3, 4}, tol: manifest.Tolerance{Abs: 1},
			expect: gates.Errors{Elements: 4, MaxAbs: 0.5, MeanAbs: 0.25, Norm: 0.5 / math.Sqrt(17), Bad: 2, NaN: 1, Unwritten: 1},
		},
		{
			name: "all unwritten", d: manifest.E4M3, got: []float64{1, 2}, unwritten: []int{0, 1}, want: []float64{1, 2}, tol: manifest.Tolerance{Abs: 1},
			expect: gates.Errors{Elements: 2, Bad: 2, Unwritten: 2},
		},
		{
			name: "unwritten integer", d: manifest.I8, got: []float64{5, 0}, unwritten: []int{1}, want: []float64{5, 7}, tol: manifest.Tolerance{Abs: 1},
			expect: gates.Errors{Elements: 2, Bad: 1, Unwritten: 1},
		},
		{
			name: "integer that happens to be the pattern", d: manifest.I8, got: []float64{-91, -91}, want: []float64{-91, -90}, tol: manifest.Tolerance{Abs: 1},
			expect: gates.Errors{Elements: 2, MaxAbs: 1, MeanAbs: 0.5, Norm: 1 / math.Hypot(91, 90)},
		},
		{
			name: "reference not finite, and met", d: manifest.F32, got: []float64{nan, inf, -inf, 1}, want: []float64{nan, inf, -inf, 1},
			expect: gates.Errors{Elements: 4},
		},
		{
			name: "reference not finite, and missed", d: manifest.F32, got: []float64{1, nan, -inf, 5}, want: []float64{nan, inf, inf, 5}, tol: manifest.Tolerance{Abs: 10, Rel: 1},
			expect: gates.Errors{Elements: 4, Bad: 3, NaN: 1, Inf: 1},
		},
		{
			name: "reference NaN, unwritten", d: manifest.F32, got: []float64{0}, unwritten: []int{0}, want: []float64{nan},
			expect: gates.Errors{Elements: 1, Bad: 1, Unwritten: 1},
		},
		{
			name: "reference infinite, integer unwritten", d: manifest.I32, got: []float64{0}, unwritten: []int{0}, want: []float64{-inf},
			expect: gates.Errors{Elements: 1, Bad: 1, Unwritten: 1},
		},
		{
			name: "too small to square", d: manifest.F64, got: []float64{3e-200, 5e-200}, want: []float64{3e-200, 4e-200},
			expect: gates.Errors{Elements: 2, MaxAbs: 1e-200, MeanAbs: 5e-201, Norm: 0.2, Bad: 1},
		},
		{
			name: "too large to square", d: manifest.F64, got: []float64{3e200, 5e200, 1}, want: []float64{3e200, 4e200, 1}, tol: manifest.Tolerance{Rel: 0.5},
			expect: gates.Errors{Elements: 3, MaxAbs: 1e200, MeanAbs: 1e200 / 3, Norm: 0.2},
		},
		{
			name: "error too large for float64", d: manifest.F64, got: []float64{huge}, want: []float64{-huge}, tol: manifest.Tolerance{Abs: huge},
			expect: gates.Errors{Elements: 1, MaxAbs: huge, MeanAbs: huge, Norm: huge, Bad: 1},
		},
		{
			name: "the first of equal errors", d: manifest.F32, got: []float64{1, 3, 3}, want: []float64{1, 2, 2}, tol: manifest.Tolerance{Abs: 2},
			expect: gates.Errors{Elements: 3, MaxAbs: 1, MeanAbs: 2.0 / 3, Norm: math.Sqrt(2.0 / 9)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Compare(test.d, output(test.d, test.got, test.unwritten...), test.want, test.tol)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.expect, got, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			stored, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("not storable: %v", err)
			}
			var back gates.Errors
			if err := json.Unmarshal(stored, &back); err != nil || !reflect.DeepEqual(back, got) {
				t.Errorf("stored as %s, read as %+v (%v)", stored, back, err)
			}
		})
	}
}

// TestCompareLong compares more elements than the comparison decodes at a time, with faults at the
// boundaries of the blocks.
func TestCompareLong(t *testing.T) {
	const n = 1500
	want := fill(distribution.Normal, 0, "o", n)
	for _, at := range []int{0, 511, 512, 1023, 1024, 1499} {
		got := append([]float64(nil), want...)
		got[at] += 2
		e, err := Compare(manifest.F64, output(manifest.F64, got, (at+700)%n), want, manifest.Tolerance{Abs: 1})
		if err != nil {
			t.Fatal(err)
		}
		if e.Bad != 2 || e.Unwritten != 1 || math.Abs(e.MaxAbs-2) > 1e-12 || math.Abs(e.MeanAbs-2.0/(n-1)) > 1e-12 {
			t.Errorf("error at %d: %+v", at, e)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		bytes int
		tol   manifest.Tolerance
		says  string
	}{
		{"short", 7, manifest.Tolerance{}, "7 bytes for a reference of 4 elements, want 8"},
		{"long", 10, manifest.Tolerance{}, "10 bytes"},
		{"NaN tolerance", 8, manifest.Tolerance{Abs: math.NaN()}, "tolerance abs NaN"},
		{"infinite tolerance", 8, manifest.Tolerance{Rel: math.Inf(1)}, "rel +Inf"},
		{"negative tolerance", 8, manifest.Tolerance{Abs: -1}, "abs -1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Compare(manifest.F16, make([]byte, test.bytes), make([]float64, 4), test.tol)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestNorm(t *testing.T) {
	var zero norm
	for _, test := range []struct {
		name   string
		values []float64
		m      float64
		e      int
	}{
		{"middle", []float64{3, 4}, 5, 0},
		{"small", []float64{0x3p-1000, 0x4p-1000}, 5 * 0x1p-400, -600},
		{"big", []float64{0x3p1000, 0x4p1000}, 5 * 0x1p400, 600},
		{"small beside middle", []float64{0x1p-1000, 2}, 2, 0},
		{"either side of a border", []float64{0x3p479, 0x4p479}, 0x5p-121, 600},
		{"smallest", []float64{math.SmallestNonzeroFloat64}, 0x1p-474, -600},
	} {
		t.Run(test.name, func(t *testing.T) {
			var n norm
			for _, x := range test.values {
				n.add(x)
			}
			if m, e := n.value(); m != test.m || e != test.e {
				t.Errorf("%v·2^%d, want %v·2^%d", m, e, test.m, test.e)
			}
			if r := ratio(&n, &n); r != 1 {
				t.Errorf("over itself it is %v", r)
			}
			if r := ratio(&n, &zero); !math.IsInf(r, 1) {
				t.Errorf("over 0 it is %v", r)
			}
		})
	}
	if r := ratio(&zero, &zero); r != 0 {
		t.Errorf("0/0 is %v", r)
	}
}
