package cpu

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A kernel that is called with something else than it takes runs all the same, and computes nonsense. The candidate's parameters
// are held against the manifest where they are certain; what may be meant is accepted.
func TestKernelTakesWhatItIsPassed(t *testing.T) {
	const (
		head = "#include <stdint.h>\n"
		body = " { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
		good = head + "void f(const float *x, float *y, int32_t n, float eps)" + body
		ref  = head + "void r(const double *x, double *y, int32_t n, float eps) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
		text = `version: 1
name: f
mode: cpu
entry: f
source: f.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
  - {name: eps, dtype: f32, access: scalar, value: 1}
reference: {source: r.c, entry: r}
tolerance: {abs: 1e-6}
shapes: {one: {N: 64}}
`
	)
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  correctness: {seeds: [0], norm_error: \"<= 90%\"}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, manifest, source, says string }{
		{"as declared", text, good, ""},
		{"without const, with restrict", text, head + "void f(float *restrict x, float *restrict y, const int n, const float eps)" + body, ""},
		{"by other names", text, "typedef float real;\n#define SIZE int\nvoid f(const real *x, real *y, SIZE n, real eps)" + body, ""},
		{"unsigned", text, head + "void f(const float *x, float *y, uint32_t n, float eps) { for (uint32_t i = 0; i < n; i++) y[i] = 2 * x[i]; }\n", ""},
		{"untyped pointers", text, head + "void f(const void *a, void *b, int32_t n, float eps) { const float *x = a; float *y = b; for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n", ""},
		{"bits", text, head + "#include <string.h>\nvoid f(const uint32_t *a, uint32_t *b, int32_t n, float eps) { const float *x = (const float *)a; float *y = (float *)b; for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n", ""},
		{"a warning of its own", text, head + "static int z;\nvoid f(const float *x, float *y, int32_t n, float eps) { const int *p = (const int *)&z; (void)p; for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n", ""},
		{"a double for a float", text, head + "void f(const float *x, float *y, int32_t n, double eps)" + body,
			"f.c: the kernel f does not take what the manifest passes: its parameter 4 is double, and eps (arguments[3]) is float; declare it as void f(const float *x, float *y, int32_t n, float eps), or correct the manifest"},
		{"a wide integer", text, head + "void f(const float *x, float *y, int64_t n, float eps)" + body, "its parameter 3 is long int, and n (arguments[2]) is int32_t"},
		{"an integer for a float", text, head + "void f(const float *x, float *y, int32_t n, int eps)" + body, "its parameter 4 is int, and eps (arguments[3]) is float"},
		{"arrays of doubles", text, head + "void f(const double *x, double *y, int32_t n, float eps) { y[0] = x[0] + n; }\n", "its parameter 1 is const double *, and x (arguments[0]) is const float *"},
		{"a number for an array", text, head + "void f(float x, float *y, int32_t n, float eps) { y[0] = x + n; }\n", "its parameter 1 is float, and x (arguments[0]) is const float *"},
		{"one too few", text, head + "void f(const float *x, float *y, int32_t n)" + body, "it has 3 parameters and the manifest 4; the first that is missing is eps (float, arguments[3])"},
		{"one too many", text, head + "void f(const float *x, float *y, int32_t n, float eps, int more)" + body, "it has 5 parameters and the manifest 4; its parameter 5, int, is passed nothing"},
		{"half floats", strings.ReplaceAll(text, "dtype: f32, access: in", "dtype: f16, access: in"), head + "void f(const _Float16 *x, float *y, int32_t n, float eps) { for (int i = 0; i < n; i++) y[i] = 2 * (float)x[i]; }\n", ""},
		{"in C++", strings.ReplaceAll(text, "f.c\n", "f.cc\n"), "extern \"C\" void f(const float *x, float *y, int n, float eps)" + body, ""},
		{"in C++, a double for a float", strings.ReplaceAll(text, "f.c\n", "f.cc\n"), "extern \"C\" void f(const float *x, float *y, int n, double eps)" + body, "its parameter 4 is double, and eps (arguments[3]) is float"},
		{"in C++, a template", strings.NewReplacer("f.c\n", "f.cc\n", "entry: f\n", "entry: g<float>\n").Replace(text), "template <class T> void g(const T *x, T *y, int n, T eps)" + body + "template void g<float>(const float *, float *, int, float);\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Parse("kernel.yaml", []byte(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			file := m.Variants[0].Source
			base := good
			if file != "f.c" || m.Entry != "f" {
				base = strings.ReplaceAll(c.source, "double eps", "float eps") + "int other;\n"
			} else if strings.Contains(c.manifest, "f16") {
				base = c.source + "int other;\n"
			}
			e := gatherFiles(t, m, p, map[string]string{"base/" + file: base, "base/r.c": ref, "head/" + file: c.source})
			v := gates.Judge(p, "p.yaml", e)
			switch {
			case c.says == "" && v.Outcome != gates.Pass:
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			case c.says != "" && (v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, c.says)):
				t.Errorf("%s (%s): %s, want %q", v.Outcome, v.Reason, v.Summary, c.says)
			}
		})
	}
}

// A kernel that keeps state gives the same bits in every fresh process. Nobody is sent to look for a race.
func TestKeptStateIsNoRace(t *testing.T) {
	const text = `version: 1
name: f
mode: cpu
entry: f
source: f.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: r.c, entry: r}
tolerance: {abs: 1e-6}
shapes: {one: {N: 64}}
`
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  correctness: {seeds: [0], norm_error: \"<= 90%\", determinism: true}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		right = "void f(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
		keeps = "void f(const float *x, float *y, int n) { static float kept; for (int i = 0; i < n; i++) y[i] = 2 * x[i]; y[0] += kept; kept = 1; }\n"
		ref   = "void r(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
	)
	e := gatherFiles(t, m, p, map[string]string{"base/f.c": right, "base/r.c": ref, "head/f.c": keeps})
	v := gates.Judge(p, "p.yaml", e)
	if advice := strings.Join(v.ToPass, "; "); v.Outcome != gates.Defer || !strings.Contains(v.Summary, "what the kernel kept of an earlier launch") || strings.Contains(advice, "race") || strings.Contains(advice, "look for") {
		t.Errorf("%s: %s (to pass: %s)", v.Outcome, v.Summary, advice)
	}
}
