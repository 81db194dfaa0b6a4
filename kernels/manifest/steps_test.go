package manifest

import (
	"strings"
	"testing"
)

// A launch of several kernels in numbers, with what each is passed.
func TestSteps(t *testing.T) {
	m := parsed(t, goodSteps)
	mission, _ := m.Shape("mission")
	got, err := m.Steps("default", mission.Dims, map[string]int{"SPLITS": 2})
	same(t, "error", err, nil)
	one := [3]int{1, 1, 1}
	same(t, "steps", got, []StepAt{
		{Entry: "split", Args: []string{"q", "state", "n", "partial", "done"}, Geometry: Geometry{Grid: [3]int{2, 96, 1}, Block: [3]int{128, 1, 1}, Cluster: one}},
		{Memset: "done", Value: 1},
		{Entry: "ns::combine<64>", Args: []string{"p", "partial", "done"}, Geometry: Geometry{Grid: [3]int{96, 1, 1}, Block: [3]int{64, 1, 1}, Cluster: one, SharedMemory: 256}},
	})
	same(t, "entries", m.Entries("default"), []string{"split", "ns::combine<64>"})
	var parameters []string
	for _, p := range m.Parameters(got[2].Args) {
		parameters = append(parameters, p.Name+" "+p.Type)
	}
	same(t, "parameters", parameters, []string{"p struct", "partial pointer to f32", "done pointer to u32"})
	var scratch []string
	for _, a := range m.ScratchOf("default") {
		shape, err := m.ShapeOf(a, mission.Dims, map[string]int{"SPLITS": 2})
		same(t, "error", err, nil)
		scratch = append(scratch, a.Name+" "+written(shape))
	}
	same(t, "scratch", scratch, []string{"partial [2, 96, 64]", "done [96]"})
}

// A launch of one kernel passes all arguments, and no scratch that is not named.
func TestStepOfOneKernel(t *testing.T) {
	m := parsed(t, edited(t, goodSteps,
		"source: decode.cu\n", "variants: {split: {source: decode.cu}, whole: {source: whole.cu, launch: {cooperative: true, grid: [S], block: [32]}}, own: {source: own.cu, launch: {grid: [S], block: [32], args: [o, state, done]}}}\ndefault_variant: split\nentry: whole\n"))
	small, _ := m.Shape("small")
	for variant, want := range map[string]struct {
		args, scratch string
		cooperative   bool
	}{
		"whole": {"q state n p", "partial", true}, // p points to partial and o
		"own":   {"o state done", "done", false},
	} {
		steps, err := m.Steps(variant, small.Dims, nil)
		same(t, variant, err, nil)
		same(t, variant, len(steps), 1)
		same(t, variant, strings.Join(steps[0].Args, " "), want.args)
		same(t, variant, steps[0].Entry, "whole")
		same(t, variant, steps[0].Cooperative, want.cooperative)
		var names []string
		for _, a := range m.ScratchOf(variant) {
			names = append(names, a.Name)
		}
		same(t, variant, strings.Join(names, " "), want.scratch)
	}
}

// Whatever of a launch decides what runs is told apart, in words and in numbers; what decides
// nothing is not.
func TestCallsOfSteps(t *testing.T) {
	goodSteps := edited(t, goodSteps, "scratch:\n", "scratch:\n  - {name: more, dtype: f32, shape: [S]}\n", "args: [p, partial, done]", "args: [p, partial, done, more]")
	base := parsed(t, goodSteps)
	for name, c := range map[string]struct {
		edit          []string
		words, number bool // differ
	}{
		"a step less":                 {[]string{"    - {memset: done, value: 1}\n", ""}, true, true},
		"another order":               {[]string{"    - " + splitStep + "\n    - {memset: done, value: 1}\n", "    - {memset: done, value: 1}\n    - " + splitStep + "\n"}, true, true},
		"another entry":               {[]string{"entry: split", "entry: split2"}, true, true},
		"another byte":                {[]string{"value: 1", "value: 2"}, true, true},
		"a copy in its place":         {[]string{"memset: done, value: 1", "copy: state, to: more"}, true, true},
		"a memset of more":            {[]string{"memset: done, value: 1", "memset: partial, value: 1"}, true, true},
		"other arguments":             {[]string{"[p, partial, done, more]", "[p, done, partial, more]"}, true, true},
		"larger scratch":              {[]string{"shape: [SPLITS, S, D]", "shape: [SPLITS, S, D, 2]"}, true, true},
		"scratch of words":            {[]string{"dtype: u32", "dtype: i32"}, true, true},
		"cooperative":                 {[]string{"block: [64], sha", "block: [64], cooperative: true, sha"}, true, true},
		"a priority":                  {[]string{"block: [64], sha", "block: [64], priority: -1, sha"}, true, true},
		"a carve-out":                 {[]string{"block: [64], sha", "block: [64], carveout: 50, sha"}, true, true},
		"more splits":                 {[]string{"default: 4", "default: 2"}, true, true},
		"the same, written otherwise": {[]string{"shared_memory: 4*D", "shared_memory: D*4"}, true, false},
		"another problem":             {[]string{"abs: 0.06", "abs: 0.07"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, edited(t, goodSteps, c.edit...))
			same(t, "words differ", m.Call("default") != base.Call("default"), c.words)
			same(t, "numbers differ", m.Launches("default") != base.Launches("default"), c.number)
		})
	}
}

// The head's scratch and steps are the head's, and no part of what is asked.
func TestStepsAreOfTheImplementation(t *testing.T) {
	head := edited(t, goodSteps, "default: 4", "default: 2", "    - {memset: done, value: 1}\n", "", "  - {name: done, dtype: u32, shape: [S]}\n", "  - {name: done, dtype: u32, shape: [S, 8]}\n", "abs: 0.06", "abs: 9")
	m := joined(t, goodSteps, head)
	mission, _ := m.Shape("mission")
	steps, err := m.Steps("default", mission.Dims, nil)
	same(t, "error", err, nil)
	same(t, "steps", len(steps), 2)
	same(t, "grid", steps[0].Grid, [3]int{2, 96, 1})
	same(t, "tolerance", m.Tolerance.Abs, 0.06)
	same(t, "what differs in the problem", len(Compare(parsed(t, goodSteps), m)), 0)
	// A struct of the base that points to scratch needs one of that name in the head.
	_, err = Join("kernel.yaml", []byte(goodSteps), []byte(edited(t, goodSteps,
		"  - {name: partial, dtype: f32, shape: [SPLITS, S, D]}\n", "", "n, partial, done", "n, done", "[p, partial, done]", "[p, done]")))
	if err == nil || !strings.Contains(err.Error(), `fields[0].pointer: "partial" is no argument (declare the array among the arguments or the scratch, or write none for a null pointer)`) {
		t.Errorf("got %v", err)
	}
}

// Scratch that only a struct within a struct points to is the launch's, and an output there is written.
func TestScratchWithinStructs(t *testing.T) {
	m := parsed(t, edited(t, goodSteps,
		"  - {name: p, access: struct, fields: [{name: partial, pointer: partial}, {name: o, pointer: o}]}\n",
		"  - {name: inner, access: struct, fields: [{name: partial, pointer: partial}, {name: o, pointer: o}]}\n  - {name: p, access: struct, fields: [{name: n, dtype: i32, value: S}, {name: inner, struct: inner}]}\n",
		"n, partial, done]", "n, done]", "[p, partial, done]", "[p, done]"))
	var names []string
	for _, a := range m.ScratchOf("default") {
		names = append(names, a.Name)
	}
	same(t, "scratch", strings.Join(names, " "), "partial done")
}
