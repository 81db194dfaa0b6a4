package cuda

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Whatever a kernel does on the GPU, the verdict names it, and the run after it
// is clean.
func TestKernelsOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	good := func(t *testing.T) {
		t.Helper()
		_, v := trial{policy: policyText, baseline: around(baselineBody), candidate: around(fasterBody)}.gather(t)
		if v.Outcome != gates.Pass {
			t.Errorf("a good kernel got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	}
	t.Run("right and faster", good)
	for _, c := range []struct {
		name, source string
		reason       gates.Reason
		says         string
	}{
		{"loops for ever", around("    while (x[0] < 1e30f) __nanosleep(100);\n    if (i < N) y[i] = 2 * x[i];"), gates.ReasonCorrectness, "the kernel did not return within 2s and was killed"},
		{"traps", around("    __trap();"), gates.ReasonCorrectness, "the kernel failed on the GPU"},
		{"asserts nothing and faults", around("    *(volatile int *)0x10 = i;"), gates.ReasonCorrectness, "illegal memory access"},
		{"writes out of bounds", around("    if (i <= N) y[i] = i < N ? 2 * x[i] : 7;"), gates.ReasonCorrectness, "the kernel wrote outside its arguments"},
		{"writes its inputs", around("    if (i < N) { y[i] = 2 * x[i]; ((float *)x)[i] = 0; }"), gates.ReasonCorrectness, "the kernel wrote to its input x"},
		{"writes nothing", around("    (void)i;"), gates.ReasonCorrectness, "elements were never written"},
		{"writes half", around("    if (i < N && i % 2) y[i] = 2 * x[i];"), gates.ReasonCorrectness, "elements were never written"},
		{"is right for the public shapes alone", around("    if (i < N) y[i] = (N == 1000 || N == 1000000) ? 2 * x[i] : 0;"), gates.ReasonCorrectness, "secret shape (N="},
		{"is right for one seed alone", around("    if (i < N) y[i] = (" + knownInputs(t) + ") ? 2 * x[i] : 0;"), gates.ReasonCorrectness, "first: small, seed 1, normal inputs: norm error 100%"},
		{"is not deterministic", around("    if (i < N) y[i] = 2 * x[i] * (1 + 1e-6f * (clock() >> 2 & 1));"), gates.ReasonCorrectness, "two launches on the same input gave different bits"},
		{"asks for what the launch does not give", "extern \"C\" __global__ void __launch_bounds__(128) scale(const float *x, float *y, int N) { y[0] = x[0] * N; }\n", gates.ReasonCorrectness, "the kernel failed on the GPU"},
		{"is too slow", around(strings.Replace(baselineBody, "k < 400", "k < 401", 1)), gates.ReasonTooSlow, "Too slow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, v := trial{policy: policyText, baseline: around(baselineBody), candidate: c.source, timeout: 2 * time.Second}.gather(t)
			if v.Outcome != gates.Defer || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s\nwant DEFER (%s): …%s…", v.Outcome, v.Reason, v.Summary, c.reason, c.says)
			}
		})
	}
	t.Run("clean afterwards", good)
}

// knownInputs is a condition that holds for the inputs of the public shapes with
// seed 0, which anybody can compute.
func knownInputs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	known := "false"
	for _, shape := range m.Shapes {
		p, err := tensor.NewProblem(m, shape, nil, distribution.Normal, 0)
		if err != nil {
			t.Fatal(err)
		}
		known += fmt.Sprintf(" || x[0] == %.9gf", p.Args[0].Real[0])
	}
	return known
}
