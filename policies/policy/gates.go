package policy

import (
	"cmp"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Gates are what a change must pass, in this order. A gate set to none is not run.
type Gates struct {
	Build       BuildGate        `yaml:"build" eg:"{timeout: 15m}" doc:"The kernel compiles."`
	PTXAS       *PTXASGate       `yaml:"ptxas" eg:"{registers: {max: 128}}" doc:"Registers, shared memory, spills and occupancy as the compiler reports them."`
	Correctness *CorrectnessGate `yaml:"correctness" eg:"{norm_error: \"<= 1%\"}" doc:"The output is compared with that of the reference."`
	Sanitize    *SanitizeGate    `yaml:"sanitize" eg:"{shapes: [small]}" doc:"Tools that check every memory access look for races, bad accesses and reads of unwritten memory."`
	Performance *PerformanceGate `yaml:"performance" eg:"{target: {speedup: \">= +10%\"}}" doc:"The times of the candidate are compared with those of the baseline, by confidence intervals."`
	Profile     *ProfileGate     `yaml:"profile" eg:"{all: [{sm__throughput.avg.pct_of_peak_sustained_elapsed: \">= 50%\"}]}" doc:"Conditions on profiler metrics."`
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

// A BuildGate only asks that the compiler succeeds in time.
type BuildGate struct {
	Enforcement
	Deadline
}

// fill sets fields that were left out. It runs after all layers were read: a default must not hide
// what a lower layer says, even if that is wrong.
func (g *Gates) fill(n *strict.Node) {
	g.Build.Timeout = cmp.Or(g.Build.Timeout, quantity.Duration(10*time.Minute))
	if g.Correctness != nil {
		g.Correctness.fill(n.Child("correctness"))
	}
	if g.Sanitize != nil {
		g.Sanitize.fill(n.Child("sanitize"))
	}
	if g.Performance != nil {
		g.Performance.fill(n.Child("performance"))
	}
	if g.Profile != nil {
		g.Profile.Shapes.fill()
	}
}

// check checks combinations of fields.
func (g *Gates) check(n *strict.Node) {
	if !g.Build.Decides() {
		n.Child("build", "required").Errorf("a kernel that does not compile passes nothing (delete it)")
	}
	if g.PTXAS != nil {
		g.PTXAS.check(n.Child("ptxas"))
	}
	if g.Correctness != nil {
		g.Correctness.check(n.Child("correctness"))
	}
	if g.Sanitize != nil {
		g.Sanitize.check(n.Child("sanitize"))
	}
	if g.Performance != nil {
		g.Performance.check(n.Child("performance"))
		if g.Correctness == nil || !g.Correctness.Decides() {
			// Report it at the rule that removes the gate, where the author can fix it.
			at := n.Child("performance")
			if n.Has("correctness") {
				at = n.Child("correctness")
			}
			at.Errorf("a kernel's speed is judged only after its output (add a required correctness gate, or write performance: none)")
		}
	}
	if g.Profile != nil && len(g.Profile.All)+len(g.Profile.Any) == 0 {
		n.Child("profile").Errorf("asks for no metric (write all or any)")
	}
}
