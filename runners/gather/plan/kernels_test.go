package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// TestKernelsOfThreeRevisions checks that a kernel that both the head and the base branch added is
// one kernel, and that a kernel that the head removes is removed although the base branch still has
// it.
func TestKernelsOfThreeRevisions(t *testing.T) {
	r := newTree(t)
	base := r.commit(with(map[string]string{"gone/kernel.yaml": manifestYAML, "gone/scale.c": "// g\n", "gone/reference.c": "// g\n"}))
	added := map[string]string{"new/kernel.yaml": manifestYAML, "new/scale.c": "// n\n", "new/reference.c": "// n\n"}
	tip := r.commit(added)
	r.git("checkout", "--quiet", base)
	head := r.commit(map[string]string{"new/kernel.yaml": edited(t, manifestYAML, "name: scale", "name: renamed"), "new/scale.c": "// h\n", "new/reference.c": "// h\n", "gone/kernel.yaml": "", "gone/scale.c": "", "gone/reference.c": ""})
	p := r.plan(plan.Options{Base: base, Head: head, Trusted: tip})
	keys, err := p.Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "new gone" {
		t.Fatalf("%v, %v", keys, err)
	}
	for key, removed := range map[string]bool{"gone": true, "new": false} {
		if job, err := p.Job(t.Context(), key); err != nil || job.Removed != removed {
			t.Errorf("%s: removed %v, %v", key, job.Removed, err)
		}
	}
	// The head's manifest names a kernel, whatever the base branch calls it.
	keys, err = r.plan(plan.Options{Base: base, Head: head, Trusted: tip, Kernels: []string{"renamed"}}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "new" {
		t.Errorf("%v, %v", keys, err)
	}
	// A kernel that only the base branch has goes by its name there.
	r.git("checkout", "--quiet", base)
	other := r.commit(map[string]string{"k/scale.c": "// other\n"})
	keys, err = r.plan(plan.Options{Base: base, Head: other, Trusted: tip, Kernels: []string{"new", "k"}}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "new k" {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestUnknownShapes checks that every gate that names a shape which the kernel does not have is
// reported with its field.
func TestUnknownShapes(t *testing.T) {
	for field, gate := range map[string]string{
		"correctness.shapes":        "correctness",
		"sanitize.shapes":           "sanitize: {shapes: [two]}",
		"performance.target.shapes": `performance: {target: {shapes: [two], speedup: ">= +10%"}}`,
		"performance.guard.shapes":  `performance: {guard: {shapes: [two], speedup: ">= -2%"}}`,
		"profile.shapes":            `profile: {shapes: [two], all: [{sm__throughput: ">= 50%"}]}`,
	} {
		r := newTree(t)
		asks := edited(t, policyYAML, "rules:", "  "+gate+"\nrules:")
		if strings.HasPrefix(gate, "correctness") {
			asks = edited(t, policyYAML, "shapes: all", "shapes: [two]")
		}
		base := r.commit(with(map[string]string{".github/kernelgate.yaml": asks}))
		_, err := r.plan(plan.Options{Base: base, Head: base}).Job(t.Context(), "k")
		wantMistake(t, err, "gates."+field+`: scale has no shape "two" (it has one)`)
	}
}

// TestSharedFolderOfAHarness checks that in a folder of several kernels, any file may belong to a
// harness.
func TestSharedFolderOfAHarness(t *testing.T) {
	harness := "version: 1\nname: harness\nmode: command\ncommand: {build: [make], bench: [./bench]}\nshapes: {one: {N: 10}}\nsources: [scale.c]\n"
	r := newTree(t)
	base := r.commit(with(map[string]string{"k/other.kernel.yaml": harness, "k/notes.md": "x\n"}))
	keys, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"k/notes.md": "y\n"})}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "k/other.kernel.yaml" {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestIncludesInACircle checks that headers may include each other.
func TestIncludesInACircle(t *testing.T) {
	r := newTree(t)
	files := including("#include <a.h>\n")
	files["common/a.h"], files["common/c.h"] = "#include \"c.h\"\n", "#include \"a.h\"\n#include \"missing.h\"\n"
	base := r.commit(files)
	keys, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"common/c.h": "// c\n"})}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "k" {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestPlanAsAnotherKind checks that the same files as a different kind of change are judged by a
// different rule.
func TestPlanAsAnotherKind(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	p := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"k/scale.c": "// head\n"})})
	for name, of := range map[string]*plan.Plan{"default": p, "docs": p.As(policy.Change{Labels: []string{"docs"}})} {
		job, err := of.Job(t.Context(), "k")
		if err != nil || job.Rule().Name != name || !slices.Equal(of.Changed(), []string{"k/scale.c"}) {
			t.Errorf("%s: rule %s of %v, %v", name, job.Rule().Name, of.Changed(), err)
		}
	}
}
