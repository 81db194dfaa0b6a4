package gates

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The floor is the work over the device's limits, as far as both are known. Traffic counts where the caches were cold.
func TestFloorOfADevice(t *testing.T) {
	for _, c := range []struct {
		name  string
		d     Device
		bytes float64
		cold  bool
		want  float64
	}{
		{"nothing is known", Device{}, 1e6, true, 0},
		{"the peak", Device{Peak: map[string]float64{"fp16": 1e12}}, 1e6, true, 2},
		{"another peak", Device{Peak: map[string]float64{"fp32": 1e12}}, 1e6, true, 0},
		{"a small peak", Device{Peak: map[string]float64{"fp16": 1}}, 0, true, 2e12},
		{"the bandwidth", Device{Bandwidth: 1e11}, 1e6, true, 10},
		{"a small bandwidth", Device{Bandwidth: 1}, 1e6, true, 1e12},
		{"the bandwidth, from caches", Device{Bandwidth: 1e11}, 1e6, false, 0},
		{"both, and bound by traffic", Device{Bandwidth: 1e11, Peak: map[string]float64{"fp16": 1e12}}, 1e6, true, 10},
		{"both, and bound by work", Device{Bandwidth: 1e11, Peak: map[string]float64{"fp16": 1e12}}, 1e5, true, 2},
		{"both, from caches", Device{Bandwidth: 1e11, Peak: map[string]float64{"fp16": 1e12}}, 1e6, false, 2},
	} {
		if got := floorMicros(c.d, Shape{Peak: "fp16", FLOPs: 2e6, Bytes: c.bytes}, c.cold); !near(got/max(c.want, 1), c.want/max(c.want, 1)) {
			t.Errorf("%s: %g µs, want %g", c.name, got, c.want)
		}
	}
}

// oneOf is a shape with a status that asks for half as much speed again.
func oneOf(t *testing.T, name string, role Role, status Status) *shapeComparison {
	t.Helper()
	goal := faster(0.5)
	d := always(t, 1.25)
	return &shapeComparison{
		goalOf: goalOf{shape: Shape{Name: name}, role: role, goal: &goal}, status: status, ratio: d, tests: []test{{metric: "speedup", asked: ">= +50%", threshold: 1.5, dist: d, meet: 1}},
		samples: &samples{
			strata:         strata{kinds: []string{"normal"}},
			baselineTimes:  timedSample{stats.Sample{Rounds: [][]float64{{100}}}, [][]int{{0}}},
			candidateTimes: timedSample{stats.Sample{Rounds: [][]float64{{80}}}, [][]int{{0}}},
		},
	}
}

// A fault of the runner counts before anything else, a claim that launches do not show before any outcome, and a lost guard before a
// missed target.
func TestOrderOfReasons(t *testing.T) {
	e := &Evidence{Mode: "cuda", Performance: &Performance{}, Baseline: &Build{}}
	missed, met, open := oneOf(t, "missed", RoleTarget, Failed), oneOf(t, "met", RoleTarget, Passed), oneOf(t, "open", RoleTarget, Open)
	lost := oneOf(t, "lost", RoleGuard, Failed)
	for _, c := range []struct {
		name           string
		shapes         []*shapeComparison
		fault, claims  string
		status         Status
		reason         Reason
		says           string
		toPass, passes string // what the way to pass names, and what not
	}{
		{"a fault", []*shapeComparison{met}, "busy", "claims", Failed, ReasonRunner, "not fit to measure: busy", "stop other work", ""},
		{"a claim", []*shapeComparison{met}, "", "claims", Failed, ReasonSuspicious, "claims", "", ""},
		{"a claim, and open", []*shapeComparison{open}, "", "claims", Failed, ReasonSuspicious, "claims", "", ""},
		{"a claim, and missed", []*shapeComparison{missed}, "", "claims", Failed, ReasonSuspicious, "claims", "", ""},
		{"met", []*shapeComparison{met}, "", "", Passed, "", "Proven: speedup +25.0", "", ""},
		{"missed", []*shapeComparison{met, missed}, "", "", Failed, ReasonTooSlow, "Too slow: speedup +25.0", "bring `missed` to ≤\u00a066.66\u00a0µs", "met"},
		{"lost", []*shapeComparison{missed, lost}, "", "", Failed, ReasonRegression, "Slower: ", "bring `lost` to ≤\u00a066.66\u00a0µs", "missed"},
		{"open", []*shapeComparison{met, open}, "", "", Open, ReasonInconclusive, "Not decided after 6 rounds: speedup +25.0", "on open", "met"},
	} {
		cmp := &comparison{rounds: 6, alpha: 0.025, few: newResamplePlan(fewResamples), shapes: c.shapes, fault: quoted(c.fault), overclaimed: quoted(c.claims)}
		r := cmp.result(&policy.PerformanceGate{}, e)
		steps := strings.Join(facts.Steps(r.Steps, facts.Reader{}), "\n")
		if r.Status != c.status || r.Reason != c.reason || !strings.Contains(words(r.Found), c.says) || !strings.Contains(steps, c.toPass) || c.passes != "" && strings.Contains(steps, " "+c.passes) {
			t.Errorf("%s: %s (%s) %s\nto pass: %s", c.name, r.Status, r.Reason, words(r.Found), steps)
		}
	}
}

