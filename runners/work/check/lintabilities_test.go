package check_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A goal may need something of the manifests of the kernels that it may be asked of: weights for the weighted sum, and a mode in
// which a cache is filled for launches that begin warm.
func TestLintAbilities(t *testing.T) {
	const weights = "weights: {launches: {small: 36}}\n"
	goal := strings.Replace(lintPolicy, "guard: {", `target: {weighted: ">= +3%"}, guard: {`, 1)
	for _, e := range []struct{ name, manifest, policy, want string }{
		{"with weights", lintManifest + weights, goal, ""},
		{"without", lintManifest, goal, "rules.yaml:4:36: gates.performance.target.weighted: rule default: the manifest of scale has no weights on the base branch (add them there: kernelgate weights TRACE --kernel scale reads them from a trace of a profiler)"},
		{"without, under the guard", lintManifest, strings.Replace(lintPolicy, "guard: {", `guard: {weighted: ">= -1%", `, 1), "rules.yaml:4:35: gates.performance.guard.weighted: rule default: the manifest of scale has no weights"},
		{"warm", lintManifest, strings.Replace(lintPolicy, "guard: {", `guard: {context: [cold, warm], `, 1), "rules.yaml:4:34: gates.performance.guard.context: rule default: launches of scale (mode cpu) cannot be timed with a warm cache: only mode cuda empties and fills it (delete warm, or write a rule for this kernel)"},
		{"cold", lintManifest, strings.Replace(lintPolicy, "guard: {", `guard: {context: cold, `, 1), ""},
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
