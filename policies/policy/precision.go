package policy

import (
	"fmt"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A PrecisionGate bounds how much less precise than the baseline an output may become. A tolerance says what is wrong; this gate
// notices what is still right and has become worse. Every rule with the correctness gate has it, unless it says none.
type PrecisionGate struct {
	Enforcement
	Loss *quantity.Bound[quantity.Number] `yaml:"loss" eg:"<= 10" default:"<= 4" bounds:"(<= or <, at least 1)" doc:"Norm error of an output, divided by that of the baseline's output on the same inputs. Rounding to the output's format, and norm errors up to 0.01% (1e-9 for f64, 0.1% for integers), never count."`
}

func (g PrecisionGate) String() string {
	return fmt.Sprintf("norm error of every output %s times the baseline's", g.Loss)
}

func (g *PrecisionGate) fill(*strict.Node) {
	if g.Loss == nil {
		g.Loss = &quantity.Bound[quantity.Number]{Op: quantity.AtMost, Value: 4}
	}
}

func (g *PrecisionGate) check(n *strict.Node, beside rest) {
	switch {
	case g.Loss.Lower():
		n.Child("loss").Errorf("%q asks for a loss (write \"<=\")", g.Loss)
	case !g.Loss.Holds(1):
		n.Child("loss").Errorf("%q defers a change that computes what the baseline computes (write at least \"<= 1\")", g.Loss)
	}
	if beside.gates.Correctness == nil {
		n.Errorf("reads the cases of correctness, which the rule does not have (add correctness, or delete it)")
	}
}

func (g *PrecisionGate) compare(l *compare.List, path string, old *PrecisionGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareBound(l, path+".loss", old.Loss, g.Loss, compare.Tightens)
}

func (g *PrecisionGate) narrow([]string, []int64) *PrecisionGate { return g }

// byDefault adds the gate to a rule that compares outputs and does not mention precision. It decides if the comparison does.
func (g *Gates) byDefault(n *strict.Node) {
	if g.Energy != nil && g.Energy.Shapes.none() && g.Performance != nil && g.Performance.Target != nil {
		g.Energy.Shapes = g.Performance.Target.Shapes
	}
	if g.Correctness != nil && !n.Has("precision") {
		g.Precision = &PrecisionGate{Enforcement: Enforcement{Required: g.Correctness.Required}}
	}
}
