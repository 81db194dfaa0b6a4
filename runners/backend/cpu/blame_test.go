package cpu

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// What fails on both sides is not blamed on the change, and what was wrong before is
// said to have been.
func TestBlame(t *testing.T) {
	const (
		head  = "#include <stdint.h>\n"
		right = head + "void f(const float *x, float *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
		other = head + "void f(const float *x, float *y, int32_t n) { for (int i = n; i-- > 0;) y[i] = x[i] + x[i]; }\n"
		ref   = head + "void r(const double *x, double *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
		// Wrong in the last element of odd sizes.
		tail      = head + "void f(const float *x, float *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = n % 2 && i == n - 1 ? 0 : 2 * x[i]; }\n"
		otherTail = head + "void f(const float *x, float *y, int32_t n) { for (int i = n; i-- > 0;) y[i] = n % 2 && i == n - 1 ? 0 : x[i] + x[i]; }\n"
		beyond    = head + "void f(const float *x, float *y, int32_t n) { float s = 0; for (int i = 0; i <= n; i++) s += x[i]; for (int i = 0; i < n; i++) y[i] = 2 * x[i] + (s > 1e30f); }\n"
		further   = head + "void f(const float *x, float *y, int32_t n) { float s = 0; for (int i = n; i >= 0; i--) s += x[i]; for (int i = 0; i < n; i++) y[i] = x[i] + x[i] + (s > 1e30f); }\n"
	)
	for _, c := range []struct {
		name, base, head, reference string
		manifest                    func(string) string
		outcome                     gates.Outcome
		reason                      gates.Reason
		says                        []string
	}{
		{"the reference does not compile", right, other, "#include <stdint.h>\n\nvoid r(const double *x, double *y, int32_t n) { y[0] = factor * x[0] + n; }\n", nil,
			gates.Error, gates.ReasonSetup, []string{"The setup is at fault, not the change", "the reference r.c of the base does not compile: r.c:3: 'factor' undeclared"}},
		{"the reference does not link", right, other, head + "double more(double);\nvoid r(const double *x, double *y, int32_t n) { y[0] = more(x[0]) + n; }\n", nil,
			gates.Error, gates.ReasonSetup, []string{"The setup is at fault, not the change", "r.c", "more"}},
		{"the reference has another entry", right, other, strings.Replace(ref, "void r(", "void reference(", 1), nil,
			gates.Error, gates.ReasonSetup, []string{"The setup is at fault, not the change", "r.c", "r"}},
		{"the reference takes another type", right, other, strings.Replace(ref, "double *y", "float *y", 1), nil,
			gates.Error, gates.ReasonSetup, []string{"the reference r.c of the base does not take what the manifest passes: its parameter 2 is float *, and y (arguments[1]) is double *; declare it as void r(const double *x, double *y, int32_t n);"}},
		{"the reference takes another integer", right, other, strings.Replace(ref, "int32_t n", "int64_t n", 1), nil,
			gates.Error, gates.ReasonSetup, []string{"its parameter 3 is int64_t, and n (arguments[2]) is int32_t"}},
		{"the reference takes one too few", right, other, head + "void r(const double *x, double *y) { y[0] = x[0]; }\n", nil,
			gates.Error, gates.ReasonSetup, []string{"it has 2 parameters and the manifest 3; the first that is missing is n (int32_t, arguments[2])"}},
		{"the reference takes one too many", right, other, strings.Replace(ref, "int32_t n)", "int32_t n, int32_t m)", 1), nil,
			gates.Error, gates.ReasonSetup, []string{"it has 4 parameters and the manifest 3; its parameter 4, int32_t, is passed nothing"}},
		{"the reference takes them in another order", right, other, head + "void r(double *y, const double *x, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n", nil,
			gates.Error, gates.ReasonSetup, []string{"its parameter 1 is double *, and x (arguments[0]) is const double *; declare it as void r(const double *x, double *y, int32_t n);"}},
		{"the reference returns something", right, other, strings.Replace(ref, "void r(", "int r(", 1), nil,
			gates.Error, gates.ReasonSetup, []string{"does not take what the manifest passes", "declare it as void r(const double *x, double *y, int32_t n);"}},
		{"the reference writes where nobody reads", right, other, strings.Replace(ref, "const double *x", "double *x", 1), nil,
			gates.Pass, "", nil},
		{"the reference crashes", right, other, head + "void r(const double *x, double *y, int32_t n) { *(volatile int *)0 = n; y[0] = x[0]; }\n", nil,
			gates.Error, gates.ReasonSetup, []string{"the reference r.c of the base failed: the kernel crashed: segmentation fault"}},
		{"the manifest has another dtype", right, other, ref, func(m string) string { return strings.Replace(m, "y, dtype: f32", "y, dtype: f64", 1) },
			gates.Error, gates.ReasonSetup, []string{"the kernel f does not take what the manifest passes, neither at the base nor at the head: its parameter 2 is float *, and y (arguments[1]) is double *; declare it as void f(const float *x, double *y, int32_t n), or correct the manifest"}},
		{"the manifest has a narrower dtype", right, other, ref, func(m string) string { return strings.Replace(m, "y, dtype: f32", "y, dtype: f16", 1) },
			gates.Error, gates.ReasonSetup, []string{"Baseline and candidate are both wrong in every case", "the kernel wrote outside its arguments"}},
		{"neither has the source", right, other, ref, func(m string) string { return strings.Replace(m, "source: f.c\n", "source: g.c\n", 1) },
			gates.Error, gates.ReasonSetup, []string{"Neither the baseline nor the candidate builds, for the same reason", "g.c: No such file"}},
		{"the base does not compile", "int f(\n", other, ref, nil,
			gates.Error, gates.ReasonSetup, []string{"The baseline does not build on this runner: f.c:"}},
		{"both do not compile, each its own way", "int f(\n", head + "void f(const float *x, float *y, int32_t n) { y[0] = nothing * x[0] + n; }\n", ref, nil,
			gates.Defer, gates.ReasonBuild, []string{"The candidate does not build: f.c:2: 'nothing' undeclared"}},
		{"an old mistake", tail, otherTail, ref, nil,
			gates.Pass, "", []string{"Every required gate passed. Not everything is right: 1 of 2 cases fail as before."}},
		{"a new mistake", right, otherTail, ref, nil,
			gates.Defer, gates.ReasonCorrectness, []string{"wrong in 1 of 2 cases; first: odd, seed 0, normal inputs: 1 of 63 elements"}},
		{"an old read beyond the array", beyond, further, ref, nil,
			gates.Pass, "", []string{"Every required gate passed. Not everything is right: 1 sanitizer finding as before."}},
		{"a new read beyond the array", right, further, ref, nil,
			gates.Defer, gates.ReasonCorrectness, []string{"memcheck: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := `version: 1
name: f
mode: cpu
entry: f
flags: [-O1]
source: f.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
reference: {source: r.c, entry: r}
tolerance: {abs: 1e-6}
shapes: {even: {N: 64}, odd: {N: 63}}
`
			if c.manifest != nil {
				text = c.manifest(text)
			}
			m, err := manifest.Parse("kernel.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse("p.yaml", []byte(`version: 1
gates:
  correctness: {seeds: [0], norm_error: "<= 90%"}
  sanitize: {shapes: first, secret_cases: 0, tools: [memcheck]}
rules:
  - name: default
`))
			if err != nil {
				t.Fatal(err)
			}
			e := gatherFiles(t, m, p, map[string]string{"base/f.c": c.base, "base/r.c": c.reference, "head/f.c": c.head})
			v := gates.Judge(p, "p.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			for _, says := range c.says {
				if !strings.Contains(v.Summary, says) {
					t.Errorf("%q does not say %q", v.Summary, says)
				}
			}
			if strings.HasPrefix(c.name, "a new") && strings.Contains(v.Summary, "before") {
				t.Errorf("blamed on the baseline: %q", v.Summary)
			}
		})
	}
}
