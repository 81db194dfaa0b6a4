package hindsight

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A Power is how the performance gate of a policy does on the noise of one device: for one goal, on
// one shape.
type Power struct {
	Device string   `json:"device"`
	Rules  []string `json:"rules"` // that have the goal
	Role   string   `json:"role"`  // target or guard
	Goal   string   `json:"goal"`
	// Needs says why nothing was simulated: how much more has to be recorded.
	Needs  string  `json:"needs,omitempty"`
	Rates  []Rate  `json:"rates,omitempty"` // the first is a kernel exactly at the threshold
	Allows float64 `json:"allows"`          // the error rate of the policy, one-sided

	threshold float64 // baseline/candidate
	gate      *policy.PerformanceGate
	noise     *Noise
	model     simulate.Model
}

// A Rate is how often a kernel with a known speedup passes.
type Rate struct {
	Speedup float64 `json:"speedup"` // the truth
	Runs    int     `json:"runs"`
	Passed  int     `json:"passed"`
	Errors  int     `json:"errors,omitempty"` // verdicts that blame the runner
	Rounds  float64 `json:"rounds"`           // on average, until the verdict
	Lower   float64 `json:"lower"`            // of the share that passes, 95 %
	Upper   float64 `json:"upper"`
}

// margins are how far above the threshold true speedups are tried.
var margins = []float64{0, 0.01, 0.02, 0.03, 0.05}

// Powers lists what can be simulated for a policy: each goal that compares with the baseline, on the
// noise of each device. Rules that ask the same are one entry.
func Powers(p *policy.Policy, devices []*Noise) []*Power {
	var all []*Power
	for _, noise := range devices {
		var here []*Power
		for _, rule := range p.Rules {
			gate := rule.Gates.Performance
			if gate == nil {
				continue
			}
			for _, goal := range []struct {
				role string
				*policy.Goal
			}{{"target", gate.Target}, {"guard", gate.Guard}} {
				if goal.Goal == nil || goal.Ratio() == 0 {
					continue
				}
				one := &Power{
					Device: noise.Device, Rules: []string{rule.Name}, Role: goal.role, Goal: asked(goal.Goal), threshold: goal.Ratio(),
					Allows: (1 - float64(gate.Confidence)) / 2, noise: noise, gate: alone(gate, goal.Goal, goal.role),
				}
				if i := slices.IndexFunc(here, func(o *Power) bool { return o.Role == one.Role && reflect.DeepEqual(o.gate, one.gate) }); i >= 0 {
					here[i].Rules = append(here[i].Rules, rule.Name)
					continue
				}
				here = append(here, one)
			}
		}
		for _, one := range here {
			one.prepare()
		}
		all = append(all, here...)
	}
	return all
}

// asked is the part of a goal that is simulated.
func asked(g *policy.Goal) string {
	var parts []string
	if g.Speedup != nil {
		parts = append(parts, "speedup "+g.Speedup.String())
	}
	if g.LatencyReduction != nil {
		parts = append(parts, "latency reduction "+g.LatencyReduction.String())
	}
	return strings.Join(parts, " and ")
}

// alone is the gate with one goal, on one shape. A time in microseconds and the kernel's best cannot
// be simulated.
func alone(gate *policy.PerformanceGate, goal *policy.Goal, role string) *policy.PerformanceGate {
	own, g := *gate, &policy.Goal{Shapes: policy.Shapes{All: true}, Speedup: goal.Speedup, LatencyReduction: goal.LatencyReduction}
	own.Target, own.Guard, own.SecretShape = nil, nil, new(false)
	if role == "target" {
		own.Target = g
	} else {
		own.Guard = g
	}
	own.Pairs = min(own.Pairs, maxPairs)
	return &own
}

// maxPairs bounds the work of a simulated round.
const maxPairs quantity.Count = 100

// prepare sets the truths, or says what is missing.
func (p *Power) prepare() {
	last := int(p.gate.Rounds.Max)
	records := p.noise.usable(last)
	if len(records) == 0 {
		p.Needs = fmt.Sprintf("at least 2 runs on one shape with %d rounds together, as many as the policy measures; recorded are %s of %s on %s",
			last, counted(p.noise.Rounds, "round"), counted(p.noise.Controls, "control"), counted(p.noise.Shapes, "shape"))
		return
	}
	p.model = simulate.Recorded(p.Device, records, true)
	truths := slices.Clone(margins)
	if equal := 1 - p.threshold; p.threshold < 1 && !slices.ContainsFunc(truths, func(m float64) bool { return near(m, equal) }) {
		truths = append(truths, equal) // an equal kernel
		slices.Sort(truths)
	}
	for _, margin := range truths {
		p.Rates = append(p.Rates, Rate{Speedup: p.threshold - 1 + margin})
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// Simulate takes so many runs of every truth through the gate, until ctx ends: the k-th run of all
// of them, then the next, so that each has as many. A run depends on the seed and its number only.
func Simulate(ctx context.Context, all []*Power, runs int, seed uint64, progress func(done int)) {
	sim := gates.NewSimulator()
	for run := range runs {
		for at, p := range all {
			for i := range p.Rates {
				if ctx.Err() != nil {
					return
				}
				p.Rates[i].add(p.run(sim, p.Rates[i].Speedup, rand.New(rand.NewPCG(seed, uint64(run)<<32|uint64(at)<<8|uint64(i)))))
			}
		}
		progress(run + 1)
	}
}

// run is the verdict on one simulated run. The judge goes by the first look that decides, and does
// not see the rounds behind it.
func (p *Power) run(sim *gates.Simulator, speedup float64, rng *rand.Rand) *gates.Verdict {
	next := simulate.Machine{Model: p.model, Ratio: 1 + speedup, Blocks: int(p.gate.Pairs)}.Start(rng)
	rounds := make([]simulate.Samples, int(p.gate.Rounds.Max))
	for i := range rounds {
		rounds[i] = next()
	}
	return sim.Judge(policyOf(p.gate), p.noise.evidence(rounds))
}

// policyOf is a policy that has a performance gate and nothing else.
func policyOf(gate *policy.PerformanceGate) *policy.Policy {
	return &policy.Policy{Version: policy.Version, Rules: []policy.Rule{{Name: "default", Gates: policy.Gates{Performance: gate}}}}
}

func (r *Rate) add(v *gates.Verdict) {
	switch v.Outcome {
	case gates.Pass:
		r.Passed++
	case gates.Error:
		r.Errors++
	}
	if v.Measuring != nil {
		r.Rounds = (r.Rounds*float64(r.Runs) + float64(v.Measuring.Rounds)) / float64(r.Runs+1)
	}
	r.Runs++
	r.Lower, r.Upper = clopperPearson(r.Passed, r.Runs)
}

// clopperPearson is the exact 95 % interval of a share.
func clopperPearson(of, all int) (lower, upper float64) {
	const tail = 0.025
	upper = 1
	if of > 0 {
		lower = distuv.Beta{Alpha: float64(of), Beta: float64(all - of + 1)}.Quantile(tail)
	}
	if of < all {
		upper = distuv.Beta{Alpha: float64(of + 1), Beta: float64(all - of)}.Quantile(1 - tail)
	}
	return lower, upper
}
