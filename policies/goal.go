package policies

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Goal is conditions on shapes. Speedup is baseline/candidate − 1, latency
// reduction is 1 − candidate/baseline; p50 and p90 are the candidate's own
// latency.
type Goal struct {
	Shapes           Shapes                            `yaml:"shapes" eg:"[mission]" default:"all" doc:"Shapes of the manifest."`
	Speedup          *quantity.Bound[quantity.Percent] `yaml:"speedup" eg:">= +10%" bounds:"(>= or >, above -100%)" doc:"baseline/candidate − 1."`
	LatencyReduction *quantity.Bound[quantity.Percent] `yaml:"latency_reduction" eg:">= 9%" bounds:"(>= or >, below 100%)" doc:"1 − candidate/baseline."`
	P50              *quantity.Bound[quantity.Micros]  `yaml:"p50" eg:"<= 5us" bounds:"(<= or <, above 0us)" doc:"The candidate's median latency."`
	P90              *quantity.Bound[quantity.Micros]  `yaml:"p90" eg:"<= 6us" bounds:"(<= or <, above 0us)" doc:"The latency that nine of ten of the candidate's launches keep to."`
}

func (g *Goal) empty() bool { return g.Speedup == nil && g.LatencyReduction == nil && !g.Timed() }

// Timed tells whether the goal bounds a time by itself.
func (g *Goal) Timed() bool { return g.P50 != nil || g.P90 != nil }

func (g Goal) String() string {
	var parts []string
	if g.Speedup != nil {
		parts = append(parts, "speedup "+g.Speedup.String())
	}
	if g.LatencyReduction != nil {
		parts = append(parts, "latency reduction "+g.LatencyReduction.String())
	}
	if g.P50 != nil {
		parts = append(parts, "p50 "+g.P50.String())
	}
	if g.P90 != nil {
		parts = append(parts, "p90 "+g.P90.String())
	}
	return fmt.Sprintf("%s on %s", strings.Join(parts, " and "), g.Shapes)
}

func (g *Goal) check(n *strict.Node) {
	if g.empty() {
		n.Errorf("names no metric (write e.g. speedup: \">= +10%%\")")
	}
	switch b := g.Speedup; {
	case b == nil:
	case !b.Lower():
		n.Child("speedup").Errorf("%q asks for a slow kernel (write \">=\")", b)
	case b.Value <= -1:
		n.Child("speedup").Errorf("%q can never fail: a speedup is always above -100%% (write e.g. \">= -2%%\")", b)
	}
	switch b := g.LatencyReduction; {
	case b == nil:
	case !b.Lower():
		n.Child("latency_reduction").Errorf("%q asks for a slow kernel (write \">=\")", b)
	case b.Value >= 1:
		n.Child("latency_reduction").Errorf("%q can never be met: a reduction is always below 100%% (write e.g. \">= 9%%\")", b)
	}
	checkLatency(n.Child("p50"), g.P50)
	checkLatency(n.Child("p90"), g.P90)
}

func checkLatency(n *strict.Node, b *quantity.Bound[quantity.Micros]) {
	switch {
	case b == nil:
	case b.Lower():
		n.Errorf("%q asks for a slow kernel (write \"<=\")", b)
	case b.Value == 0:
		n.Errorf("%q can never be met: every kernel takes time (write e.g. \"<= 5us\")", b)
	}
}
