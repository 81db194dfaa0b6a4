package hindsight

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Evidence names the sides as the simulation does.
func TestSides(t *testing.T) {
	if gates.SideBaseline != simulate.Baseline || gates.SideCandidate != simulate.Candidate || gates.SideControl != simulate.Control {
		t.Error("the sides have different letters")
	}
}

// recorded is evidence of a run with so many rounds whose control is off by offset as a whole, and by
// noise in every round and block.
func recorded(device, shape string, rounds int, offset, noise float64, seed uint64) *gates.Evidence {
	rng := rand.New(rand.NewPCG(seed, 5))
	e := &gates.Evidence{Kernel: "k", Device: gates.Device{Kind: "gpu", Name: device}, Performance: &gates.Performance{}}
	for range rounds {
		s := gates.Series{Shape: shape, Batch: 1, Seed: 1, Verified: 1}
		level := offset + noise*rng.NormFloat64()
		for block := range 20 {
			if block > 0 {
				s.Order += " "
			}
			s.Order += "bca"
			s.Nanos = append(s.Nanos, 1e5, 9e4, 1e5*math.Exp(level+noise*rng.NormFloat64()))
		}
		e.Performance.Rounds = append(e.Performance.Rounds, gates.Round{Attempt: 1, Series: []gates.Series{s}})
	}
	return e
}

func devices(all ...*gates.Evidence) []*Noise {
	var r Recorder
	for _, e := range all {
		r.Add(e)
	}
	return r.Devices()
}

func testPolicy(t testing.TB, performance string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", fmt.Appendf(nil, "version: 1\ngates:\n  correctness: {norm_error: \"<= 1%%\"}\n  performance: %s\nrules:\n  - {name: easy, when: {labels: [easy]}, gates: {performance: {target: none}}}\n  - name: default\n", performance))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const tenPercent = `{target: {shapes: [mission], speedup: ">= +10%", p50: "<= 5us"}, guard: {speedup: ">= -2%"}, pairs: 20, rounds: {min: 6, max: 12}}`

func quietly(int) {}

