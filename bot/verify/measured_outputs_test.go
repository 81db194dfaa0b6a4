package verify

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// The figures of each output must be those of the manifest's outputs, and come to the figures of the case.
func TestOutputs(t *testing.T) {
	c := checker{job: runners.Job{Manifest: &manifest.Manifest{Arguments: []manifest.Argument{
		{Name: "x", DType: manifest.F32, Access: manifest.In}, {Name: "q", DType: manifest.I8, Access: manifest.Out}, {Name: "s", DType: manifest.F32, Access: manifest.InOut},
	}}}}
	right := func() *gates.Errors {
		return &gates.Errors{Elements: 11, Bad: 1, Norm: 0.5, Outputs: []gates.OutputErrors{
			{Name: "q", DType: "i8", Errors: gates.Errors{Elements: 10, Bad: 1, Norm: 0.5}}, {Name: "s", DType: "f32", Errors: gates.Errors{Elements: 1, Norm: 0.1}},
		}}
	}
	if err := c.outputs("case", right()); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*gates.Errors){
		"are not what":   func(e *gates.Errors) { e.Outputs[0].DType = "f32" },
		"do not come to": func(e *gates.Errors) { e.Outputs[1].Norm = 0.7 },
		"cannot be":      func(e *gates.Errors) { e.Outputs[0].Bad = 99 },
	} {
		e := right()
		change(e)
		if err := c.outputs("case", e); err == nil || name != "are not what" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
