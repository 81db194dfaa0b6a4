package gates

// A Gate is one of the steps that a policy asks for, by its name there.
type Gate string

const (
	GateBuild       Gate = "build"
	GatePTXAS       Gate = "ptxas"
	GateCubinGrowth Gate = "cubin_growth"
	GateCorrectness Gate = "correctness"
	GatePrecision   Gate = "precision"
	GateSanitize    Gate = "sanitize"
	GatePerformance Gate = "performance"
	GateEnergy      Gate = "energy"
	GateProfile     Gate = "profile"
)

// Title is the name of the gate on a kind of device. A policy calls the budgets of resources ptxas,
// after the tool that reports them on a GPU; a CPU has no such tool.
func (g Gate) Title(kind string) string {
	if g == GatePTXAS && kind == DeviceCPU {
		return "resources"
	}
	return string(g)
}

// declared is a gate in the list of all gates: how it judges, and what evidence it needs. What it asks is in package policy,
// under the same name.
type declared struct {
	name  Gate
	judge func(*judgement) GateResult
	// gathered returns how long its evidence took, and whether there is any. It is nil for a gate that judges what the build
	// has produced.
	gathered func(*Evidence) (seconds float64, ok bool)
	// known reports whether the evidence can say anything about the gate; nil for always. Without such
	// evidence the gate has no result.
	known func(*Evidence) bool
	// needs returns the evidence that is missing, if it is more than the evidence of the gate; nil as a rule.
	needs func(*judgement, GateResult) Need
}

// inOrder is every gate, in the order in which they run.
var inOrder = []declared{
	{name: GateBuild, judge: (*judgement).build},
	{name: GatePTXAS, judge: (*judgement).ptxas},
	{name: GateCubinGrowth, judge: (*judgement).cubinGrowth},
	{name: GateCorrectness, judge: (*judgement).correctness, gathered: func(e *Evidence) (float64, bool) {
		return secondsOf(e.Correctness, func(c *Correctness) float64 { return c.Seconds })
	}},
	{name: GatePrecision, judge: (*judgement).precision, known: precisionKnown},
	{name: GateSanitize, judge: (*judgement).sanitize, gathered: func(e *Evidence) (float64, bool) {
		return secondsOf(e.Sanitize, func(s *Sanitize) float64 { return s.Seconds })
	}},
	{name: GatePerformance, judge: (*judgement).speed, gathered: func(e *Evidence) (float64, bool) {
		return secondsOf(e.Performance, func(p *Performance) float64 { return p.Seconds })
	}, needs: (*judgement).needsRounds},
	{name: GateEnergy, judge: (*judgement).energy, gathered: func(e *Evidence) (float64, bool) {
		return secondsOf(e.Energy, func(m *Energy) float64 { return m.Seconds })
	}},
	{name: GateProfile, judge: (*judgement).profile, gathered: func(e *Evidence) (float64, bool) {
		return secondsOf(e.Profile, func(p *Profile) float64 { return p.Seconds })
	}},
}

// Static reports whether the gate judges what the build has produced. Such gates come before the first one for which something runs.
func (g Gate) Static() bool {
	for _, d := range inOrder {
		if d.gathered != nil {
			return false
		}
		if d.name == g {
			return true
		}
	}
	return false
}

func secondsOf[T any](part *T, seconds func(*T) float64) (float64, bool) {
	if part == nil {
		return 0, false
	}
	return seconds(part), true
}

// Names returns every gate, in the order in which they run.
func Names() []Gate {
	var all []Gate
	for _, g := range inOrder {
		all = append(all, g.name)
	}
	return all
}

// declaration returns the entry of a gate.
func declaration(name Gate) declared {
	for _, g := range inOrder {
		if g.name == name {
			return g
		}
	}
	return declared{name: name}
}

// Gathered returns how long it took to gather the evidence of a gate, and whether there is any. The evidence of a gate that
// judges the build is the build, which only the first of them counts.
func (e *Evidence) Gathered(name Gate) (seconds float64, ok bool) {
	if name == GateBuild {
		for _, b := range []*Build{e.Baseline, e.Candidate} {
			if b != nil {
				seconds += b.Seconds
			}
		}
		return seconds, e.Candidate != nil
	}
	if g := declaration(name); g.gathered != nil {
		return g.gathered(e)
	}
	return 0, false
}

// Measured reports whether there is evidence that only a run of the kernel gives.
func (e *Evidence) Measured() bool {
	for _, g := range inOrder {
		if g.gathered != nil {
			if _, ok := g.gathered(e); ok {
				return true
			}
		}
	}
	return false
}
