package policies

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A CorrectnessGate says on which inputs the candidate runs and how far its
// output may be from the reference's.
type CorrectnessGate struct {
	Enforcement
	Shapes        Shapes                            `yaml:"shapes" doc:"Shapes of the manifest. Default all."`
	Seeds         []int64                           `yaml:"seeds" eg:"[0, 1, 2]"`
	Distributions []Distribution                    `yaml:"distributions" eg:"[normal, dominant]" doc:"How inputs are drawn."`
	SecretCases   quantity.Count                    `yaml:"secret_cases" doc:"Cases with shapes and seeds drawn anew for every run."`
	MaxAbs        *quantity.Bound[quantity.Number]  `yaml:"max_abs_error" eg:"<= 0.06"`
	MeanAbs       *quantity.Bound[quantity.Number]  `yaml:"mean_abs_error"`
	Bad           *quantity.Bound[quantity.Percent] `yaml:"bad_elements" eg:"<= 1%" doc:"Share of elements beyond the manifest's tolerance."`
	Norm          *quantity.Bound[quantity.Percent] `yaml:"norm_error" eg:"<= 1%" doc:"‖got − want‖ / ‖want‖ over the whole output."`
	BitParity     bool                              `yaml:"bit_parity" doc:"The output equals the baseline's bit for bit."`
	Determinism   bool                              `yaml:"determinism" doc:"Two launches on the same input agree bit for bit."`
	EndToEnd      *ErrorBounds                      `yaml:"end_to_end" doc:"Against the reference on the inputs before quantisation (normal distribution)."`
}

// ErrorBounds bounds one comparison.
type ErrorBounds struct {
	MaxAbs  *quantity.Bound[quantity.Number]  `yaml:"max_abs_error" eg:"<= 0.06"`
	MeanAbs *quantity.Bound[quantity.Number]  `yaml:"mean_abs_error"`
	Bad     *quantity.Bound[quantity.Percent] `yaml:"bad_elements" eg:"<= 1%"`
	Norm    *quantity.Bound[quantity.Percent] `yaml:"norm_error"`
}

// Bounds is what the candidate's own error is held against.
func (g *CorrectnessGate) Bounds() ErrorBounds {
	return ErrorBounds{MaxAbs: g.MaxAbs, MeanAbs: g.MeanAbs, Bad: g.Bad, Norm: g.Norm}
}

// A Distribution is a way to draw inputs.
type Distribution string

var distributions = []string{"normal", "uniform", "dominant", "large", "constant", "zero", "ones"}

func (d *Distribution) UnmarshalStrict(n *strict.Node) { readWord(n, (*string)(d), distributions...) }
func (d *Distribution) JSONSchema() map[string]any     { return wordSchema(distributions...) }

func (g *CorrectnessGate) ValidateStrict(n *strict.Node) {
	if !g.Shapes.All && len(g.Shapes.Names) == 0 {
		g.Shapes.All = true
	}
	if len(g.Seeds) == 0 && !n.Has("seeds") {
		g.Seeds = []int64{0, 1, 2}
	}
	if len(g.Distributions) == 0 && !n.Has("distributions") {
		g.Distributions = []Distribution{"normal"}
	}
}

func (g *CorrectnessGate) check(n *strict.Node) {
	if len(g.Seeds) == 0 {
		n.Child("seeds").Errorf("is empty (write e.g. [0, 1, 2])")
	}
	for i, seed := range g.Seeds {
		if seed < 0 {
			n.Child("seeds").Errorf("%d is negative (write e.g. [0, 1, 2])", seed)
		}
		if slices.Contains(g.Seeds[:i], seed) {
			n.Child("seeds").Errorf("%d is named twice", seed)
		}
	}
	if len(g.Distributions) == 0 {
		n.Child("distributions").Errorf("is empty (write e.g. [%s])", strings.Join(distributions[:3], ", "))
	}
	// With N(0,1) inputs an attention output is so small that an absolute bound
	// alone passes a kernel that writes zeros.
	if g.Norm == nil && g.Decides() {
		n.Child("norm_error").Errorf("is required: an absolute bound alone passes a kernel that writes zeros (write e.g. norm_error: \"<= 1%%\")")
	}
	for _, b := range []struct {
		field string
		lower bool
	}{
		{"max_abs_error", g.MaxAbs != nil && g.MaxAbs.Lower()},
		{"mean_abs_error", g.MeanAbs != nil && g.MeanAbs.Lower()},
		{"bad_elements", g.Bad != nil && g.Bad.Lower()},
		{"norm_error", g.Norm != nil && g.Norm.Lower()},
	} {
		if b.lower {
			n.Child(b.field).Errorf("asks for a large error (write \"<=\")")
		}
	}
}
