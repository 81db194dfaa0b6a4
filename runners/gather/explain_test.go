package gather

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A profiling backend counts what it is asked for.
type profiling struct {
	*scripted
	fails error
}

func (p profiling) Abilities() gates.Abilities {
	a := p.scripted.Abilities()
	a.Profiler = true
	return a
}

func (p profiling) Explain(_ context.Context, ask runners.Explanation, _ runners.Progress) (*gates.Explained, *gates.Profile, error) {
	found, counted := &gates.Explained{}, &gates.Profile{}
	for _, shape := range ask.Shapes {
		found.Shapes = append(found.Shapes, gates.ExplainedShape{Shape: shape})
		for _, m := range ask.Metrics {
			counted.Metrics = append(counted.Metrics, gates.Metric{Shape: shape, Name: m, Value: 80})
		}
	}
	if p.fails != nil {
		return nil, nil, p.fails
	}
	return found, counted, p.ask("explain " + strings.Join(ask.Shapes, " "))
}

// A difference is explained once, after the times are known and whatever they come to. The same counters answer the profile gate.
func TestExplain(t *testing.T) {
	rounds := "build baseline, build candidate" + ", correctness" + strings.Repeat(", round", 6)
	for name, c := range map[string]struct {
		ratio   float64
		profile string
		explain func(*policy.PerformanceGate)
		asked   string
	}{
		"faster":                 {ratio: 2, asked: rounds + ", explain "},
		"slower":                 {ratio: 0.5, asked: rounds + ", explain "},
		"profiled at once":       {ratio: 2, profile: "two", asked: rounds + ", explain "},
		"turned off":             {ratio: 2, explain: func(g *policy.PerformanceGate) { g.Explain = nil }, asked: rounds},
		"of shapes not measured": {ratio: 2, explain: func(g *policy.PerformanceGate) { g.Explain.Shapes = &policy.Shapes{Names: []string{"other"}} }, asked: rounds},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t)
			j.Policy = j.Policy.WithGates(func(g *policy.Gates) {
				if c.explain != nil {
					own := *g.Performance
					what := *own.Explain
					own.Explain = &what
					c.explain(&own)
					g.Performance = &own
				}
				if c.profile != "" {
					g.Profile = &policy.ProfileGate{Shapes: policy.Shapes{Names: []string{c.profile}}}
				}
			})
			b := profiling{scripted: &scripted{job: j, compile: true, ratio: c.ratio}}
			e, err := Gather(t.Context(), j, b, silent{})
			if err != nil || e.Fault != "" {
				t.Fatal(err, e.Fault)
			}
			if got := strings.Join(b.asked, ", "); !strings.HasPrefix(got, c.asked) || strings.Contains(got, "explain") != strings.Contains(c.asked, "explain") || slices.Contains(b.asked, "profile") {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
			if _, took := e.Took[gates.StepExplain]; took != (e.Explained != nil) {
				t.Error("the time of the step is not recorded")
			}
		})
	}
}

// An explanation that fails says so, and fails nothing else.
func TestExplainFails(t *testing.T) {
	j := job(t)
	e, err := Gather(t.Context(), j, profiling{&scripted{job: j, compile: true, ratio: 2}, errors.New("ncu is ill")}, silent{})
	if err != nil || e.Fault != "" || e.Explained == nil || e.Explained.Skipped != "ncu is ill" {
		t.Fatalf("%v, %+v", err, e)
	}
	if v := gates.Judge(j.Policy, "policy.yaml", e); v.Outcome != gates.Pass {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// events are all that a run reports.
type events []runners.Event

func (e *events) Report(one runners.Event) { *e = append(*e, one) }

// Whoever waits for an explanation sees how the gates came out.
func TestExplainedAfterTheVerdict(t *testing.T) {
	j := job(t)
	var all events
	if e, err := Gather(t.Context(), j, profiling{scripted: &scripted{job: j, compile: true, ratio: 2}}, &all); err != nil || e.Fault != "" {
		t.Fatal(err, e.Fault)
	}
	i := slices.IndexFunc(all, func(e runners.Event) bool { return e.Text == "explaining the difference" })
	if i < 0 || all[i].Standing == nil {
		t.Fatalf("%d of %+v", i, all)
	}
	timed := func(r gates.GateResult) bool { return r.Gate == gates.GatePerformance && r.Status == gates.Passed }
	if !slices.ContainsFunc(all[i].Standing.Gates, timed) {
		t.Errorf("the gates are %+v", all[i].Standing.Gates)
	}
}

// A job that only explains builds both sides and profiles them: nothing is compared, timed or judged.
func TestOnlyExplain(t *testing.T) {
	j := job(t)
	j.Shapes = []string{"two"}
	if err := j.Ask(runners.PartExplain); err != nil {
		t.Fatal(err)
	}
	b := profiling{scripted: &scripted{job: j, compile: true, ratio: 2}}
	e, err := Gather(t.Context(), j, b, silent{})
	if err != nil || e.Fault != "" {
		t.Fatal(err, e.Fault)
	}
	if got := strings.Join(b.asked, ", "); got != "build baseline, build candidate, explain two" {
		t.Errorf("asked %s", got)
	}
	if len(e.Explained.Shapes) != 1 || e.Performance != nil || e.Correctness != nil {
		t.Errorf("the evidence is %+v", e)
	}
	asked := j.Asked()
	if need := gates.Next(asked, e); need.Gate != "" {
		t.Errorf("%s is missing", need.Gate)
	}
	if v := gates.Judge(asked, "p.yaml", e); v.Outcome != gates.Pass || len(v.Why) != 1 || v.Why[0].Shape != "two" {
		t.Errorf("the verdict is %+v", v)
	}
	e.Explained = nil
	if need := gates.Next(asked, e); need.Gate != gates.StepExplain {
		t.Errorf("without profiles %q is missing", need.Gate)
	}
	e.Explained = &gates.Explained{Skipped: "no permission"}
	if v := gates.Judge(asked, "p.yaml", e); v.Outcome != gates.Pass || len(v.Why) != 1 || v.Why[0].Shape != "two" || !v.Why[0].Static {
		t.Errorf("without counters the verdict is %+v", v)
	}
	e.Explained, e.Candidate.OK = nil, false
	if need := gates.Next(asked, e); need.Gate != "" {
		t.Errorf("of a candidate that does not build %s is missing", need.Gate)
	}
}
