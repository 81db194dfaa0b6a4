package gates

import (
	"encoding/json"
	"strings"
	"testing"
)

// watts is the power of a made GPU in the segments of a side, and the time of a pass.
type watts struct{ power, seconds float64 }

// segment is one of a GPU whose counter steps every 20 ms and whose power sensor is late by 30 ms.
func (w watts) segment() EnergySegment {
	s := EnergySegment{Passes: 100, Seconds: 100 * w.seconds, Counter: &SensorChanges{}, Power: &SensorChanges{At: []float64{0, 0.03}, Values: []float64{90, w.power}}}
	for at := 0.003; at < s.Seconds; at += 0.02 {
		s.Counter.At, s.Counter.Values = append(s.Counter.At, at), append(s.Counter.Values, 5000+w.power*at)
	}
	return s
}

// energyOf is the evidence about a GPU of 100 W at rest, where a pass restores memory for 0.2 ms.
func energyOf(baseline, candidate watts, noise ...float64) *Energy {
	s := EnergySeries{Series: Series{Shape: "mission", Batch: 10, Verified: 10 * EnergyPairs, Worst: &Errors{Elements: 1000, Norm: 1e-4}}}
	for k := range EnergyPairs {
		pair := []string{"bc", "cb"}[k%2]
		for _, side := range pair {
			w := baseline
			if side == SideCandidate {
				w = candidate
				if len(noise) > 0 {
					w.power *= 1 + noise[k%len(noise)]
				}
			}
			// What a pass does besides its launches takes 0.2 ms at 100 W.
			mixed := (w.power*w.seconds + 100*0.2e-3) / (w.seconds + 0.2e-3)
			s.Segments, s.Nanos = append(s.Segments, watts{mixed, w.seconds + 0.2e-3}.segment()), append(s.Nanos, w.seconds/10*1e9)
		}
		s.Order = strings.TrimSpace(s.Order + " " + pair)
	}
	rest := watts{100, 0.2e-3}.segment()
	rest.Passes, rest.Seconds = 500, 0.1
	rest.Counter = watts{100, 1e-3}.segment().Counter
	s.Rests = []EnergySegment{rest}
	return &Energy{Series: []EnergySeries{s}, Seconds: 2}
}

func TestEnergy(t *testing.T) {
	base := watts{500, 2e-3} // 1 J a pass, 0.1 J a launch
	for _, c := range []struct {
		name    string
		energy  *Energy
		change  func(*Evidence)
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"less energy", energyOf(base, watts{500, 1.6e-3}), nil, Pass, "", ""},
		{"less power and more time", energyOf(base, watts{400, 2.4e-3}), nil, Pass, "", ""},
		{"at the limit", energyOf(base, watts{500, 2.1e-3}, 0.001, -0.001, 0), nil, Defer, ReasonInconclusive, "105\u00a0mJ, +5.0"},
		{"more energy", energyOf(base, watts{500, 2.2e-3}), nil, Defer, ReasonEnergy, "energy of a launch: mission 100\u00a0mJ → 110\u00a0mJ, +10.0\u00a0% [+10.0\u00a0%, +10.0\u00a0%] (limit"},
		{"more power", energyOf(base, watts{600, 2e-3}), nil, Defer, ReasonEnergy, "→ 120\u00a0mJ"},
		{"noise", energyOf(base, base, 0.1, -0.08, 0.05, -0.09), nil, Defer, ReasonInconclusive, "mission"},
		{"no counter", energyOf(base, watts{500, 1.6e-3}), func(e *Evidence) { withoutCounter(e.Energy) }, Pass, "", ""},
		{"nothing measured", nil, nil, Defer, ReasonInconclusive, "the energy of a launch was not measured"},
		{"no sensor", &Energy{Skipped: "there is no sensor (use another GPU)"}, nil, Defer, ReasonInconclusive, "was not measured: there is no sensor"},
		{"a shape that is not there", energyOf(base, base), func(e *Evidence) { e.Energy.Series[0].Shape = "small" }, Defer, ReasonInconclusive, "not measured on mission"},
		{"too few pairs", energyOf(base, base), func(e *Evidence) {
			s := &e.Energy.Series[0]
			s.Order, s.Segments, s.Nanos = "bc cb bc cb bc", s.Segments[:10], s.Nanos[:10]
		}, Defer, ReasonInconclusive, "too few segments"},
		{"no segment without launches", energyOf(base, base), func(e *Evidence) { e.Energy.Series[0].Rests = nil }, Defer, ReasonInconclusive, "too few segments"},
		{"a failure", &Energy{Failure: &Failure{Kind: FailureCrash, Detail: "it crashed"}}, nil, Defer, ReasonCorrectness, "failed while its energy was measured: it crashed"},
		{"work that repeated launches skip", energyOf(base, watts{100, 1e-3}), func(e *Evidence) { e.Energy.Series[0].Worst = &Errors{Elements: 1000, Unwritten: 900} }, Defer, ReasonCorrectness, "wrong while the energy was measured, on mission"},
		{"outputs that nobody compared", energyOf(base, watts{100, 1e-3}), func(e *Evidence) { e.Energy.Series[0].Verified = 0 }, Error, ReasonRunner, "not verified"},
		{"a new kernel", nil, func(e *Evidence) { e.Baseline = nil }, Pass, "", ""},
		{"equal machine code", nil, func(e *Evidence) { e.SameCode = true }, Pass, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			e.Energy = c.energy
			if c.change != nil {
				c.change(e)
			}
			p := parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], distributions: [normal], secret_cases: 1, norm_error: '<= 1%'}\n  energy: {increase: '<= +5%', shapes: [mission]}\nrules:\n  - name: default\n")
			v := Judge(p, "test.yaml", e)
			expect(t, v, c.outcome, c.reason, c.says)
			if need, missing := Next(p, e).Gate, e.Energy == nil && e.Baseline != nil && !e.SameCode; (need == GateEnergy) != missing {
				t.Errorf("it asks for evidence of %q", need)
			}
			if strings.HasPrefix(c.name, "less") && (len(v.Energy) != 2 || v.Energy[0].Status != Passed || v.Energy[1].Status != Informs) {
				t.Errorf("rows %+v", v.Energy)
			}
		})
	}
}

