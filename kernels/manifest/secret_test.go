package manifest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rangeOf reads a range the way a manifest's is read.
func rangeOf(t *testing.T, text string) Range {
	t.Helper()
	m, err := Parse("kernel.yaml", []byte("version: 1\nname: x\nmode: command\ncommand: {build: [a], bench: [b]}\nshapes: {a: {N: 1}}\nsecret: {N: "+text+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Secret["N"]
}

func TestRange(t *testing.T) {
	for _, tt := range []struct {
		text     string
		in, out  []int
		min, max int
	}{
		{"64", []int{64}, []int{0, 63, 65}, 64, 64},
		{"1..4096", []int{1, 2, 4096}, []int{0, 4097}, 1, 4096},
		{"64|128", []int{64, 128}, []int{63, 96, 129}, 64, 128},
		{"1..4096 step 2", []int{1, 3, 4095}, []int{2, 4096}, 1, 4095},
		{"128 | 2..8 step 3", []int{2, 5, 8, 128}, []int{3, 7, 127}, 2, 128},
	} {
		t.Run(tt.text, func(t *testing.T) {
			r := rangeOf(t, tt.text)
			same(t, "min and max", []int{r.least(), r.most()}, []int{tt.min, tt.max})
			same(t, "text", r.String(), tt.text)
			for _, v := range tt.in {
				same(t, fmt.Sprint(v, " is in it"), r.Contains(v), true)
			}
			for _, v := range tt.out {
				same(t, fmt.Sprint(v, " is in it"), r.Contains(v), false)
			}
		})
	}
}

func TestRangeWithin(t *testing.T) {
	for _, tt := range []struct {
		inner, outer string
		want         bool
	}{
		{"1..10", "1..10", true},
		{"1..11", "1..10", false},
		{"2..10 step 4", "2..10 step 2", true},
		{"2..10 step 3", "2..10 step 2", false},
		{"2..10", "2..10 step 2", false},
		{"3", "2..10 step 2", false},
		{"4|8", "2..10 step 2", true},
		{"1..4096", "64|128", false},
		{"64|128", "1..4096", true},
		{"5..6 step 9", "5..9 step 2", true},
	} {
		if got := rangeOf(t, tt.inner).within(rangeOf(t, tt.outer)); got != tt.want {
			t.Errorf("%s within %s: %v, want %v", tt.inner, tt.outer, got, tt.want)
		}
	}
}

// Random ranges over three dims: what is drawn lies within them, is the same
// for the same seed, and is ragged where it can be; of few values all are drawn.
func TestDrawSecret(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 17))
	for range 150 {
		texts := []string{randomRange(rng), randomRange(rng), randomRange(rng)}
		manifest := fmt.Sprintf("version: 1\nname: x\nmode: command\ncommand: {build: [a], bench: [b]}\n"+
			"shapes: {first: {A: 7, B: 1, C: 1, F: 24}, other: {A: 8, B: 2, C: 2, F: 48}}\nsecret: {C: %s, A: %s, B: %s}\n", texts[2], texts[0], texts[1])
		m, err := Parse("kernel.yaml", []byte(manifest))
		if err != nil {
			t.Fatalf("%v\n%s", err, manifest)
		}
		seed := rng.Uint64()
		n := 1 + rng.IntN(6)
		shapes := m.DrawSecret("default", rand.New(rand.NewPCG(seed, 0)), n)
		same(t, "drawn again", m.DrawSecret("default", rand.New(rand.NewPCG(seed, 0)), n), shapes)
		same(t, "number", len(shapes), n)
		for i, s := range shapes {
			same(t, "name", s.Name, fmt.Sprintf("secret%d", i+1))
			same(t, "dims", s.Dims.Names(), []string{"A", "B", "C", "F"})
			for _, dim := range s.Dims {
				r, drawn := m.Secret[dim.Name]
				switch {
				case !drawn && dim.Value != 24:
					t.Errorf("%s: %s is not the first shape's", s, dim.Name)
				case drawn && !r.Contains(dim.Value):
					t.Errorf("%s: %s is outside %s", s, dim.Name, r)
				}
			}
		}
		for name, r := range m.Secret {
			if values := r.few(fewValues); values != nil {
				dealt(t, values, shapes, name)
				continue
			}
			mustHave(t, r, shapes, name, "odd size", func(v int) bool { return v%2 != 0 })
			mustHave(t, r, shapes, name, "size that is no multiple of 16", func(v int) bool { return v%16 != 0 })
		}
	}
}

// dealt: every value has come as often as any other, or once more.
func dealt(t *testing.T, values []int, shapes []Shape, dim string) {
	t.Helper()
	times := map[int]int{}
	for _, s := range shapes {
		v, _ := s.Dims.Get(dim)
		times[v]++
	}
	for _, v := range values {
		if least := len(shapes) / len(values); times[v] < least || times[v] > least+1 {
			t.Errorf("%s = %d comes %d times among %v, want %d or one more", dim, v, times[v], shapes, least)
		}
	}
}

func mustHave(t *testing.T, r Range, shapes []Shape, dim, what string, is func(int) bool) {
	t.Helper()
	possible := false
	for v := r.least(); v <= r.most(); v++ {
		possible = possible || r.Contains(v) && is(v)
	}
	has := slices.ContainsFunc(shapes, func(s Shape) bool { v, _ := s.Dims.Get(dim); return is(v) })
	if possible && !has {
		t.Errorf("%s in %s: no %s among %v", dim, r, what, shapes)
	}
}

func randomRange(rng *rand.Rand) string {
	var parts []string
	for range 1 + rng.IntN(3) {
		first := 1 + rng.IntN(100)
		switch rng.IntN(4) {
		case 0:
			parts = append(parts, fmt.Sprint(first))
		case 1:
			parts = append(parts, fmt.Sprintf("%d..%d", first, first+rng.IntN(300)))
		case 2:
			parts = append(parts, fmt.Sprintf("%d..%d step %d", first, first+rng.IntN(300), 1+rng.IntN(40)))
		case 3:
			parts = append(parts, fmt.Sprintf("%d..%d step 16", first*16, first*16+rng.IntN(300)))
		}
	}
	return strings.Join(parts, "|")
}
