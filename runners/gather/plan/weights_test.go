package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

const (
	weightedPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}
  performance: {target: {weighted: ">= +3%"}, guard: {speedup: ">= -2%"}}
rules: [{name: default}]
`
	weights = "weights: {launches: {one: 36, two: 1}}\n"
)

// A pull request that edits the weights, or splits and renames the shapes, is judged by the weights and shapes of the base.
func TestWeightsAreTheBases(t *testing.T) {
	r := newTree(t)
	own := edited(t, manifestYAML, "{one: {N: 10}}", "{one: {N: 10}, two: {N: 90}}") + weights
	base := r.commit(with(map[string]string{".github/kernelgate.yaml": weightedPolicy, "k/kernel.yaml": own}))
	for name, head := range map[string]string{
		"edited":  edited(t, own, "one: 36, two: 1", "one: 0.5, two: 5000"),
		"removed": edited(t, own, weights, ""),
		"renamed": edited(t, own, "{one: {N: 10}, two: {N: 90}}", "{tiny: {N: 10}, huge: {N: 90}}", weights, "weights: {launches: {huge: 1}}\n"),
		"split":   edited(t, own, "{one: {N: 10}, two: {N: 90}}", "{one: {N: 10}, half: {N: 11}, two: {N: 90}}", "one: 36,", "one: 18, half: 18,"),
	} {
		r.git("checkout", "--quiet", base)
		job, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"k/kernel.yaml": head, "k/scale.c": "// " + name + "\n"})}).Job(t.Context(), "k")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(job.Weights().Launches); got != "map[one:36 two:1]" || fmt.Sprint(job.ShapeNames()) != "[one two]" {
			t.Errorf("%s: the weights are %s of %v", name, got, job.ShapeNames())
		}
		if e := job.NoEvidence(); e.Weights == nil || e.Weights.Launches["one"] != 36 {
			t.Errorf("%s: the evidence has %+v", name, e.Weights)
		}
	}
	// A head that no longer supports a shape with a weight is not built.
	limited := edited(t, own, "entry: scale", "entry: scale\nvariants: {narrow: {source: scale.c, limits: {N: 1..20}}, wide: {source: scale.c}}\ndefault_variant: narrow", "source: scale.c\na", "a")
	r.git("checkout", "--quiet", base)
	job, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"k/kernel.yaml": limited})}).Job(t.Context(), "k")
	if err != nil || len(job.Broken) != 1 || !strings.Contains(job.Broken[0].Message, "leave out the shapes two") {
		t.Errorf("%v, %v", job.Broken, err)
	}
	// A base whose default variant does not support one cannot be judged by the sum.
	base = r.commit(map[string]string{"k/scale.c": "// the base of the second part\n"})
	_, err = r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"k/scale.c": "// the head of the second part\n"})}).Job(t.Context(), "k")
	wantMistake(t, err, `gates.performance.target.weighted: the shape "two" (N=90) is outside the limits of the variant narrow of scale, the candidate`)
}

// A goal for the weighted sum of a kernel without weights is refused before anything is built, with the command that makes them.
func TestWeightsMissing(t *testing.T) {
	r := newTree(t)
	base := r.commit(with(map[string]string{".github/kernelgate.yaml": weightedPolicy}))
	_, err := r.plan(plan.Options{Base: base, Head: base}).Job(t.Context(), "k")
	wantMistake(t, err, "rule default: gates.performance.target.weighted: the manifest of scale has no weights on the base branch (add them there: kernelgate weights TRACE --kernel scale reads them from a trace of a profiler)")
	// The head's weights are not the base's.
	head := r.commit(map[string]string{"k/kernel.yaml": manifestYAML + "weights: {launches: {one: 1}}\n", "k/scale.c": "// other\n"})
	if _, err := r.plan(plan.Options{Base: base, Head: head}).Job(t.Context(), "k"); err == nil {
		t.Error("the weights of the head count")
	}
	// A new kernel has no speedup.
	head = r.commit(map[string]string{"n/kernel.yaml": edited(t, manifestYAML, "name: scale", "name: fresh"), "n/scale.c": "// new\n", "n/reference.c": "// truth\n"})
	if _, err := r.plan(plan.Options{Base: base, Head: head}).Job(t.Context(), "n"); err != nil {
		t.Errorf("a new kernel: %v", err)
	}
}

// A goal for launches with a warm cache is refused before anything is built, for a kernel that runs where nobody fills a cache.
func TestWarmNeedsCUDA(t *testing.T) {
	r := newTree(t)
	base := r.commit(with(map[string]string{".github/kernelgate.yaml": edited(t, weightedPolicy, "weighted:", "context: warm, speedup:")}))
	_, err := r.plan(plan.Options{Base: base, Head: base}).Job(t.Context(), "k")
	wantMistake(t, err, "rule default: gates.performance.target.context: launches of scale (mode cpu) cannot be timed with a warm cache: only mode cuda empties and fills it")
}
