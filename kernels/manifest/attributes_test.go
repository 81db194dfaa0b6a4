package manifest

import (
	"strings"
	"testing"
)

const attributed = `
version: 1
name: split
mode: cuda
entry: one
source: k.cu
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}
tolerance: {abs: 1}
shapes: {one: {N: 4096}}
scratch: [{name: partial, dtype: f32, shape: [N]}]
launch:
  steps:
    - {grid: [N/256], block: [256], args: [x, partial], carveout: 100}
    - {entry: two, grid: [N/256], block: [256], args: [partial, y], programmatic: true, priority: -1}
`

// The attributes of a launch are numbers of its steps. A kernel may overlap the one before it in its own launch, and nothing else.
func TestLaunchAttributes(t *testing.T) {
	m := parsed(t, attributed)
	steps, err := m.Steps("default", m.Shapes[0].Dims, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "carve-outs", []Carveout{steps[0].Carveout, steps[1].Carveout}, []Carveout{{true, 100}, {}})
	same(t, "programmatic", []bool{steps[0].Programmatic, steps[1].Programmatic}, []bool{false, true})
	same(t, "priority", []int{steps[0].Priority, steps[1].Priority}, []int{0, -1})
	for _, test := range []struct{ old, new, want string }{
		{"carveout: 100", "carveout: 101", `steps[0].carveout: "101" is 101 at shape one, N=4096 (make it 100 or less)`},
		{"carveout: 100", "programmatic: true", "steps[0].programmatic: the first kernel of a launch waits for all of the launch before it (delete it, or write it in a later step)"},
		{"    - {entry: two", "    - {memset: y}\n    - {entry: two", "steps[2].programmatic: the step before it is no kernel, which it could overlap (delete it, or move the step)"},
		{"priority: -1", "priority: 1", "steps[1].priority: 1 is outside -5 to 0 (write e.g. -1)"},
		{"priority: -1", "cooperative: true", "steps[1].programmatic: a cooperative launch starts when the kernels before it have ended (delete one of them)"},
		{"arch: [sm_90]", "arch: [sm_89]", `arch[0]: "sm_89" has no programmatic dependent launch, which launch.steps[1].programmatic asks for (write sm_90 or later, or delete programmatic)`},
	} {
		_, err := Parse("kernel.yaml", []byte(edited(t, attributed, test.old, test.new)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.new, err, test.want)
		}
	}
}
