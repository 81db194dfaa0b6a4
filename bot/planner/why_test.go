package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

const gpuManifest = `version: 1
name: gpu
mode: cuda
arch: [sm_80]
entry: scale
source: scale.cu
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
launch: {grid: ["N / 32"], block: [32]}
reference: {source: reference.py, entry: reference}
tolerance: {abs: 0.1}
shapes:
  mission: {N: 1024}
  small: {N: 32}
`

// A job that only profiles asks for the shapes that somebody names, or else for those of the rule.
func TestExplain(t *testing.T) {
	gpu := tree{"gpu/kernel.yaml": gpuManifest, "gpu/scale.cu": "// base\n", "gpu/reference.py": "// truth\n"}
	target := replaced(t, policyYAML, "shapes: [mission], speedup: \">= +10%\"", "shapes: [small], speedup: \">= +1%\"")
	w := newWorld(t, usual().with(gpu, tree{policyFile: target}))
	id, facts := w.propose(tree{"gpu/scale.cu": "// head\n", folder + "/scale.c": "// head\n"}.with(tree{"new/kernel.yaml": replaced(t, gpuManifest, "name: gpu", "name: new"), "new/scale.cu": "// new\n", "new/reference.py": "// truth\n"}))
	for name, shapes := range map[string][]string{"named": {"mission"}, "of the rule": nil} {
		bundle, explained, err := w.planner.Explain(t.Context(), id, facts, planner.Rerun{Folder: "gpu", Shapes: shapes})
		if err != nil {
			t.Fatal(err)
		}
		want := shapes
		if want == nil {
			want = []string{"small"}
		}
		job := w.read(bundle)
		gates := job.Asked().RuleFor(job.Change).Gates
		if !slices.Equal(explained, want) || job.Part != runners.PartExplain || !slices.Equal(job.Shapes, want) || gates.Performance != nil || gates.Correctness != nil || !slices.Equal(gates.OnlyExplain.Shapes.Names, want) {
			t.Errorf("%s: %v, %+v", name, explained, gates)
		}
	}
	w.push("silent", tree{policyFile: replaced(t, target, "speedup: \">= +1%\"}}", "speedup: \">= +1%\"}, explain: none}")})
	w.push("untimed", tree{policyFile: "version: 1\ngates: {correctness: {norm_error: \"<= 1%\"}}\nrules: [{name: default}]\n"})
	for name, c := range map[string]struct {
		base string
		ask  planner.Rerun
		says string
	}{
		"a shape":             {"main", planner.Rerun{Folder: "gpu", Shapes: []string{"huge"}}, `gpu has no shape "huge" (it has mission, small)`},
		"explain: none":       {"silent", planner.Rerun{Folder: "gpu"}, "rule default has explain: none, so nothing is profiled"},
		"no performance gate": {"untimed", planner.Rerun{Folder: "gpu"}, "has no performance gate, so no times of gpu are compared"},
		"a new kernel":        {"main", planner.Rerun{Folder: "new"}, "new is new: there is no baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			facts.Base = c.base
			_, _, err := w.planner.Explain(t.Context(), id, facts, c.ask)
			var bad usage.Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
