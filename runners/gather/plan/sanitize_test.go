package plan_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// TestSanitizedShapes checks that a shape that the kernel does not have is reported before anything
// is built, and that a static check sanitizes nothing.
func TestSanitizedShapes(t *testing.T) {
	r := newTree(t)
	with := func(shape string) map[string]string {
		files := map[string]string{}
		for name, text := range first {
			files[name] = text
		}
		files[".github/kernelgate.yaml"] = strings.Replace(policyYAML, "rules:", "  sanitize: {shapes: ["+shape+"]}\nrules:", 1)
		return files
	}
	base := r.commit(with("two"))
	head := r.commit(map[string]string{"k/scale.c": "// head\n"})
	if _, err := r.job(plan.Options{Base: base, Head: head}); err == nil || !strings.Contains(err.Error(), `gates.sanitize.shapes: scale has no shape "two" (it has one)`) {
		t.Errorf("%v", err)
	}
	base = r.commit(with("one"))
	head = r.commit(map[string]string{"k/scale.c": "// another\n"})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil || job.Rule().Gates.Sanitize == nil {
		t.Errorf("%v", err)
	}
	if job, err := r.job(plan.Options{Base: base, Head: head, Static: true}); err != nil || job.Rule().Gates.Sanitize != nil {
		t.Errorf("sanitized without running anything, %v", err)
	}
}
