package hindsight

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A Suggestion is the smallest guard of a device that had no alarm: by which no recorded A/A control,
// judged as if it were a candidate, is a proven regression.
type Suggestion struct {
	Device string `json:"device"`
	// Needs says why there is none: how much has to be recorded.
	Needs string `json:"needs,omitempty"`
	// Guard is the slowdown that it allows, 0.02 for speedup: ">= -2%".
	Guard    float64 `json:"guard,omitempty"`
	Controls int     `json:"controls"`                // that it rests on
	Passed   int     `json:"passed"`                  // of them, with the rounds that were recorded; the others would need more
	AllPass  float64 `json:"all_pass_from,omitempty"` // the smallest guard by which all of them pass so
	AlarmsAt int     `json:"alarms_at_smaller"`       // alarms at the next smaller guard
	// Below is what so many silent controls prove about the rate of alarms, at 95 %.
	Below float64 `json:"alarm_rate_below,omitempty"`
}

// Guards are tried in steps of half a percent.
const guardStep, maxGuard = 0.005, 0.2

// Suggest finds the smallest guard for each device, with the gate of the policy's default rule, until
// ctx ends.
func Suggest(ctx context.Context, p *policy.Policy, devices []*Noise) []Suggestion {
	gate := p.Rules[len(p.Rules)-1].Gates.Performance
	var all []Suggestion
	for _, n := range devices {
		s := Suggestion{Device: n.Device}
		runs := n.asCandidates()
		switch {
		case gate == nil:
			s.Needs = "a default rule with a performance gate, whose confidence and interim analyses it would use"
		case len(runs) == 0:
			s.Needs = fmt.Sprintf("2 runs on one shape with %d rounds each; recorded are %s on %s", policy.MinRounds, counted(n.Controls, "control"), counted(n.Shapes, "shape"))
		default:
			s.find(ctx, gate, runs)
		}
		all = append(all, s)
	}
	return all
}

// asCandidates is the recorded controls as candidates: the rounds of each as they were recorded, with
// the next record on the same shape as its control.
func (n *Noise) asCandidates() []*gates.Evidence {
	var runs []*gates.Evidence
	all := n.byShape()
	for _, shape := range slices.Sorted(maps.Keys(all)) {
		records := slices.DeleteFunc(all[shape], func(c simulate.RecordedControl) bool { return len(c.Rounds) < policy.MinRounds })
		for i, c := range records {
			if len(records) > 1 {
				runs = append(runs, n.evidence(paired(c, records[(i+1)%len(records)])))
			}
		}
	}
	return runs
}

// paired lays the ratios of two records side by side, block by block.
func paired(candidate, control simulate.RecordedControl) []simulate.Samples {
	var rounds []simulate.Samples
	for i := range min(len(candidate.Rounds), len(control.Rounds)) {
		c, a := candidate.Rounds[i], control.Rounds[i]
		var order []string
		s := simulate.Samples{}
		for k := range min(len(c), len(a)) {
			order = append(order, string([]rune{simulate.Baseline, simulate.Candidate, simulate.Control}))
			s.Nanos = append(s.Nanos, simulate.Nanos, simulate.Nanos*math.Exp(-c[k]-candidate.Offset), simulate.Nanos*math.Exp(-a[k]-control.Offset))
		}
		s.Order = strings.Join(order, " ")
		rounds = append(rounds, s)
	}
	return rounds
}

func (s *Suggestion) find(ctx context.Context, gate *policy.PerformanceGate, runs []*gates.Evidence) {
	sim := gates.NewSimulator()
	s.Controls = len(runs)
	for step := 1; float64(step)*guardStep <= maxGuard; step++ {
		guard := float64(step) * guardStep
		alarms, passed := 0, 0
		for _, e := range runs {
			if ctx.Err() != nil {
				if s.Guard == 0 {
					s.Needs = "more time (raise --limit)"
				}
				return
			}
			switch v := sim.Judge(guarded(gate, guard, len(e.Performance.Rounds)), e); {
			case v.Outcome == gates.Pass:
				passed++
			case v.Reason == gates.ReasonRegression:
				alarms++
			}
		}
		switch {
		case alarms > 0 && s.Guard == 0:
			s.AlarmsAt = alarms
		case s.Guard == 0:
			s.Guard, s.Passed = guard, passed
			// So many silent runs are likely, with more than 5 %, at any smaller rate: the rule of three.
			s.Below = 1 - math.Pow(0.05, 1/float64(len(runs)))
		}
		if s.Guard > 0 && passed == len(runs) {
			s.AllPass = guard
			return
		}
	}
	if s.Guard > 0 {
		return
	}
	s.Needs = fmt.Sprintf("a quieter device: there are alarms up to %.0f %%", 100*maxGuard)
}

// guarded is a policy that allows so much slowdown, and decides with the rounds that were recorded.
func guarded(gate *policy.PerformanceGate, slowdown float64, rounds int) *policy.Policy {
	own := alone(gate, &policy.Goal{Speedup: &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: quantity.Percent(-slowdown)}}, "guard")
	p := policyOf(own)
	p.AtMost(rounds)
	return p
}