// A gate that is simulated on quiet noise passes what is true and not what is exactly at the
// threshold; on loud noise it passes less. The same seed gives the same figures.
func TestSimulate(t *testing.T) {
	long.Test(t)
	const runs = 20
	var quiet, loud []*gates.Evidence
	for i := range uint64(6) {
		quiet = append(quiet, recorded("quiet", "mission", 6, 0, 0.001, i))
		loud = append(loud, recorded("loud", "mission", 6, 0, 0.03, i))
	}
	p := testPolicy(t, tenPercent)
	simulate := func(runs int, seed uint64) []*Power {
		all := Powers(p, devices(append(quiet, loud...)...))
		Simulate(t.Context(), all, runs, seed, quietly)
		return all
	}
	all := simulate(runs, 1)
	if len(all) != 4 || all[0].Device != "loud" || all[2].Device != "quiet" || all[2].Role != "guard" || all[3].Goal != "speedup >= +10%" {
		t.Fatalf("%d: %s", len(all), PowerText(all))
	}
	if rules := strings.Join(all[2].Rules, " "); rules != "easy default" {
		t.Errorf("the guard is that of %s", rules)
	}
	for i, p := range all {
		exactly, above := p.Rates[0], p.Rates[len(p.Rates)-1]
		if exactly.Runs != runs || exactly.Passed > 3 || exactly.Lower > exactly.Upper {
			t.Errorf("%s %s: %+v exactly at the threshold", p.Device, p.Goal, exactly)
		}
		if quiet := i >= 2; quiet && (above.Passed != runs || above.Rounds > 7) || !quiet && above.Passed > runs*3/4 {
			t.Errorf("%s %s: %+v", p.Device, p.Goal, above)
		}
	}
	golden := func(all []*Power) string {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if golden(all) != golden(simulate(runs, 1)) {
		t.Error("the same seed gives different figures")
	}
	if golden(all) == golden(simulate(runs, 2)) {
		t.Error("another seed gives the same figures")
	}
	// A simulation that is cut short is the beginning of the whole one.
	ctx, cancel := context.WithCancel(t.Context())
	cut := Powers(p, devices(append(quiet, loud...)...))
	Simulate(ctx, cut, runs, 1, func(done int) {
		if done == 5 {
			cancel()
		}
	})
	if golden(cut) != golden(simulate(5, 1)) {
		t.Error("a simulation that was cut short differs from its beginning")
	}
}

// What is recorded of too few rounds is not simulated, and the text says how many are needed.
func TestTooFewRounds(t *testing.T) {
	one := recorded("gpu", "mission", 6, 0, 0.001, 1)
	for name, c := range map[string]struct {
		all  []*gates.Evidence
		want string
	}{
		"one run":       {[]*gates.Evidence{one}, "at least 2 runs on one shape with 12 rounds together, as many as the policy measures; recorded are 6 rounds of 1 control on 1 shape"},
		"two shapes":    {[]*gates.Evidence{one, recorded("gpu", "small", 12, 0, 0.001, 2)}, "at least 2 runs on one shape with 12 rounds together, as many as the policy measures; recorded are 18 rounds of 2 controls on 2 shapes"},
		"enough":        {[]*gates.Evidence{one, recorded("gpu", "mission", 6, 0, 0.001, 2)}, ""},
		"a fault":       {[]*gates.Evidence{one, func() *gates.Evidence { e := recorded("gpu", "mission", 6, 0, 0.001, 2); e.Fault = "busy"; return e }()}, "at least 2 runs on one shape with 12 rounds together, as many as the policy measures; recorded are 6 rounds of 1 control on 1 shape"},
		"not timed yet": {[]*gates.Evidence{{Kernel: "k"}}, "none"},
	} {
		all := Powers(testPolicy(t, tenPercent), devices(c.all...))
		if c.want == "none" {
			if len(all) != 0 || !strings.HasPrefix(PowerText(all), "Nothing can be simulated") {
				t.Errorf("%s: %s", name, PowerText(all))
			}
			continue
		}
		if all[0].Needs != c.want || (all[0].Rates == nil) != (c.want != "") {
			t.Errorf("%s: %q, want %q", name, all[0].Needs, c.want)
		}
	}
}

func TestClopperPearson(t *testing.T) {
	for _, c := range []struct {
		of, all      int
		lower, upper float64
	}{
		{0, 240, 0, 0.01525}, {1, 240, 0.0001055, 0.02300}, {240, 240, 0.98475, 1}, {5, 10, 0.18709, 0.81291},
	} {
		if l, u := clopperPearson(c.of, c.all); math.Abs(l-c.lower) > 1e-4 || math.Abs(u-c.upper) > 1e-4 {
			t.Errorf("%d of %d: %v to %v, want %v to %v", c.of, c.all, l, u, c.lower, c.upper)
		}
	}
}

// The smallest guard has no alarm on any control, and half a percent less has one.
func TestSuggest(t *testing.T) {
	var even, slow []*gates.Evidence
	for i := range uint64(10) {
		even = append(even, recorded("even", "mission", 6, 0, 0.0005, i))
		slow = append(slow, recorded("slow", "mission", 6, 0, 0.0005, i))
	}
	slow[4] = recorded("slow", "mission", 6, 0.03, 0.0005, 99) // one run in which a copy was 3 % slower
	all := Suggest(t.Context(), testPolicy(t, tenPercent), devices(append(append(even, slow...), recorded("new", "mission", 6, 0, 0.001, 1))...))
	if len(all) != 3 || all[0].Device != "even" || all[1].Device != "new" {
		t.Fatalf("%+v", all)
	}
	if s := all[0]; s.Guard != 0.005 || s.Controls != 10 || s.AlarmsAt != 0 || math.Abs(s.Below-0.2589) > 1e-3 {
		t.Errorf("%+v", s)
	}
	if s := all[1]; s.Needs != "2 runs on one shape with 6 rounds each; recorded are 1 control on 1 shape" || s.Guard != 0 {
		t.Errorf("%+v", s)
	}
	if s := all[2]; s.Guard < 0.02 || s.Guard > 0.04 || s.AlarmsAt != 1 || s.Passed != 8 {
		t.Errorf("%+v", s)
	}
	bare, err := policy.Parse("p.yaml", []byte("version: 1\ngates: {build: {timeout: 1m}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	none := Suggest(t.Context(), bare, devices(even...))
	if none[0].Needs == "" {
		t.Errorf("%+v", none)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if late := Suggest(ctx, testPolicy(t, tenPercent), devices(even...)); late[0].Needs != "more time (raise --limit)" {
		t.Errorf("%+v", late)
	}
}

// The texts, with figures of every kind.
func TestPowerText(t *testing.T) {
	noise := &Noise{Device: "NVIDIA H200", Controls: 133, Rounds: 798, Shapes: 9}
	all := []*Power{
		{Device: "NVIDIA H200", Rules: []string{"refactoring", "default"}, Role: "guard", Goal: "speedup >= -2%", Allows: 0.025, noise: noise, Rates: []Rate{
			{Speedup: -0.02, Runs: 240, Passed: 1, Lower: 0.0001, Upper: 0.023, Rounds: 19.2},
			{Speedup: -0.01, Runs: 240, Passed: 197, Lower: 0.77, Upper: 0.87, Rounds: 8.4},
			{Speedup: 0, Runs: 240, Passed: 239, Errors: 1, Lower: 0.977, Upper: 0.9999, Rounds: 6.1},
		}},
		{Device: "NVIDIA H200", Rules: []string{"default"}, Role: "target", Goal: "speedup >= +10%", Allows: 0.025, noise: noise, Rates: []Rate{{Speedup: 0.1}, {Speedup: 0.13}}},
		{Device: "NVIDIA L4", Rules: []string{"default"}, Role: "target", Goal: "speedup >= +10%", noise: &Noise{Device: "NVIDIA L4", Controls: 1, Rounds: 6, Shapes: 1}, Needs: "2 runs"},
	}
	want := `NVIDIA H200: noise of 798 recorded rounds in 133 A/A controls on 9 shapes
  rules refactoring, default, guard speedup ≥_−2_%:
    a true −1_% passes in 82_% of 240 runs (95_% interval: 77_% to 87_%),
      after 8.4 rounds on average
    an equal kernel passes in 100_% of 240 runs (95_% interval: 98_% to
      100_%), after 6.1 rounds on average; 1 verdict blamed the runner
    a false one (exactly −2_%) passes in 1 of 240 runs (95_% interval: 0.01_%
      to 2.3_%; the policy allows 2.5_%)
  rule default, target speedup ≥_+10_%:
    a true +13_%: no run was simulated in time
    a false one (exactly +10_%): no run was simulated in time
NVIDIA L4: noise of 6 recorded rounds in 1 A/A control on 1 shape
  rule default, target speedup ≥_+10_%:
    not known. It needs 2 runs.
`
	if got := strings.ReplaceAll(PowerText(all), "\u00a0", "_"); got != want {
		t.Errorf("got\n%s", got)
	}
	suggested := SuggestText([]Suggestion{
		{Device: "NVIDIA H200", Guard: 0.015, Controls: 133, Passed: 120, AlarmsAt: 2, AllPass: 0.02, Below: 0.0223},
		{Device: "NVIDIA L4", Needs: "2 runs"},
	})
	want = `NVIDIA H200: guard: {speedup: ">= -1.5%"} had no alarm on 133 recorded A/A
  controls (half a percent less: 2 alarms). So many silent runs prove, at 95_%,
  that fewer than 2.2_% of runs have one. 120 of them pass with the rounds that
  were recorded, and all of them from -2% on.
NVIDIA L4: no guard is suggested. It needs 2 runs.
`
	if strings.ReplaceAll(suggested, "\u00a0", "_") != want {
		t.Errorf("got\n%s", suggested)
	}
	if none := SuggestText(nil); none != "No guard can be suggested: the evidence has no A/A control.\n" {
		t.Error(none)
	}
}
