package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// described is a function in a few words.
func described(f function) string {
	text := f.name
	if f.template != "" {
		text += "<" + f.template + ">"
	}
	if f.threads > 0 {
		text += fmt.Sprintf(" of %d threads", f.threads)
	}
	for _, p := range f.parameters {
		access := string(p.access)
		if p.access == manifest.Scalar {
			access = []string{"size", "stride", "switch", "factor", "number"}[p.use]
		}
		text += fmt.Sprintf(", %s %s %s", p.name, access, p.dtype)
		if p.lanes > 0 {
			text += fmt.Sprintf("×%d", p.lanes)
		}
		for _, doubt := range []string{p.guessed, p.doubt} {
			if doubt != "" {
				text += " (" + doubt + ")"
			}
		}
	}
	return text
}

// Declarations as people write them.
func TestKernelsIn(t *testing.T) {
	const source = `
// __global__ void comment(int n) {}
/* __global__ void other_comment(int n) {} */
const char *text = "__global__ void text(int n) {}";
typedef half element;
#define REAL double
__global__ void declared(int n);
__global__ void plain(const float *x, float *y, int n) { y[0] = x[n]; }
extern "C" __global__ __launch_bounds__(256, 2) void bounded(half const *__restrict__ x, __nv_bfloat16* const y, size_t n) { y[0] = 1; }
__global__ void __launch_bounds__(THREADS) macro(float* y) { *y = 1; }
template <typename T, int N = (4)>
static __global__ void templated(const T *x, std::array<int, 4> a, unsigned long long n, void (*f)(int), const bool flag = true) {
}
__global__ void none() {}
__global__ void __launch_bounds__((BM * (BN)) / (TM * TN), 1)
    nested(float *y) { y[0] = 1; }
__global__ void unnamed(float *, int) {}
__global__ void input(float *d_Data, float *d_Result, int N) { d_Result[0] = d_Data[N]; }
__global__ void both(int *sums, element *a, REAL *b, unsigned long long int m) { atomicAdd(&sums[0], 1); a[0] += a[1]; if (b[0] == 1) return; }
__global__ void vectors(float4 *pos, const uchar4 *color, float2 at) { float4 p = pos[0]; pos[1] = p; }
__global__ void cast(float *src, float *dst) { reinterpret_cast<float4 *>(dst)[0] = reinterpret_cast<const float4 *>(src)[0]; }
__global__ void alias(float *p, float *q, int n) { float *from = p + n, *unused; float *to = q; to[0] = from[1]; }
__global__ void passed(float *src, float *output) { run(src, output); }
__global__ void reads(float *x, float *w, int n) { float s = x[0] + w[n]; }
__global__ void scalars(float *y, int stride, int ld, float offset, int offset_in, bool flag, int rows, int cols, int KH) { y[0] = 1; }
`
	want := []string{
		"plain, x in f32, y out f32, n size i32",
		"bounded of 256 threads, x in f16, y out bf16, n size u64",
		"macro, y out f32",
		"templated<typename T, int N = (4)>, x in f32 (the type T is not known here), a number f32 (the type std::array<int, 4> is not known here), n size u64, " +
			"unnamed3 out f32 (the type void ( f)(int) is not known here) (the body does not name it), flag switch bool",
		"none",
		"nested, y out f32",
		"unnamed, unnamed0 out f32 (the body does not name it), unnamed1 size i32",
		"input, d_Data in f32, d_Result out f32, N size i32",
		"both, sums inout i32, a inout f16, b in f64, m size u64",
		"vectors, pos inout f32×4, color in u8×4, at number f32×2",
		"cast, src in f32, dst out f32",
		"alias, p in f32, q out f32, n size i32",
		"passed, src in f32 (the body passes it on), output out f32 (the body passes it on)",
		"reads, x in f32, w out f32 (no array is written that the source shows), n size i32",
		"scalars, y out f32, stride stride i32, ld stride i32, offset number f32, offset_in switch i32, flag switch bool, rows size i32, cols size i32, KH factor i32",
	}
	var got []string
	for _, f := range kernelsIn(source) {
		got = append(got, described(f))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Functions of C files: those that the linker knows and that take an array.
func TestFunctionsIn(t *testing.T) {
	const source = `#include <stddef.h>
static void hidden(float *y, int n) { y[0] = 1; }
int counted(int n) { return n; }
float dot(const float *restrict a, const float *restrict b, size_t n)
{
	float s = 0;
	for (size_t i = 0; i < n; i++) { s += a[i] * b[i]; }
	return s;
}
void saxpy(const int n, const float alpha, const float x[], float y[])
{
	if (n > 0) { y[0] += alpha * x[0]; }
}
extern "C" void __attribute__((noinline)) blur(const unsigned char *src, unsigned char *dst, int width, int height, int pitch) { dst[0] = src[0]; }
int main(int argc, char **argv) { return 0; }
`
	want := []string{
		"dot, a in f32, b out f32 (no array is written that the source shows), n size u64",
		"saxpy, n size i32, alpha number f32, x in f32, y inout f32",
		"blur, src in u8, dst out u8, width size i32, height size i32, pitch stride i32",
	}
	var got []string
	for _, f := range functionsIn(source, false, true) {
		got = append(got, described(f))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A link in the place of a file is replaced itself, and nothing is written where anything exists.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "kernel.yaml")
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	s := Scaffold{Files: []File{{Name: filepath.Join(dir, "new", "reference.py"), Text: "new"}, {Name: link, Text: "new", Exists: true}}}
	if err := s.Write(false); err == nil || !strings.Contains(err.Error(), "nothing was written: "+link+" exists already") || exists(filepath.Join(dir, "new")) {
		t.Error(err)
	}
	if err := s.Write(true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// Whatever a file holds, it is described by a manifest that lints, or refused.
func FuzzCUDA(f *testing.F) {
	f.Add(`template<class T> __global__ void __launch_bounds__(128) k(const T* x, float* y, int n, float eps) {`)
	f.Add(`__global__ void k(*,const,) {`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := fromCUDA("csrc/kernel.cu", text, "")
		if err == nil {
			_, _ = d.scaffold(Options{Paths: []string{"csrc/kernel.cu"}})
		}
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"a","axes":{"N":{"type":"var"}},"inputs":{"x":{"shape":["N"],"dtype":"float16"},"e":{"shape":null,"dtype":"bool"}},"outputs":{"y":{"shape":[],"dtype":"int32"}},"reference":"def run(x): return x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := fromDefinition("a.json", text, nil)
		if err == nil {
			_, _ = d.scaffold(Options{Paths: []string{"a.json"}})
		}
	})
}

// A file of a CUDA extension gets PyTorch's headers and flags, a grid of one axis stays within CUDA's limits, a package's imports
// are skipped, and a static function is better than none.
func TestInitOfPublicFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"ext/norm.cu":         "#include <torch/extension.h>\n__global__ void norm(const float *x, float *y, int n) { y[blockIdx.x * blockDim.x + threadIdx.x] = x[n]; }\n",
		"flat/stencil.cu":     "__global__ void stencil(float *x_new, float *x_old) { x_new[threadIdx.y] = x_old[threadIdx.x]; }\n",
		"c/gemm.c":            "static void kernel_gemm(int n, double alpha, double C[], double A[])\n{\n  C[0] = alpha * A[n];\n}\nint main(void) { return 0; }\n",
		"c/stencil.c":         "static\nint init(int n) { return n; }\nstatic void kernel_stencil(int n, DATA_TYPE POLYBENCH_2D(A,N,N,n,n), DATA_TYPE POLYBENCH_1D(B,N,n))\n{\n  B[0] = A[0][n];\n}\n",
		"pkg/__init__.py":     "from .ops import add\n",
		"pkg/ops/__init__.py": "",
		"pkg/ops/add.py":      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef add(x, y, n, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"ext/norm.cu":     "include: [<torch>, <python>]\nflags: [-O3, -std=c++17, --expt-relaxed-constexpr, ",
		"flat/stencil.cu": "launch: {grid: [\"ceildiv(N, 256)\"], block: [16, 16]}",
		"c/gemm.c":        "entry: kernel_gemm # TODO: it is static",
		"c/stencil.c":     "  - {name: A, dtype: f32, access: in, shape: [n]} # TODO: its shape; the type DATA_TYPE is not known here; POLYBENCH_2D is a macro that is not known here",
		"pkg/ops/add.py":  "skip_init: [pkg] # TODO: the kernel does not need what these packages import",
	} {
		s, err := Look(t.Context(), Options{Paths: []string{filepath.Join(dir, file)}, Getenv: os.Getenv})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !slices.ContainsFunc(s.Files, func(f File) bool { return strings.Contains(f.Text, want) }) {
			t.Errorf("%s: no %q in\n%s", file, want, s.Files[0].Text)
		}
	}
}
