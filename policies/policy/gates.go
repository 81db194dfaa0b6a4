package policy

import (
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Gates are what a change must pass, in this order. A gate set to none is not run.
type Gates struct {
	Build       BuildGate        `yaml:"build" eg:"{timeout: 15m}" doc:"The kernel compiles."`
	PTXAS       *PTXASGate       `yaml:"ptxas" eg:"{registers: {max: 128}}" doc:"Registers, shared memory, spills and occupancy as the compiler reports them."`
	CubinGrowth *CubinGrowthGate `yaml:"cubin_growth" eg:"{increase: \"<= 5%\"}" doc:"How much more machine code the candidate has than the baseline: instruction caches are small, and unrolled loops grow unnoticed."`
	Correctness *CorrectnessGate `yaml:"correctness" eg:"{norm_error: \"<= 1%\"}" doc:"The output is compared with that of the reference."`
	Precision   *PrecisionGate   `yaml:"precision" eg:"{loss: \"<= 10\"}" default:"(asked if correctness is)" doc:"The output is compared with that of the baseline: it may not become much less precise, even within the tolerance."`
	Sanitize    *SanitizeGate    `yaml:"sanitize" eg:"{shapes: [small]}" doc:"Tools that check every memory access look for races, bad accesses and reads of unwritten memory."`
	Performance *PerformanceGate `yaml:"performance" eg:"{target: {speedup: \">= +10%\"}}" doc:"The times of the candidate are compared with those of the baseline, by confidence intervals."`
	Energy      *EnergyGate      `yaml:"energy" eg:"<= +5%" doc:"How much more energy a launch of the candidate takes than one of the baseline."`
	Profile     *ProfileGate     `yaml:"profile" eg:"{all: [{sm__throughput.avg.pct_of_peak_sustained_elapsed: \">= 50%\"}]}" doc:"Conditions on profiler metrics."`

	// OnlyExplain profiles both sides on its shapes after the build, and measures nothing: somebody asks why times differ. No
	// policy can say it; see [Policy.OnlyExplain].
	OnlyExplain *Explain `yaml:"-"`
}

// Enforcement has the fields that every gate has.
type Enforcement struct {
	Required *bool `yaml:"required" eg:"true" default:"(true)" doc:"false: the gate only informs and does not decide. The build gate always decides."`
}

// Deadline has the field of every gate that does work itself. The ptxas gate has none: it judges
// what the build has produced.
type Deadline struct {
	Timeout quantity.Duration `yaml:"timeout" eg:"10m" default:"(10m for build, 5m for sanitize)" doc:"Time limit for the work of the gate."`
}

// Decides reports whether the gate can defer a change.
func (e Enforcement) Decides() bool { return e.Required == nil || *e.Required }

// A gate is what a rule asks of a change in one respect. Its file has everything that a policy says about it: the keys, their
// defaults and checks, its words, and which of two versions asks more. What a gate finds is in package gates.
type gate interface {
	Decides() bool
	String() string                    // what it asks, for people
	fill(n *strict.Node)               // sets fields that were left out, after all layers were read: a default must not hide what a lower layer says, even if that is wrong
	check(n *strict.Node, beside rest) // reports combinations of fields that make no sense
	inputs() []Inputs
}

// gateOf is a gate of one type.
type gateOf[G any] interface {
	*G
	gate
	compare(l *compare.List, path string, old *G) // both rules have it
	narrow(shapes []string, seeds []int64) *G     // as Policy.Narrow; it returns a copy if it changes something
}

// rest is the other gates of the rule, and the node that has all of them.
type rest struct {
	gates *Gates
	node  *strict.Node
}

// Inputs are shapes that a gate measures.
type Inputs struct {
	Field  string // that names them, after the gates
	Shapes Shapes
	Secret bool // it measures random ones as well
}

func (Enforcement) fill(*strict.Node) {}
func (Enforcement) inputs() []Inputs  { return nil }

// declared is a gate in the list of all gates.
type declared struct {
	name    string
	runs    bool              // it runs the kernel
	asked   func(*Gates) gate // nil if the rule does not have it
	drop    func(*Gates)
	narrow  func(g *Gates, shapes []string, seeds []int64)
	compare func(l *compare.List, path string, old, new *Gates)
}

// declare returns the entry of the gate that field finds. comes is the direction of a policy to which the gate is added.
func declare[G any, P gateOf[G]](name string, runs bool, comes compare.Direction, field func(*Gates) **G) declared {
	return declared{
		name: name, runs: runs,
		asked: func(g *Gates) gate {
			if own := *field(g); own != nil {
				return P(own)
			}
			return nil
		},
		drop: func(g *Gates) { *field(g) = nil },
		narrow: func(g *Gates, shapes []string, seeds []int64) {
			if own := *field(g); own != nil {
				*field(g) = P(own).narrow(shapes, seeds)
			}
		},
		compare: func(l *compare.List, path string, old, new *Gates) {
			if was, is := *field(old), *field(new); compare.Both(l, path, was, is, comes) {
				P(is).compare(l, path, was)
			}
		},
	}
}

// inOrder is every gate, in the order in which they run.
var inOrder = []declared{
	buildDeclared,
	declare("ptxas", false, compare.Tightens, func(g *Gates) **PTXASGate { return &g.PTXAS }),
	declare("cubin_growth", false, compare.Tightens, func(g *Gates) **CubinGrowthGate { return &g.CubinGrowth }),
	declare("correctness", true, compare.Changes, func(g *Gates) **CorrectnessGate { return &g.Correctness }),
	declare("precision", true, compare.Tightens, func(g *Gates) **PrecisionGate { return &g.Precision }),
	declare("sanitize", true, compare.Tightens, func(g *Gates) **SanitizeGate { return &g.Sanitize }),
	declare("performance", true, compare.Tightens, func(g *Gates) **PerformanceGate { return &g.Performance }),
	declare("energy", true, compare.Tightens, func(g *Gates) **EnergyGate { return &g.Energy }),
	declare("profile", true, compare.Tightens, func(g *Gates) **ProfileGate { return &g.Profile }),
}

// Asks returns whether a rule has the gate of that name, and how it is enforced.
func (g *Gates) Asks(name string) (decides, asked bool) {
	for _, d := range inOrder {
		if own := d.asked(g); d.name == name && own != nil {
			return own.Decides(), true
		}
	}
	return false, false
}

// Inputs returns the shapes that the gates measure, gate by gate.
func (g *Gates) Inputs() (all []Inputs) {
	for _, d := range inOrder {
		if own := d.asked(g); own != nil {
			all = append(all, own.inputs()...)
		}
	}
	return all
}

func (g *Gates) fill(n *strict.Node) {
	g.byDefault(n)
	for _, d := range inOrder {
		if own := d.asked(g); own != nil {
			own.fill(n.Child(d.name))
		}
	}
}

func (g *Gates) check(n *strict.Node) {
	for _, d := range inOrder {
		if own := d.asked(g); own != nil {
			own.check(n.Child(d.name), rest{g, n})
		}
	}
}

func compareGates(path string, old, new Gates) compare.List {
	var l compare.List
	for _, d := range inOrder {
		d.compare(&l, path+"."+d.name, &old, &new)
	}
	return l
}
