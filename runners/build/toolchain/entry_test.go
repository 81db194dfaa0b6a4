package toolchain

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// awkward is a folder with kernels as real repositories have them.
func awkward(t *testing.T) string {
	t.Helper()
	return folder(t, map[string]string{"awkward.cu": read(t, "testdata/awkward.cu")})
}

// longEntry is a kernel with the template arguments of a tiled matrix product; its mangled name has more than 333 characters.
const longEntry = "gemm<shapes::tuple<int, int, int>, shapes::Tile, shapes::Atom<128, 64>, shapes::Atom<256, 32>, float>"

func TestEntriesByTheirNames(t *testing.T) {
	c := keptCUDA(t)
	kernels := []struct {
		entry, symbol, name string
		params              []Param
	}{
		{"scale(float*, const float*, int)", "_Z5scalePfPKfi", "scale(float*, float const*, int)", []Param{{0, 8}, {8, 8}, {16, 4}}},
		{"attn::detail::combine", "_ZN4attn6detail7combineEPfPKfi", "attn::detail::combine(float*, float const*, int)", []Param{{0, 8}, {8, 8}, {16, 4}}},
		{"attn::forward<64, true>", "_ZN4attn7forwardILi64ELb1EEEvNS_6ParamsE", "attn::forward<64, true>(attn::Params)", []Param{{0, 64}}},
		{"::attn::forward<0x80>", "_ZN4attn7forwardILi128ELb0EEEvNS_6ParamsE", "attn::forward<128, false>(attn::Params)", []Param{{0, 64}}},
		{"attn::masked<attn::Mask::None>", "_ZN4attn6maskedILNS_4MaskE0EEEvPf", "attn::masked<(attn::Mask)0>(float*)", []Param{{0, 8}}},
		{"attn::masked<attn::Mask::Causal>", "_ZN4attn6maskedILNS_4MaskE1EEEvPf", "attn::masked<(attn::Mask)1>(float*)", []Param{{0, 8}}},
		{"scale<half>", "_Z5scaleI6__halfEvPT_PKS1_S1_j", "scale<__half>(__half*, __half const*, __half, unsigned int)", []Param{{0, 8}, {8, 8}, {16, 2}, {20, 4}}},
		{"scale(double*, double const *, double, unsigned)", "_Z5scaleIdEvPT_PKS0_S0_j", "scale<double>(double*, double const*, double, unsigned int)", []Param{{0, 8}, {8, 8}, {16, 8}, {24, 4}}},
		{"dequantize", "_Z10dequantizePK8block_q4Pf5uint36float4sb", "dequantize(block_q4 const*, float*, uint3, float4, short, bool)", []Param{{0, 8}, {8, 8}, {16, 12}, {32, 16}, {48, 2}, {50, 1}}},
		{"hidden<7>", "6hiddenILi7EEEvPf", "hidden<7>(float*)", []Param{{0, 8}}},
		{longEntry, "_Z4gemm", "gemm<shapes::tuple<int, int, int>, shapes::tuple<shapes::C<128>, ", []Param{{0, 1}, {1, 1}, {8, 8}, {16, 1}, {24, 8}, {32, 1}, {40, 8}, {48, 4}}},
	}
	for _, arch := range []string{"sm_89", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			b := NVCCBuild{Dir: awkward(t), Source: "awkward.cu", Arch: arch}
			for _, k := range kernels {
				b.Entries = append(b.Entries, k.entry)
			}
			cubin := mustBuild(t, c, b)
			for i, want := range kernels {
				got := cubin.Kernels[i]
				if !strings.Contains(got.Symbol, want.symbol) || !strings.HasPrefix(got.Name, want.name) || got.CodeSize == 0 || got.Usage.Registers == nil || got.Line == 0 {
					t.Errorf("%s: found %+v", want.entry, got)
				}
				if !slices.Equal(got.Params, want.params) {
					t.Errorf("%s: parameters %v, want %v", want.entry, got.Params, want.params)
				}
			}
			if long := cubin.Kernels[len(kernels)-1].Symbol; len(long) < 333 {
				t.Errorf("%s has only %d characters", long, len(long))
			}
		})
	}
}

