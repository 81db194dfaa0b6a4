package entryname

import (
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// The names as torch and nsys write them, and the entries of manifests.
func TestDemangled(t *testing.T) {
	for _, e := range []struct {
		trace, entry string
		match        bool
	}{
		{"scale(float*, int)", "scale", true},
		{"scale", "scale", true},
		{"void scale<(int)64, (bool)1>(float *, float const *, int)", "scale<64, true>", true},
		{"void scale<64, true>(float*, float const*, int)", "scale<64, true>", true},
		{"void scale<64, false>(float*, float const*, int)", "scale<64, true>", false},
		{"void scale<(int)64, (bool)0>(float *)", "scale<64, false>", true},
		{"void ns::scale<64>(float*)", "ns::scale<64>", true},
		{"void ns::scale<64>(float*)", "scale<64>", false},
		{"void (anonymous namespace)::scale(float*, int)", "scale", true},
		{"scale(float*, float const*, int)", "scale(float*, const float*, int)", true},
		{"scale(double*, double const*, int)", "scale(float*, const float*, int)", false},
		{"_ZN2ns5scaleEPfi", "ns::scale", true},
		{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)", "scale", false},
		{"upscale(float*, int)", "scale", false},
		{")", "scale", false},
		{"(", "scale", false},
	} {
		entry, err := manifest.ParseEntry(e.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(Match(entry, []Name{Demangled(e.trace)})) == 1; got != e.match {
			t.Errorf("%q is %q: %v, want %v", e.trace, e.entry, got, e.match)
		}
	}
}

func FuzzDemangled(f *testing.F) {
	for _, name := range []string{"void scale<(int)64, (bool)1>(float *)", ")(", "a<b>c", "_Z", "(anonymous namespace)::f(int)"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if n := Demangled(name); n.Symbol != name {
			t.Errorf("%q became %q", name, n.Symbol)
		}
	})
}
