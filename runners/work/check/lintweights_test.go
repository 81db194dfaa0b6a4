package check_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A goal for the weighted sum needs weights in the manifests of the kernels that it may be asked of.
func TestLintWeights(t *testing.T) {
	const weights = "weights: {launches: {small: 36}}\n"
	goal := strings.Replace(lintPolicy, "guard: {", `target: {weighted: ">= +3%"}, guard: {`, 1)
	for _, e := range []struct{ name, manifest, policy, want string }{
		{"with weights", lintManifest + weights, goal, ""},
		{"without", lintManifest, goal, "rules.yaml:4:36: gates.performance.target.weighted: rule default: the manifest of scale has no weights on the base branch (add them there: kernelgate weights TRACE --kernel scale reads them from a trace of a profiler)"},
		{"without, under the guard", lintManifest, strings.Replace(lintPolicy, "guard: {", `guard: {weighted: ">= -1%", `, 1), "rules.yaml:4:35: gates.performance.guard.weighted: rule default: the manifest of scale has no weights"},
		{"without, of a different kernel", lintManifest, strings.Replace(goal, "rules: [", `rules: [{name: ours, when: {kernels: [scale]}, gates: {performance: {target: none}}}, `, 1), ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"scale.yaml": e.manifest, "rules.yaml": e.policy, "scale.c": "", "reference.c": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := check.Lint(io.Discard, []string{filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "scale.yaml")})
		switch {
		case e.want == "" && err != nil:
			t.Errorf("%s: %v", e.name, err)
		case e.want != "" && (err == nil || !strings.Contains(err.Error(), e.want)):
			t.Errorf("%s: %v, want %s", e.name, err, e.want)
		}
	}
}
