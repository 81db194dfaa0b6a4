package policy

import (
	"fmt"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// An EnergyGate bounds how much more energy than the baseline's a launch may take.
type EnergyGate struct {
	Enforcement
	Deadline
	Increase   *quantity.Bound[quantity.Percent] `yaml:"increase" eg:"<= +5%" default:"<= 5%" bounds:"(<= or <, above -100%)" doc:"candidate/baseline − 1 of the energy of a launch. The whole confidence interval must meet it. energy: \"<= +5%\" is short for a mapping with this key."`
	Shapes     Shapes                            `yaml:"shapes" eg:"[mission]" default:"(those of performance.target, or else first)" doc:"Shapes to measure. Each takes about eight seconds."`
	Confidence quantity.Percent                  `yaml:"confidence" eg:"99%" default:"95%" bounds:"80% to 99.9%" doc:"Confidence of the interval that decides."`
}

// UnmarshalStrict also reads the short form: energy: "<= +5%".
func (g *EnergyGate) UnmarshalStrict(n *strict.Node) {
	if _, scalar := n.Text(); scalar {
		n.Decode(&g.Increase)
		return
	}
	type fields EnergyGate // without this method
	n.Decode((*fields)(g))
}

func (g *EnergyGate) JSONSchema() map[string]any {
	var bound quantity.Bound[quantity.Percent]
	return map[string]any{"title": "bound (<=), or a mapping", "anyOf": []any{bound.JSONSchema(), strict.MappingSchema[EnergyGate]()}}
}

func (g EnergyGate) String() string {
	return fmt.Sprintf("energy of a launch %s more than the baseline's on %s, at %s confidence", g.Increase, g.Shapes, g.Confidence)
}

func (g *EnergyGate) fill(*strict.Node) {
	if g.Increase == nil {
		g.Increase = &quantity.Bound[quantity.Percent]{Op: quantity.AtMost, Value: 0.05}
	}
	if g.Shapes.none() {
		g.Shapes.First = true
	}
	if g.Confidence == 0 {
		g.Confidence = 0.95
	}
}

func (g *EnergyGate) check(n *strict.Node, beside rest) {
	at := n
	if n.Has("increase") {
		at = n.Child("increase")
	}
	switch {
	case g.Increase.Lower():
		at.Errorf("%q asks for an increase (write \"<=\")", g.Increase)
	case g.Increase.Value <= -1:
		at.Errorf("%q cannot be met (write e.g. \"<= 5%%\")", g.Increase)
	}
	if g.Confidence < 0.8 || g.Confidence > 0.999 {
		n.Child("confidence").Errorf("%s is outside 80%% to 99.9%% (write e.g. 95%%)", g.Confidence)
	}
	if output := beside.gates.Correctness; output == nil || !output.Decides() {
		n.Errorf("a kernel's energy is judged only after its output (add a required correctness gate, or write energy: none)")
	}
}

func (g *EnergyGate) compare(l *compare.List, path string, old *EnergyGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
	compareBound(l, path+".increase", old.Increase, g.Increase, compare.Tightens)
	compareShapes(l, path+".shapes", old.Shapes, g.Shapes, compare.Tightens)
	l.Way(path+".confidence", old.Confidence.String(), g.Confidence.String(), g.Confidence >= old.Confidence, g.Confidence <= old.Confidence)
}

func (g *EnergyGate) narrow([]string, []int64) *EnergyGate { return g }

func (g *EnergyGate) inputs() []Inputs { return []Inputs{{"energy.shapes", g.Shapes, false}} }