func TestEntriesThatAreNotThere(t *testing.T) {
	c := keptCUDA(t)
	dir := folder(t, map[string]string{"k.cu": "namespace attn { namespace detail { __global__ void combine(float* y, const float* x, int n) { y[0] = x[n]; } }\n" +
		"template <int D> __global__ void forward(float* y) { y[0] = D; } }\n" +
		"__global__ void scale(float* y, int n) { y[n] = 2; }\n__global__ void scale(int* y, int n) { y[n] = 2; }\n"})
	for name, test := range map[string]struct {
		entry string
		want  []string
	}{
		"several":        {"scale", []string{"k.cu has 2 kernels scale: write one of them as the entry: scale(int*, int); scale(float*, int)"}},
		"misspelt":       {"attn::detail::combin", []string{"k.cu has no kernel attn::detail::combin: write the entry as one of these, or define it: attn::detail::combine(float*, float const*, int); scale("}},
		"without scope":  {"combine", []string{"k.cu has no kernel combine: ", "define it: attn::detail::combine(float*, float const*, int); "}},
		"an overload":    {"scale(short*, int)", []string{"k.cu has no kernel scale(short*, int): ", "define it: scale(", "(the compiler: no instance of "}},
		"a template":     {"attn::backward<64>", []string{"k.cu has no kernel attn::backward<64>: ", "(the compiler: ", "backward"}},
		"of no argument": {"attn::forward", []string{"k.cu has no kernel attn::forward: "}},
	} {
		t.Run(name, func(t *testing.T) {
			mustRefuseBuild(t, c, NVCCBuild{Dir: dir, Source: "k.cu", Entries: []string{test.entry}, Arch: "sm_89"}, test.want...)
		})
	}
}

// The author's source can turn the words of ours into others by macros, or leave them half in a scope of its own: that makes
// nothing run that the source could not have launched itself, or the build is refused.
func TestHostileSourcesAroundAnEntry(t *testing.T) {
	c := keptCUDA(t)
	const kernel = "template <int N> __global__ void k(float* x) { x[0] = N; }\n__global__ void other(float* x) { x[0] = -1; }\n"
	for name, test := range map[string]struct{ before, after, want string }{
		"a macro of the name":        {"", "#define k other\n", "k.cu has no kernel k<64>: "},
		"a macro of ours":            {"", "#define kernelgate_entry(...)\n#define decltype(x) int\n", "k.cu has no kernel k<64>"},
		"an open scope":              {"", "namespace evil {\n", "named no error"},
		"an error when instantiated": {"template <int N> struct S { static_assert(N < 64, \"too large\"); static constexpr int v = N; };\ntemplate <int N> __global__ void k(float* x, int) { x[0] = S<N>::v; }\n#define k unused\n", "#undef k\n", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NVCCBuild{Dir: folder(t, map[string]string{"k.cu": test.before + kernel + test.after}), Source: "k.cu", Entries: []string{"k<64>"}, Arch: "sm_89"}
			mustRefuseBuild(t, c, b, test.want)
		})
	}
}

// A marker of the source's own makes the compiler's word worth nothing; the kernel's name counts still.
func TestForgedMarker(t *testing.T) {
	c := keptCUDA(t)
	b := NVCCBuild{Dir: folder(t, map[string]string{"k.cu": "template <int N> __global__ void k(float* x) { x[0] = N; }\n__global__ void other(float* x) { x[0] = -1; }\n" +
		"template <int number, typename T, T kernel> __global__ void kernelgate_entry();\n" +
		"template <> __global__ void kernelgate_entry<0, void (*)(float*), &other>() {}\n"}), Source: "k.cu", Entries: []string{"k<64>"}, Arch: "sm_89"}
	if k := mustBuild(t, c, b).Kernels[0]; k.Name != "k<64>(float*)" {
		t.Errorf("found %+v", k)
	}
}

