package scaffold

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
)

// words are names and types that authors write, and those that mean something else in a manifest, in an expression, in YAML or in
// Python.
var (
	words = []string{"x", "y", "A", "B", "C", "n", "N", "M", "K", "S", "rows", "cols", "stride", "ld", "offset", "eps", "alpha", "min", "max", "log2", "pow", "in", "and", "or", "not",
		"true", "null", "yes", "no", "on", "off", "y", "None", "lambda", "def", "class", "del", "from", "SMS", "output", "reference", "kernel", "N_", "_x", "__x", "flag", "d_Data", "x_ptr", "idx", "sum",
		"e5", "Infinity", "nan", "is", "pass", "T", "step", "a_very_long_name_of_a_parameter_that_an_author_has_written_in_full_because_it_says_what_it_is_for_x"}
	types = []string{"float", "double", "int", "unsigned", "long long", "size_t", "half", "__half", "__nv_bfloat16", "float4", "uchar4", "int2", "bool", "char", "T", "scalar_t", "Node", "struct params",
		"std::array<int, 4>", "DATA_TYPE", "at::Half", "unsigned long long int", "int8_t", "_Float16", "cutlass::half_t", "const int", "volatile float", "index_t", "cudaTextureObject_t", "dim3", "__nv_fp8_e4m3"}
)

func oneOf(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

// declared is a random parameter as C has it.
func declared(rng *rand.Rand) string {
	t, name := oneOf(rng, types), oneOf(rng, words)
	switch rng.IntN(12) {
	case 0:
		return t + " " + name
	case 1:
		return "const " + t + " *__restrict__ " + name
	case 2:
		return t + " **" + name
	case 3:
		return t + " " + name + "[]"
	case 4:
		return t + " " + name + "[restrict static 4][N]"
	case 5:
		return t + " POLYBENCH_2D(" + name + ",N,M,n,m)"
	case 6:
		return t + " ARRAY(" + name + ")"
	case 7:
		return t + " *"
	case 8:
		return t + " &" + name
	case 9:
		return t + " (*" + name + ")(int)"
	case 10:
		return t + " " + name + " = 4"
	}
	return t + " *" + name
}

func parameters(rng *rand.Rand) string {
	var all []string
	for range rng.IntN([]int{2, 5, 20, 90}[rng.IntN(4)]) {
		all = append(all, declared(rng))
	}
	return strings.Join(all, ", ")
}

func body(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(4) {
		fmt.Fprintf(&b, "  %s[%s * blockDim.x] += %s[threadIdx.%s];\n", oneOf(rng, words), oneOf(rng, words), oneOf(rng, words), oneOf(rng, []string{"x", "y"}))
	}
	return b.String()
}

// A source with a function or a kernel is always described by a manifest that lints: whatever its parameters are called, however
// many they are, and whatever types, macros and templates they have.
func TestInitAlwaysWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	name := func() string {
		return oneOf(rng, append([]string{"scale", "k", "reference", "kernel_2mm", "_f", "min", "while_", "gemm__tn", "y", "null", "reference2"}, words[:6]...))
	}
	templates := []string{"", "", "template <typename T> ", "template <int N = 4, class U> ", "template <typename T, bool causal> ", "template <template <class> class P, int... I> "}
	for _, c := range []struct {
		language string
		draft    func() (*draft, string, error)
	}{
		{"C", func() (*draft, string, error) {
			text := fmt.Sprintf("#include \"common.h\"\n%s%s %s(%s)\n{\n%s}\n", oneOf(rng, templates), oneOf(rng, []string{"void", "static void", "float *", "int", "extern \"C\" void", "static inline int"}), name(), parameters(rng), body(rng))
			d, err := fromC("src/a.c", text, "")
			return d, text, err
		}},
		{"CUDA", func() (*draft, string, error) {
			text := fmt.Sprintf("#define BLOCK %d\n%s__global__ %s void %s(%s) {\n%s}\n", rng.IntN(3000), oneOf(rng, templates), oneOf(rng, []string{"", "__launch_bounds__(256, 2)", "__launch_bounds__(THREADS)", "__launch_bounds__(4096)", "static"}), name(), parameters(rng), body(rng))
			d, err := fromCUDA("src/a.cu", text, "")
			return d, text, err
		}},
		{"Triton", func() (*draft, string, error) {
			f := pythonFunction{Name: name(), Decorators: []string{"triton.jit"}}
			for range rng.IntN([]int{2, 5, 20, 90}[rng.IntN(4)]) {
				p := struct {
					Name       string `json:"name"`
					Annotation string `json:"annotation"`
					Default    any    `json:"default"`
				}{Name: oneOf(rng, append([]string{"BLOCK", "BLOCK_M", "café", "größe"}, words...))}
				if slices.ContainsFunc(f.Parameters, func(o struct {
					Name       string `json:"name"`
					Annotation string `json:"annotation"`
					Default    any    `json:"default"`
				}) bool {
					return o.Name == p.Name
				}) {
					continue // Python refuses it
				}
				p.Annotation = oneOf(rng, []string{"", "", "tl.constexpr", "tl.tensor"})
				p.Default = []any{nil, 1.0, 0.5, true, "silu"}[rng.IntN(5)]
				f.Parameters = append(f.Parameters, p)
				for _, list := range []*[]string{&f.Loads, &f.Stores, &f.Sizes, &f.Heuristics} {
					if rng.IntN(4) == 0 {
						*list = append(*list, p.Name)
					}
				}
			}
			if f.Autotuned = rng.IntN(3) == 0; f.Autotuned && rng.IntN(2) == 0 {
				f.Configurations = []configuration{{Constants: map[string]any{"BLOCK": 64.0, "MODE": "fast"}, Names: []string{"BLOCK", "MODE"}, NumWarps: rng.IntN(40)}}
			}
			d, err := fromTriton("src/a.py", []pythonFunction{f}, "")
			return d, fmt.Sprintf("%+v", f), err
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Join("src", ".git"), 0o755); err != nil {
				t.Fatal(err)
			}
			for range long.Times(300, 5000) {
				d, text, err := c.draft()
				if err == nil {
					_, err = d.scaffold(Options{Paths: []string{"src/a"}})
				}
				if err != nil {
					t.Fatalf("%v\n%.3000s", err, text)
				}
			}
		})
	}
}