func withoutCounter(e *Energy) {
	s := &e.Series[0]
	for _, list := range [][]EnergySegment{s.Segments, s.Rests} {
		for i := range list {
			list[i].Counter = nil
		}
	}
}

// TestEnergySourcesDisagree: a power sensor that misses a part of the draw is shown next to the counter, which decides.
func TestEnergySourcesDisagree(t *testing.T) {
	e := passing()
	e.Energy = energyOf(watts{500, 2e-3}, watts{500, 2.2e-3})
	other := energyOf(watts{500, 2e-3}, watts{500, 1.8e-3})
	for i := range e.Energy.Series[0].Segments {
		e.Energy.Series[0].Segments[i].Power = other.Series[0].Segments[i].Power
	}
	v := Judge(parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], distributions: [normal], secret_cases: 1, norm_error: '<= 1%'}\n  energy: {shapes: [mission]}\nrules:\n  - name: default\n"), "test.yaml", e)
	expect(t, v, Defer, ReasonEnergy, "by the energy counter, and ")
	expect(t, v, Defer, ReasonEnergy, "by the power draw, which disagrees")
}

func TestEnergyEvidenceIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*EnergySeries)
		want   string
	}{
		"nothing wrong":          {func(*EnergySeries) {}, ""},
		"an unknown shape":       {func(s *EnergySeries) { s.Shape = "huge" }, `energy.series[0].shape: "huge" is not among the shapes`},
		"a control":              {func(s *EnergySeries) { s.Order = strings.Replace(s.Order, "b", "a", 1) }, "energy.series[0].segments: are 16, and order is"},
		"no passes":              {func(s *EnergySeries) { s.Segments[2].Passes = 0 }, "energy.series[0].segments[2].passes: is 0"},
		"no time":                {func(s *EnergySeries) { s.Rests[0].Seconds = 0 }, "energy.series[0].rests[0].seconds: is 0"},
		"moments that turn":      {func(s *EnergySeries) { s.Segments[0].Power.At[1] = 0 }, "energy.series[0].segments[0].power: is not a list of moments"},
		"a value too many":       {func(s *EnergySeries) { s.Segments[0].Power.At = s.Segments[0].Power.At[:1] }, "energy.series[0].segments[0].power: is not a list of moments"},
		"a negative counter":     {func(s *EnergySeries) { s.Segments[1].Counter.Values[0] = -1 }, "energy.series[0].segments[1].counter: is not a list of moments"},
		"a time that is missing": {func(s *EnergySeries) { s.Nanos = s.Nanos[1:] }, "energy.series[0].ns: has 15 samples"},
	} {
		t.Run(name, func(t *testing.T) {
			e := passing()
			e.Energy = energyOf(watts{500, 2e-3}, watts{500, 2e-3})
			c.change(&e.Energy.Series[0])
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseEvidence("evidence.json", data)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
