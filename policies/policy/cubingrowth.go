package policy

import (
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A CubinGrowthGate bounds how much machine code a change adds.
type CubinGrowthGate struct {
	Enforcement
	Increase *quantity.Bound[quantity.Percent] `yaml:"increase" eg:"<= 5%" default:"<= 5%" bounds:"(<= or <)" doc:"Machine code of all kernels of the candidate, more than the baseline has."`
}

func (g CubinGrowthGate) String() string { return "machine code increase " + g.Increase.String() }

func (g *CubinGrowthGate) fill(*strict.Node) {
	if g.Increase == nil {
		g.Increase = &quantity.Bound[quantity.Percent]{Op: quantity.AtMost, Value: 0.05}
	}
}

func (g *CubinGrowthGate) check(n *strict.Node, _ rest) {
	if g.Increase.Lower() {
		n.Child("increase").Errorf("%q asks for an increase (write \"<=\")", g.Increase)
	}
}

func (g *CubinGrowthGate) compare(l *compare.List, path string, old *CubinGrowthGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareBound(l, path+".increase", old.Increase, g.Increase, compare.Tightens)
}

func (g *CubinGrowthGate) narrow([]string, []int64) *CubinGrowthGate { return g }
