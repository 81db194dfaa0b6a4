package actions_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// TestRealCompiler runs a real compiler in the real sandbox and checks that its messages are shown
// on their lines.
func TestRealCompiler(t *testing.T) {
	const kernel = "void scale(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"
	w := newWorld(t, map[string]string{
		"kernels/scale/scale.c":     kernel,
		"kernels/scale/reference.c": "void reference(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n",
	}, mayWrite)
	w.measure = measure.Config{}.Measure
	pr := w.propose("broken", map[string]string{"kernels/scale/scale.c": "\n" + strings.Replace(kernel, "2 * x", "2 * z", 1)}, embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "DEFER", "build", 1)
	c := w.check(pr.HeadSHA(), "kernelgate / scale", "failure")
	if len(c.Annotations) == 0 || c.Annotations[0].GetPath() != "kernels/scale/scale.c" || c.Annotations[0].GetStartLine() != 2 {
		t.Errorf("annotations %v", c.Annotations)
	}
	w.holds(j.log, "::error file=kernels/scale/scale.c,line=2,")
}