func TestFunctionNames(t *testing.T) {
	for _, test := range []struct{ symbol, text, bare string }{
		{"_Z4sdpaPKhPKiPfd", "sdpa(unsigned char const*, int const*, float*, double)", "sdpa"},
		{"spill", "spill", "spill"},
		{"_Z5scaleILi64EfEvPT0_f", "scale<64, float>(float*, float)", "scale"},
		{"_ZN4attn4sdpaEPf", "attn::sdpa(float*)", "attn::sdpa"},
		{"_ZN4TileILi64EN3cub4SumTEE3runEPf", "Tile<64, cub::SumT>::run(float*)", "Tile::run"},
		{"_ZN12_GLOBAL__N_14sdpaEPf", "sdpa(float*)", "sdpa"},
		{"_ZN40_GLOBAL__N__eef29615_8_entry_cu_eb637c924anonILi64EEEvPf", "anon<64>(float*)", "anon"},
		{"_ZL4sdpaPf", "sdpa(float*)", "sdpa"},
		{"_ZN1AIXadL_Z1gvEEE1fEv", "A<&g>::f()", "A::f"},
		{"_ZN1AILN1B1CE1EE1fEv", "A<(B::C)1>::f()", "A::f"},
		{"_Z99sdpa", "_Z99sdpa", "_Z99sdpa"},
		{"_Z", "_Z", "_Z"},
		{"_ZN4attn", "_ZN4attn", "_ZN4attn"},
		{"", "", ""},
	} {
		if got := entryname.Parse(test.symbol); got.Text != test.text || got.Bare != test.bare {
			t.Errorf("%s: %q, %q, want %q, %q", test.symbol, got.Text, got.Bare, test.text, test.bare)
		}
	}
}

// A short symbol can stand for a name without end; it stays what it is, in little time and memory.
func TestNamesWithoutEnd(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("_Z1fI1aE")
	bomb.WriteString("vN1bI1aS0_E")
	seq := []string{"S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "S8_", "S9_"}
	for range 200 {
		for _, s := range seq {
			bomb.WriteString("1pI" + s + s + "E")
		}
	}
	for _, symbol := range []string{bomb.String(), "_Z1f" + strings.Repeat("P", 16000) + "i", "_Z1f" + strings.Repeat("1aI", 5000) + strings.Repeat("E", 5000), "_Z" + strings.Repeat("N", 15000)} {
		n := entryname.Parse(symbol)
		if len(n.Text) > 2<<entryname.MaxDemangled {
			t.Errorf("a symbol of %d bytes became a name of %d", len(symbol), len(n.Text))
		}
	}
}

func FuzzFunctionName(f *testing.F) {
	f.Add("_ZN4attn7forwardILi64ELb1EEEvNS_6ParamsE", "attn::forward<64, true>")
	f.Add("_Z16kernelgate_entryILi0EPFvPfEXadL_Z8internalS0_EEEvv", "internal(float*)")
	f.Fuzz(func(t *testing.T, symbol, entry string) {
		n := entryname.Parse(symbol)
		if len(n.Text) > len(symbol)+2<<entryname.MaxDemangled {
			t.Errorf("%q has a text of %d bytes", symbol, len(n.Text))
		}
		e, err := manifest.ParseEntry(entry)
		if err != nil {
			return
		}
		entryname.Match(e, []entryname.Name{n})
		entryname.List(e, []entryname.Name{n})
		markerOf(n)
	})
}

// Kernels that stand in a header are compiled from there, with or without an instance that somebody has to ask for.
func TestEntriesOfAHeader(t *testing.T) {
	c := keptCUDA(t)
	dir := folder(t, map[string]string{"k.cuh": "#pragma once\n__global__ void plain(float* x) { x[0] = 1; }\ntemplate <int N> __global__ void made(float* x) { x[0] = N; }\n"})
	for _, entry := range []string{"plain", "made<3>"} {
		cubin := mustBuild(t, c, NVCCBuild{Dir: dir, Source: "k.cuh", Entries: []string{entry}, Arch: "sm_89"})
		if k := cubin.Kernels[0]; k.CodeSize == 0 || !slices.Equal(k.Params, []Param{{0, 8}}) {
			t.Errorf("%s: %+v", entry, k)
		}
	}
}