// A later machine code has its number and its part of the error rate in the record.
func TestCodeNumberInTheRecord(t *testing.T) {
	for number, want := range map[int]float64{0: 0, 1: 0, 2: 0.05 / 6, 3: 0.05 / 12} {
		p := &Performance{Rounds: []Round{{CodeNumber: number}}}
		m := (&comparison{rounds: 1}).measuring(&policy.PerformanceGate{Confidence: 0.95}, p, []interim{{6, 0.01}})
		if wantNumber := map[bool]int{true: number}[number > 1]; m.CodeNumber != wantNumber || !near(m.ErrorRate, round(want)) {
			t.Errorf("code %d: number %d, error rate %g, want %g", number, m.CodeNumber, m.ErrorRate, want)
		}
	}
}

// A counter of a launch of several kernels is their sum, or the mean by the time of each.
func TestCountersOfSeveralKernels(t *testing.T) {
	counted := func(name string, step int, value float64) Metric {
		return Metric{Shape: "mission", Name: name, Step: step, Value: value, Unit: "u", Kernel: "k"}
	}
	p := &Profile{Metrics: []Metric{
		counted("whole", 0, 7), counted("bytes.sum", 1, 3), counted("bytes.sum", 2, 4), counted("share.pct", 1, 10), counted("share.pct", 2, 40), counted("untimed.pct", 3, 5),
		counted(MetricDuration, 1, 1), counted(MetricDuration, 2, 2), {Shape: "other", Name: "whole", Value: 1},
	}}
	for name, want := range map[string]float64{"whole": 7, "bytes.sum": 7, "share.pct": 30, "untimed.pct": -1, "nobody": -1} {
		got, _, _ := p.of("mission", name)
		if (got == nil) != (want < 0) || got != nil && !near(*got, want) {
			t.Errorf("%s: %v, want %g", name, got, want)
		}
	}
	if _, unit, steps := p.of("mission", "share.pct"); len(steps) != 2 || unit != "u" {
		t.Errorf("%v in %s", steps, unit)
	}
}

// A build of one part is judged as that part, under its name.
func TestChoiceOfOnePart(t *testing.T) {
	policy := parsePolicy(t, "version: 1\ngates: {ptxas: {registers: {max: 64}}}\nrules: [{name: default}]\n")
	part := Part{Build: Build{Variant: "fast", OK: true, Code: "1", Resources: &Resources{Registers: new(32)}}, Shapes: []string{"mission"}}
	for name, c := range map[string]struct {
		b    Build
		want string
	}{
		"a part":   {Build{Variant: "choose", OK: true, Code: "c", Parts: []Part{part}}, "fast: 32 registers; within budget"},
		"no parts": {part.Build, "32 registers; within budget"},
	} {
		e := evidence("mission")
		e.Candidate = &c.b
		for _, g := range Judge(policy, "test.yaml", e).Gates {
			if g.Gate == GatePTXAS && (g.Status != Passed || g.Text != c.want) {
				t.Errorf("%s: %s %s", name, g.Status, g.Text)
			}
		}
	}
}
