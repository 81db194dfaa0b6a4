package runners

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Look is one case in full: the figures that a check records, and every element
// behind them.
type Look struct {
	Case    gates.Case     `json:"case"`
	Outputs []LookedOutput `json:"outputs"`
}

// LookedOutputs is the outputs among the arguments, with what the reference expects of
// each, before a side has been looked at.
func LookedOutputs(args []tensor.Arg, want [][]float64) []LookedOutput {
	var outputs []LookedOutput
	for _, a := range args {
		if !a.Array() || !a.Writes() {
			continue
		}
		out := LookedOutput{Name: a.Name, DType: a.DType, Shape: a.Shape, Want: make([]byte, 8*a.Elements)}
		tensor.Encode(kernels.F64, out.Want, want[len(outputs)])
		outputs = append(outputs, out)
	}
	return outputs
}

// A LookedOutput is what both sides made of one output.
type LookedOutput struct {
	Name      string        `json:"name"`
	DType     kernels.DType `json:"dtype"`
	Shape     []int         `json:"shape"`
	Candidate []byte        `json:"candidate,omitempty"` // none where it failed
	Baseline  []byte        `json:"baseline,omitempty"`  // none where there is none, or it failed
	Want      []byte        `json:"want"`                // of the reference, as f64: JSON has no infinities
}
