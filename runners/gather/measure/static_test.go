package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

// TestStaticBuildsTheReference checks that a static check builds the reference too and compares its
// parameters with the manifest, so that a mistake in it is reported before the first run. The
// reference comes from the base, or from a new kernel. If its parameters cannot be read, it is
// accepted.
func TestStaticBuildsTheReference(t *testing.T) {
	const (
		asked  = "does not take what the manifest passes: "
		inC    = "declare it as void reference(const double *x, double *y, int32_t N)"
		onGPU  = "declare it as __global__ void twice_reference(const float *x, float *y, int32_t N)"
		global = "__global__ void twice_reference"
	)
	for name, c := range map[string]struct {
		cpu       bool
		reference string // "" means none
		isNew     bool
		says      []string // none if it passes
	}{
		"in C":                        {true, "#include <stdint.h>\nvoid reference(const double *x, double *y, int32_t N) { y[0] = x[0] + N; }\n", false, nil},
		"in C, by a macro":            {true, "#define T double\ntypedef int size;\n#define NAME(n) n##erence\nvoid NAME(ref)(const T *x, T *y, size N) { y[0] = x[0] + N; }\n", false, nil},
		"in C, a syntax error":        {true, "void reference(const double *x { }\n", false, []string{"the reference reference.c of the base does not compile: reference.c:1"}},
		"in C, of a new kernel":       {true, "void reference(const double *x { }\n", true, []string{"The candidate does not build: the reference reference.c does not compile: reference.c:1"}},
		"in C, missing":               {true, "", false, []string{"the reference reference.c of the base does not compile", "No such file"}},
		"in C, another type":          {true, "void reference(const float *x, double *y, int N) { y[0] = x[0] + N; }\n", false, []string{asked + "its parameter 1 is const float *", inC}},
		"in CUDA":                     {false, twiceReference, false, nil},
		"in CUDA, a C++ name":         {false, global + "(const float* __restrict__ x, float* y, int N) { y[0] = x[0] + N; }\n", false, nil},
		"in CUDA, by vectors":         {false, global + "(const float4* x, float4* y, int N) { y[0] = x[0]; y[0].x += N; }\n", false, nil},
		"in CUDA, a template":         {false, "template <typename T> " + global + "(const T* x, T* y, int N) { y[0] = x[0] + T(N); }\ntemplate " + global + "<double>(const double*, double*, int);\n", false, nil},
		"in CUDA, a syntax error":     {false, global + "(const float* x { }\n", false, []string{"the reference reference.cu of the base does not compile: reference.cu:1"}},
		"in CUDA, of a new kernel":    {false, global + "(const float* x { }\n", true, []string{"The candidate does not build: the reference reference.cu does not compile: reference.cu:1"}},
		"in CUDA, missing":            {false, "", false, []string{"the reference reference.cu"}},
		"in CUDA, one too few":        {false, global + "(const float* x, float* y) { y[0] = x[0]; }\n", false, []string{asked + "the kernel twice_reference(float const*, float*) takes 2 parameters and the manifest passes 3", onGPU}},
		"in CUDA, in double":          {false, global + "(const double* x, double* y, int N) { y[0] = x[0] + N; }\n", false, []string{asked + "its parameter 0 is double const*, and x is passed as pointer to f32", onGPU}},
		"in CUDA, a float for an int": {false, global + "(const float* x, float* y, float N) { y[0] = x[0] + N; }\n", false, []string{asked + "its parameter 2 is float, and N is passed as i32", onGPU}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "in CUDA" { // it comes first, and the others find its sides in the cache
				t.Parallel()
			}
			var job runners.Job
			config, file := Config{Static: true, Cache: toolchaintest.Builds(t), Getenv: os.Getenv}, "reference.c"
			if c.cpu {
				job, _ = variants(t)
			} else {
				job, file = twice(t, staticPolicy, twiceSource, thriceSource), "reference.cu"
				config.Arch = "sm_90"
			}
			var err error
			if job.Policy, err = policy.Parse("test.yaml", []byte("version: 1\ngates: {ptxas: {}}\nrules: [{name: default}]\n")); err != nil {
				t.Fatal(err)
			}
			if c.isNew {
				job.Baseline = nil
			}
			// The sides' folders stay as they are, so that both are compiled once for all cases.
			trusted := t.TempDir()
			if err := os.CopyFS(trusted, os.DirFS(job.Trusted)); err != nil {
				t.Fatal(err)
			}
			job.Trusted = trusted
			place := filepath.Join(job.Trusted, file)
			if err := os.Remove(place); err != nil {
				t.Fatal(err)
			}
			if c.reference != "" {
				if err := os.WriteFile(place, []byte(c.reference), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := config.Measure(t.Context(), job, t.TempDir(), silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(job.Policy, "test.yaml", got.Evidence)
			want := gates.Pass
			switch {
			case c.isNew:
				want = gates.Defer
			case len(c.says) > 0:
				want = gates.Error
			}
			if v.Outcome != want || want == gates.Error && v.Reason != gates.ReasonSetup || c.isNew && strings.Contains(v.Summary, "base") {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			for _, says := range c.says {
				if !strings.Contains(v.Summary, says) {
					t.Errorf("%q does not say %q", v.Summary, says)
				}
			}
		})
	}
}
