package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// overlaid returns the gates of a rule that lays the text over the good policy's.
func overlaid(t testing.TB, gates string) policy.Gates {
	t.Helper()
	text := strings.Replace(good, "when: {labels: [perf]}\n", "when: {labels: [perf]}\n    gates: "+gates+"\n", 1)
	return parse(t, text).RuleFor(policy.Change{Labels: []string{"perf"}}).Gates
}

// shared returns the gates of the rule that lays nothing over them.
func shared(t testing.TB) policy.Gates {
	t.Helper()
	return parse(t, good).RuleFor(policy.Change{}).Gates
}

func bound[T quantity.Count | quantity.Bytes | quantity.Percent | quantity.Micros | quantity.Number](op quantity.Op, v T) *quantity.Bound[T] {
	return &quantity.Bound[T]{Op: op, Value: v}
}

func TestOverlay(t *testing.T) {
	count := func(n quantity.Count) *quantity.Count { return &n }
	no := false
	for _, tt := range []struct {
		name, gates string
		edit        func(g *policy.Gates) // of the shared gates
	}{
		{"nothing", "{}", func(g *policy.Gates) {}},
		{"a field of a gate", "{performance: {pairs: 80}}", func(g *policy.Gates) { g.Performance.Pairs = 80 }},
		{"a field of a goal", `{performance: {target: {speedup: ">= +15%"}}}`, func(g *policy.Gates) {
			g.Performance.Target.Speedup = bound[quantity.Percent](">=", 0.15)
		}},
		{"a metric beside the others", `{performance: {target: {p50: "<= 5us"}}}`, func(g *policy.Gates) {
			g.Performance.Target.P50 = bound[quantity.Micros]("<=", 5)
		}},
		{"a metric instead of another", `{performance: {target: {speedup: none, latency_reduction: ">= 9%"}}}`, func(g *policy.Gates) {
			g.Performance.Target.Speedup, g.Performance.Target.LatencyReduction = nil, bound[quantity.Percent](">=", 0.09)
		}},
		{"a list is replaced", "{correctness: {seeds: [7], shapes: [long]}}", func(g *policy.Gates) {
			g.Correctness.Seeds, g.Correctness.Shapes = []int64{7}, policy.Shapes{Names: []string{"long"}}
		}},
		{"a list by all", "{correctness: {shapes: all}}", func(g *policy.Gates) { g.Correctness.Shapes = policy.Shapes{All: true} }},
		{"all by a list", "{performance: {guard: {shapes: [small]}}}", func(g *policy.Gates) {
			g.Performance.Guard.Shapes = policy.Shapes{Names: []string{"small"}}
		}},
		{"a list of conditions is replaced", `{profile: {any: [{a: "> 1"}], all: [{b: "< 2"}]}}`, func(g *policy.Gates) {
			g.Profile.Any = []policy.MetricCondition{{Metric: "a", Is: *bound[quantity.Number](">", 1)}}
			g.Profile.All = []policy.MetricCondition{{Metric: "b", Is: *bound[quantity.Number]("<", 2)}}
		}},
		{"a gate is taken away", "{profile: none, ptxas: ~}", func(g *policy.Gates) { g.Profile, g.PTXAS = nil, nil }},
		{"a target is taken away", "{performance: {target: none}}", func(g *policy.Gates) { g.Performance.Target = nil }},
		{"a bound is taken away", "{ptxas: {blocks_per_sm: none, spill_stores: none}, correctness: {end_to_end: none}}", func(g *policy.Gates) {
			g.PTXAS.BlocksPerSM, g.PTXAS.SpillStores, g.Correctness.EndToEnd = nil, nil, nil
		}},
		{"a gate that only informs", "{ptxas: {required: false}}", func(g *policy.Gates) { g.PTXAS.Required = &no }},
		{"a budget's other half", `{ptxas: {registers: {increase: "<= 8"}}}`, func(g *policy.Gates) {
			g.PTXAS.Registers.Increase = bound[quantity.Count]("<=", 8)
		}},
		{"a budget in its short form", `{ptxas: {registers: "<= 120"}}`, func(g *policy.Gates) { g.PTXAS.Registers.Max = count(120) }},
		{"a budget's limit for another", `{ptxas: {registers: {max: none, increase: "<= 0"}}}`, func(g *policy.Gates) {
			g.PTXAS.Registers.Max, g.PTXAS.Registers.Increase = nil, bound[quantity.Count]("<=", 0)
		}},
		{"rounds, and the interims with them", "{performance: {rounds: {max: 30}}}", func(g *policy.Gates) {
			g.Performance.Rounds.Max, g.Performance.Interims = 30, []int{6, 18, 30}
		}},
		{"rounds of one look", "{performance: {rounds: {min: 6, max: 6}}}", func(g *policy.Gates) {
			g.Performance.Rounds.Max, g.Performance.Interims = 6, []int{6}
		}},
		{"rounds and interims", "{performance: {rounds: {min: 7, max: 12}, interims: [8, 12]}}", func(g *policy.Gates) {
			g.Performance.Rounds, g.Performance.Interims = policy.Rounds{Min: 7, Max: 12}, []int{8, 12}
		}},
		{"tails are let go by a word alone", "{performance: {tails: none}}", func(g *policy.Gates) { g.Performance.Tails = nil }},
		{"one tail is let go", "{performance: {tails: {p90: none}}}", func(g *policy.Gates) { g.Performance.Tails.P90 = nil }},
		{"one tail has another limit", "{performance: {tails: {mean: 10%}}}", func(g *policy.Gates) { g.Performance.Tails.Mean = share(0.1) }},
		{"interims alone", "{performance: {interims: [10, 20]}}", func(g *policy.Gates) { g.Performance.Interims = []int{10, 20} }},
		{"the baseline and the time", "{build: {timeout: 2m}, performance: {baseline: 'tag:v1.2', budget: 1m}}", func(g *policy.Gates) {
			g.Build.Timeout = quantity.Duration(2 * time.Minute)
			g.Performance.Baseline = policy.Baseline{Kind: "tag", Name: "v1.2"}
			g.Performance.Budget = quantity.Duration(time.Minute)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := shared(t)
			tt.edit(&want)
			if diff := cmp.Diff(want, overlaid(t, tt.gates)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRulesShareNoMemory(t *testing.T) {
	p := parse(t, good)
	a, b := &p.Rules[0].Gates, &p.Rules[1].Gates
	*a.PTXAS.Registers.Max = 1
	a.Correctness.Seeds[0] = 99
	a.Correctness.Shapes.Names[0] = "changed"
	a.Performance.Target.Speedup.Value = 9
	a.Performance.Interims[0] = 1
	a.Profile.Any[0].Metric = "changed"
	if diff := cmp.Diff(shared(t), *b); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(shared(t), p.Gates); diff != "" {
		t.Errorf("the policy's own gates: %s", diff)
	}
}

func TestDefaults(t *testing.T) {
	p := parse(t, `version: 1
gates:
  ptxas: {}
  correctness: {norm_error: "<= 1%"}
  performance: {target: {speedup: ">= +10%"}, guard: {speedup: ">= -2%"}}
  profile: {all: [{sm__throughput: "> 50%"}]}
rules:
  - name: default
`)
	all := policy.Shapes{All: true}
	want := policy.Gates{
		Build: policy.BuildGate{Deadline: policy.Deadline{Timeout: quantity.Duration(10 * time.Minute)}},
		PTXAS: &policy.PTXASGate{},
		Correctness: &policy.CorrectnessGate{
			Shapes: all, Seeds: []int64{0, 1, 2}, Distributions: []distribution.Kind{distribution.Normal},
			Bad: bound[quantity.Percent]("<=", 0), Norm: bound[quantity.Percent]("<=", 0.01), Existing: policy.ExistingReports,
		},
		Precision: &policy.PrecisionGate{Loss: bound[quantity.Number]("<=", 4)},
		Performance: &policy.PerformanceGate{
			Baseline:   policy.Baseline{Kind: "base"},
			Target:     &policy.Goal{Shapes: all, Inputs: policy.InputsRandom, Context: policy.Contexts{policy.Cold}, Speedup: bound[quantity.Percent](">=", 0.1)},
			Guard:      &policy.Goal{Shapes: all, Inputs: policy.InputsRandom, Context: policy.Contexts{policy.Cold}, Speedup: bound[quantity.Percent](">=", -0.02)},
			Confidence: 0.95, Rounds: policy.Rounds{Min: 6, Max: 20}, Pairs: 50, Interims: []int{6, 13, 20},
			Control: 0.02, SoloShift: 0.02, Tails: &policy.Tails{Mean: share(0.03), P90: share(0.03)}, Budget: quantity.Duration(5 * time.Minute), Explain: &policy.Explain{Timeout: quantity.Duration(30 * time.Second)},
		},
		Profile: &policy.ProfileGate{Shapes: all, All: []policy.MetricCondition{{Metric: "sm__throughput", Is: *bound[quantity.Number](">", 50)}}},
	}
	if diff := cmp.Diff(want, p.Rules[0].Gates); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, p.Gates); diff != "" {
		t.Error(diff)
	}
	p.Rules, p.Gates = nil, policy.Gates{}
	if diff := cmp.Diff(&policy.Policy{
		Version: 1, Check: "kernelgate", Forks: policy.Forks{Run: policy.ForksAfterApproval},
		Commands: policy.Commands{Rebench: "write", Tune: "write", Bisect: "write", Cancel: "write", Explain: "read", Override: "maintain", OKToTest: "write", ApprovePolicy: "maintain", Help: "read"},
	}, p); diff != "" {
		t.Error(diff)
	}
}

func share(of quantity.Percent) *quantity.Percent { return &of }

func TestDefaultRounds(t *testing.T) {
	for _, tt := range []struct{ rounds, want string }{
		{"{min: 8}", "8 to 20, interims [8 14 20]"},
		{"{min: 30}", "30 to 30, interims [30]"},
		{"{max: 6}", "6 to 6, interims [6]"},
		{"{max: 7}", "6 to 7, interims [6 7]"},
		{"{}", "6 to 20, interims [6 13 20]"},
	} {
		t.Run(tt.rounds, func(t *testing.T) {
			text := strings.Replace(good, "rounds: {min: 6, max: 20}\n    interims: [6, 12, 20]", "rounds: "+tt.rounds, 1)
			g := parse(t, text).Rules[1].Gates.Performance
			if got := fmt.Sprintf("%v to %v, interims %v", g.Rounds.Min, g.Rounds.Max, g.Interims); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRuleAddsGate checks that a rule may add a gate that the shared gates do not have.
func TestRuleAddsGate(t *testing.T) {
	p := parse(t, `version: 1
gates: {correctness: {norm_error: "<= 1%"}, performance: none}
rules:
  - name: perf
    when: {labels: [perf]}
    gates: {performance: {target: {speedup: ">= +10%"}}}
  - name: default
`)
	if g := p.Rules[0].Gates.Performance; g == nil || g.Confidence != 0.95 || !g.Target.Shapes.All || len(g.Interims) != 3 {
		t.Errorf("got %+v", g)
	}
	if p.Rules[1].Gates.Performance != nil {
		t.Error("the default rule has it too")
	}
}

func TestBaselines(t *testing.T) {
	for _, text := range []string{"base", "ref:main", "ref:feature/x-1", "tag:v1.2", "variant:stage1"} {
		g := overlaid(t, "{performance: {baseline: '"+text+"'}}")
		if got := g.Performance.Baseline.String(); got != text {
			t.Errorf("%s shows as %s", text, got)
		}
	}
}
