package manifest

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// infiniteDTypes are the formats that keep an infinity which was drawn.
var infiniteDTypes = []DType{F16, BF16, F32, F64}

// validateInfinities refuses them if none can be drawn, or if the problem does not allow them.
func (a *Argument) validateInfinities(n *strict.Node) {
	at := n.Child("infinities")
	switch {
	case !a.Infinities && a.Init.Draw == Draw(distribution.Infinite):
		n.Child("init").Errorf("infinite draws ±Inf, which the problem must allow (add infinities: true)")
	case !a.Infinities:
	case a.Access == Out:
		at.Errorf("an output is not drawn (delete it, or write access: inout)")
	case a.Quantize != nil:
		at.Errorf("a quantised array has none: its scale would be infinite (delete it)")
	case !slices.Contains(infiniteDTypes, a.DType):
		at.Errorf("%s keeps no infinities (delete it, or write one of %s)", a.DType, strict.JoinWords(infiniteDTypes))
	}
}
