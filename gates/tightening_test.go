package gates

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// anyPolicy draws what may be asked of a run of one shape. Figures are few, so that two
// policies often agree in most of them.
func anyPolicy(t testing.TB, rng *rand.Rand) *policy.Policy {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	text := fmt.Sprintf(`version: 1
gates:
  correctness: {shapes: [mission], seeds: %s, secret_cases: %s, norm_error: "<= %s", required: true}
  performance:
    target: {shapes: [mission], speedup: ">= %s"%s}
    tails: %s
    confidence: %s
    rounds: {min: 6, max: 20}
    interims: %s
    control: %s
rules:
  - name: default
`, pick("[0]", "[0]", "[0, 1]"), pick("0", "0", "0", "2"), pick("1%", "0.02%", "0.001%"), pick("+5%", "+8%", "+10%", "+14%"),
		pick("", "", `, p50: "<= 95us"`, `, p50: "<= 90us"`), pick("none", "{mean: 3%, p90: none}", "{mean: 9%, p90: none}", "{mean: 1%, p90: 20%}"),
		pick("90%", "95%", "95%", "99%"), pick("[6, 13, 20]", "[6, 13, 20]", "[6, 20]"), pick("2%", "2%", "1%", "40%"))
	return parsePolicy(t, text)
}

// Rules that only tighten let nothing pass that was deferred: what is called tightening
// passes without anybody's word.
func TestTighteningPassesNothing(t *testing.T) {
	models := noiseModels()
	tightened, deferred, loosened := 0, 0, 0
	for seed := range uint64(700) {
		rng := newRand(31, seed)
		old, edited := anyPolicy(t, rng), anyPolicy(t, rng)
		if rng.IntN(2) == 0 { // one field alone
			*edited = *anyEdit(t, rng, old)
		}
		list := policy.Compare(old, edited)
		if len(list) == 0 || list.Loosens() && rng.IntN(12) > 0 {
			continue
		}
		e := anyRun(rng, models, []int{6, 13, 20}[rng.IntN(3)])
		before := judgeQuickly(old, e)
		if before.Outcome != Defer {
			continue
		}
		deferred++
		after := judgeQuickly(edited, e)
		switch {
		case list.Loosens() && after.Outcome == Pass:
			loosened++
		case !list.Loosens():
			tightened++
			if after.Outcome == Pass {
				t.Errorf("run %d: DEFER (%s) passes by what is called tightening:\n%v\n%s\n%s", seed, before.Reason, list, before.Summary, after.Summary)
			}
		}
	}
	if tightened < 30 || loosened < 3 {
		t.Errorf("%d deferred runs: %d tightened, %d passed by loosening: that is no test", deferred, tightened, loosened)
	}
}

// anyEdit is the policy with a field of another, stricter or milder.
func anyEdit(t testing.TB, rng *rand.Rand, p *policy.Policy) *policy.Policy {
	edited, other := *p, anyPolicy(t, rng)
	rule, with := p.Rules[0], other.Rules[0]
	perf, right := *rule.Gates.Performance, *rule.Gates.Correctness
	switch rng.IntN(6) {
	case 0:
		goal := *perf.Target
		goal.Speedup = &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: goal.Speedup.Value + quantity.Percent(0.1*(rng.Float64()-0.3))}
		perf.Target = &goal
	case 1:
		perf.Tails = with.Gates.Performance.Tails
	case 2:
		perf.Control = with.Gates.Performance.Control
	case 3:
		right.Norm = with.Gates.Correctness.Norm
	case 4:
		right.Seeds, right.SecretCases = with.Gates.Correctness.Seeds, with.Gates.Correctness.SecretCases
	case 5:
		no := rng.IntN(2) == 0
		perf.Required = &no
	}
	rule.Gates.Performance, rule.Gates.Correctness = &perf, &right
	edited.Rules = []policy.Rule{rule}
	return &edited
}

// gatheredFor is what a runner gathers for a policy about a kernel that takes one way for constant inputs and another for
// all others: the policy says which inputs are timed and compared.
func gatheredFor(p *policy.Policy, seed uint64, model noiseModel, ratio, constant float64) *Evidence {
	gate := p.Rules[0].Gates.Correctness
	kinds := gate.Distributions
	m := machine{model: model, ratio: ratio, blocks: 8}
	m.alter = func(_, block int, side rune, ns float64) float64 {
		if side == SideCandidate && string(kinds[block%len(kinds)]) == "constant" {
			return ns * ratio / constant
		}
		return ns
	}
	e := m.measured(newRand(34, seed), 20)
	first := e.Correctness.Cases[0]
	e.Correctness.Cases = nil
	for _, d := range kinds {
		for _, s := range gate.Seeds {
			k := first
			k.Distribution, k.Seed = string(d), uint64(s)
			e.Correctness.Cases = append(e.Correctness.Cases, k)
		}
	}
	for r := range e.Performance.Rounds {
		for _, d := range kinds {
			e.Performance.Rounds[r].Series[0].Distributions = append(e.Performance.Rounds[r].Series[0].Distributions, string(d))
		}
	}
	return e
}

// A policy also says what is measured. Rules that only tighten let no kernel pass that was deferred, although it is measured
// again by them.
func TestTighteningPassesNothingMeasuredAgain(t *testing.T) {
	models := noiseModels()
	with := func(p *policy.Policy, kinds string) *policy.Policy {
		edited, rule := *p, p.Rules[0]
		right := *rule.Gates.Correctness
		right.Distributions = parsePolicy(t, "version: 1\ngates: {correctness: {shapes: all, norm_error: \"<= 1%\", distributions: "+kinds+"}}\nrules: [{name: default}]\n").Rules[0].Gates.Correctness.Distributions
		rule.Gates.Correctness = &right
		edited.Rules = []policy.Rule{rule}
		return &edited
	}
	lists := []string{"[normal]", "[normal]", "[normal, large]", "[normal, constant]", "[constant, normal]", "[normal, large, constant]"}
	tightened, passed := 0, 0
	for seed := range uint64(60) {
		rng := newRand(33, seed)
		old := with(anyPolicy(t, rng), lists[rng.IntN(len(lists))])
		edited := with(anyEdit(t, rng, old), lists[rng.IntN(len(lists))])
		list := policy.Compare(old, edited)
		if len(list) == 0 {
			continue
		}
		model, ratio, constant := models[rng.IntN(len(models))], 1+0.1*rng.Float64(), 1+2*rng.Float64()
		if judgeQuickly(old, gatheredFor(old, seed, model, ratio, constant)).Outcome != Defer {
			continue
		}
		after := judgeQuickly(edited, gatheredFor(edited, seed, model, ratio, constant))
		switch {
		case list.Loosens() && after.Outcome == Pass:
			passed++
		case !list.Loosens():
			tightened++
			if after.Outcome == Pass {
				t.Errorf("run %d passes by what is called tightening:\n%v\n%s", seed, list, after.Summary)
			}
		}
	}
	if tightened < 3 || passed < 3 {
		t.Errorf("%d tightened, and %d passed by loosening: that is no test", tightened, passed)
	}
}
