package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Declarations as people write them.
func TestKernelsIn(t *testing.T) {
	const source = `
// __global__ void comment(int n) {}
/* __global__ void other_comment(int n) {} */
const char *text = "__global__ void text(int n) {}";
__global__ void declared(int n);
__global__ void plain(const float *x, float *y, int n) { }
extern "C" __global__ __launch_bounds__(256, 2) void bounded(half const *__restrict__ x, __nv_bfloat16* const y, size_t n) {}
__global__ void __launch_bounds__(THREADS) macro(float* y) {}
template <typename T, int N = (4)>
static __global__ void templated(const T *x, std::array<int, 4> a, unsigned long long n, void (*f)(int), const bool flag = true) {
}
__global__ void none() {}
__global__ void unnamed(float *, int) {}
`
	want := []cudaKernel{
		{name: "plain", parameters: []parameter{{"x", manifest.F32, "", manifest.In}, {"y", manifest.F32, "", manifest.Out}, {"n", manifest.I32, "", manifest.Scalar}}},
		{name: "bounded", threads: 256, parameters: []parameter{{"x", manifest.F16, "", manifest.In}, {"y", manifest.BF16, "", manifest.Out}, {"n", manifest.U64, "", manifest.Scalar}}},
		{name: "macro", parameters: []parameter{{"y", manifest.F32, "", manifest.Out}}},
		{name: "templated", template: true, parameters: []parameter{
			{"x", manifest.F32, "the type T is not known here", manifest.In}, {"a", manifest.F32, "the type std::array<int, 4> is not known here", manifest.Scalar},
			{"n", manifest.U64, "", manifest.Scalar}, {"unnamed3", manifest.F32, "the type void ( f)(int) is not known here", manifest.Out}, {"flag", manifest.Bool, "", manifest.Scalar},
		}},
		{name: "none"},
		{name: "unnamed", parameters: []parameter{{"unnamed0", manifest.F32, "", manifest.Out}, {"unnamed1", manifest.I32, "", manifest.Scalar}}},
	}
	if diff := cmp.Diff(want, kernelsIn(source), cmp.AllowUnexported(cudaKernel{}, parameter{})); diff != "" {
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
