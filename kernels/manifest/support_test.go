package manifest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSupports(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	dims := func(s, d, causal int) Dims {
		return Dims{{"B", 1}, {"H", 8}, {"S", s}, {"D", d}, {"causal", causal}}
	}
	for _, tt := range []struct {
		name, variant string
		dims          Dims
		want          bool
	}{
		{"within both limits", "stage0", dims(512, 64, 0), true},
		{"within the kernel's alone", "stage0", dims(512, 128, 0), false},
		{"a switch that is off", "stage0", dims(512, 64, 1), false},
		{"a variant without limits", "stage2", dims(512, 128, 1), true},
		{"beyond the kernel's", "stage2", dims(65537, 64, 0), false},
		{"between the alternatives", "stage2", dims(512, 96, 0), false},
		{"a dim missing", "stage2", dims(512, 64, 0)[:4], false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, tt.variant+" at "+tt.dims.String(), m.Supports(tt.variant, tt.dims), tt.want)
		})
	}
	for variant, want := range map[string]string{"stage0": "small mission long batch", "stage2": "small mission long batch decoder"} {
		var names []string
		for _, s := range m.ShapesFor(variant) {
			names = append(names, s.Name)
		}
		same(t, variant, strings.Join(names, " "), want)
	}
}

// A variant's secret shapes stay within its limits and reach all of what the
// limits leave; dims that are not drawn are those of a shape that it supports.
func TestDrawSecretWithinVariant(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(`version: 1
name: x
mode: command
command: {build: [a], bench: [b]}
shapes: {first: {N: 1, M: 8}, second: {N: 2, M: 16}}
limits: {N: 1..100}
secret: {N: 1..40 step 3}
variants:
  all: {}
  some: {limits: {N: 2..100 step 2, M: 16}}
default_variant: all
`))
	if err != nil {
		t.Fatal(err)
	}
	for variant, want := range map[string]string{
		"all":  "N=1 M=8, N=4 M=8, N=7 M=8, N=10 M=8, N=13 M=8, N=16 M=8, N=19 M=8, N=22 M=8, N=25 M=8, N=28 M=8, N=31 M=8, N=34 M=8, N=37 M=8, N=40 M=8",
		"some": "N=4 M=16, N=10 M=16, N=16 M=16, N=22 M=16, N=28 M=16, N=34 M=16, N=40 M=16",
	} {
		drawn := map[string]bool{}
		for _, s := range m.DrawSecret(variant, rand.New(rand.NewPCG(3, 4)), 1000) {
			drawn[s.Dims.String()] = true
			if !m.Supports(variant, s.Dims) {
				t.Errorf("%s: %s is not supported", variant, s)
			}
		}
		texts := strings.Split(want, ", ")
		for _, text := range texts {
			if !drawn[text] {
				t.Errorf("%s: %s was never drawn", variant, text)
			}
		}
		same(t, variant+", different shapes", len(drawn), len(texts))
	}
}

// What two ranges share, against looking at every value.
func TestRangeAnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 23))
	shared := 0
	for range 400 {
		one, other := randomRange(rng), randomRange(rng)
		a, b := rangeOf(t, one), rangeOf(t, other)
		both := a.and(b)
		for v := range 2200 {
			if got, want := both.Contains(v), a.Contains(v) && b.Contains(v); got != want {
				t.Fatalf("%d in %s and %s: %v, want %v", v, one, other, got, want)
			}
		}
		for _, s := range both.spans {
			shared++
			if !both.Contains(s.first) || !both.Contains(s.last) || s.last < s.first {
				t.Fatalf("%s and %s: %v is no span", one, other, s)
			}
		}
	}
	if shared < 100 {
		t.Errorf("only %d spans were shared: the ranges are too far apart to prove anything", shared)
	}
	for _, tt := range []struct {
		one, other string
		min, max   int
	}{
		{"0..2147483647 step 2147483647", "0..2147483646 step 2147483646", 0, 0},
		{"1..2147483647 step 46337", "5..2147483647 step 46339", 2147117570, 2147117570},
		{"7..8 step 9999999999", "1..2147483647 step 2", 7, 7},
		{"0..2147483647", "2147483647", 2147483647, 2147483647},
	} {
		t.Run(fmt.Sprint(tt.one, " and ", tt.other), func(t *testing.T) {
			both := rangeOf(t, tt.one).and(rangeOf(t, tt.other))
			same(t, "min and max", []int{both.least(), both.most()}, []int{tt.min, tt.max})
			same(t, "the other way round", rangeOf(t, tt.other).and(rangeOf(t, tt.one)).most(), tt.max)
		})
	}
}

// sortedFiles lists the files that the manifest names: the variants' sources and
// the reference, each once.
func (m *Manifest) sortedFiles() []string {
	var files []string
	for _, v := range m.Variants {
		if v.Source != "" {
			files = append(files, v.Source)
		}
	}
	if m.Reference != nil {
		files = append(files, m.Reference.Source)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// elements is the number of elements of an array; 1 for a scalar.
func (m *Manifest) elements(a *Argument, dims Dims, toggles map[string]int) (int, error) {
	axes, err := m.ShapeOf(a, dims, toggles)
	if err != nil {
		return 0, fmt.Errorf("shape of argument %s: %w", a.Name, err)
	}
	elements := 1
	for _, length := range axes {
		elements *= length
	}
	return elements, nil
}
