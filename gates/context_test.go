package gates

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// contextPolicy is a rule with a target and the default guard.
func contextPolicy(t *testing.T, target string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte("{version: 1, gates: {correctness: {norm_error: '<= 1%', seeds: [0]}, performance: {target: "+target+", guard: {speedup: '>= -2%'}, secret_shape: false}}, rules: [{name: default}]}"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestContexts judges a kernel that is 84 % faster from a cold cache, and 16 % from a warm one.
func TestContexts(t *testing.T) {
	truth := step{shapes: []stepShape{{name: "mission", micros: 20, ratio: 1.84}, {name: "mission:warm", micros: 8, ratio: 1.16}}, pairs: 50, noise: simulate.Noise{Within: 0.02, Between: 0.002}}
	for _, c := range []struct {
		target  string
		outcome Outcome
		timed   string
		failed  string
	}{
		{"{shapes: [mission], speedup: '>= +50%'}", Pass, "mission", ""},
		{"{shapes: [mission], context: warm, speedup: '>= +10%'}", Pass, "mission mission:warm", ""},
		{"{shapes: [mission], context: warm, speedup: '>= +50%'}", Defer, "mission mission:warm", "mission:warm"},
		{"{shapes: [mission], context: [cold, warm], speedup: '>= +50%'}", Defer, "mission mission:warm", "mission:warm"},
		{"{shapes: [mission], context: [cold, warm], speedup: '>= +10%'}", Pass, "mission mission:warm", ""},
	} {
		p := contextPolicy(t, c.target)
		e := evidence("mission")
		e.Shapes = InContexts(&p.Rules[0], e.Shapes, e.Weights)
		if timed := strings.Join(TimedShapes(&p.Rules[0], e), " "); timed != c.timed {
			t.Errorf("%s: %s is timed", c.target, timed)
		}
		own := truth
		own.shapes = slices.DeleteFunc(slices.Clone(truth.shapes), func(s stepShape) bool { return !strings.Contains(" "+c.timed+" ", " "+s.name+" ") })
		own.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
		v := NewSimulator().Judge(p, e)
		var failed []string
		for _, row := range v.Comparisons {
			if row.Status != Passed {
				failed = append(failed, row.Shape)
			}
			if warm := row.Shape == "mission:warm"; warm != (row.Context == policy.Warm) || warm != (row.Of == "mission") {
				t.Errorf("%s: the row %s has the context %q of %q", c.target, row.Shape, row.Context, row.Of)
			}
		}
		if v.Outcome != c.outcome || strings.Join(failed, " ") != c.failed {
			t.Errorf("%s: %s: %s (%v)", c.target, v.Outcome, v.Summary, failed)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseEvidence("e.json", text); err != nil || !slices.Equal(again.Shapes, e.Shapes) {
			t.Errorf("%s: %v: read back as %+v", c.target, err, again)
		}
	}
}

// TestWithoutTheContext checks that evidence from before a goal asked for a warm cache cannot pass by what it lacks.
func TestWithoutTheContext(t *testing.T) {
	p := contextPolicy(t, "{shapes: [mission], context: [cold, warm], speedup: '>= +10%'}")
	e := evidence("mission")
	step{shapes: []stepShape{{name: "mission", micros: 20, ratio: 2}}, pairs: 50, noise: simulate.Noise{Within: 0.02, Between: 0.002}}.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
	if v := NewSimulator().Judge(p, e); v.Outcome == Pass || !strings.Contains(v.Summary, "mission:warm") {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// TestWarmHasNoTrafficFloor checks that the bandwidth of the memory bounds no time with a warm cache.
func TestWarmHasNoTrafficFloor(t *testing.T) {
	e := evidence("mission")
	e.Device.Bandwidth = 1e12
	e.Shapes[0].Bytes = 16e6 // 16 µs
	p := contextPolicy(t, "{shapes: [mission], context: [cold, warm], speedup: '>= +10%'}")
	e.Shapes = InContexts(&p.Rules[0], e.Shapes, e.Weights)
	step{
		shapes: []stepShape{{name: "mission", micros: 40, ratio: 2}, {name: "mission:warm", micros: 10, ratio: 2}}, pairs: 50, noise: simulate.Noise{Within: 0.02, Between: 0.002},
	}.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
	for _, r := range e.Performance.Rounds {
		for i := range r.Series {
			r.Series[i].Cold = r.Series[i].Shape == "mission"
		}
	}
	if v := NewSimulator().Judge(p, e); v.Outcome != Pass {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// TestContradictingContexts checks that evidence is refused whose shapes or series contradict their context.
func TestContradictingContexts(t *testing.T) {
	for _, c := range []struct{ shapes, want string }{
		{`{"name":"a","dims":"N=1"},{"name":"a:warm","dims":"N=1","of":"a","context":"warm"}`, ""},
		{`{"name":"a:warm","dims":"N=1","of":"a"}`, "shapes[0].context: does not belong to a shape with a warm cache"},
		{`{"name":"a:warm","dims":"N=1","of":"a","context":"hot"}`, "shapes[0].context: does not belong"},
		{`{"name":"b:warm","dims":"N=1","of":"a","context":"warm"}`, "shapes[0].of: does not belong"},
		{`{"name":"a","dims":"N=1","context":"warm"}`, "shapes[0].of: does not belong"},
		{`{"name":"a:warm","dims":"N=1","of":"a","context":"warm","secret":true}`, "shapes[0].secret: does not belong"},
	} {
		_, err := ParseEvidence("e.json", []byte(`{"schema":"`+EvidenceSchema+`","kernel":"k","shapes":[`+c.shapes+`],"performance":{"rounds":[]}}`))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.shapes, err, c.want)
		}
	}
	_, err := ParseEvidence("e.json", []byte(`{"schema":"`+EvidenceSchema+`","kernel":"k","shapes":[{"name":"a:warm","dims":"N=1","of":"a","context":"warm"}],
		"performance":{"rounds":[{"attempt":1,"series":[{"shape":"a:warm","batch":1,"cold":true,"order":"bc","ns":[1,1]}]}]}}`))
	if err == nil || !strings.Contains(err.Error(), "performance.rounds[0].series[0].cold: is set for a shape with a warm cache") {
		t.Error(err)
	}
}

// TestWeightedContext checks that a goal for the step is met from a cold cache and from a warm one, where the weights say that a
// shape is warm, and that both are needed.
func TestWeightedContext(t *testing.T) {
	cold, warm := stepShape{name: "mission", launches: 3, micros: 20, ratio: 1.84}, stepShape{name: "mission:warm", launches: 3, micros: 8, ratio: 1.16}
	small := stepShape{name: "small", launches: 1, micros: 4, ratio: 1.16}
	both := []stepShape{cold, warm, small}
	for _, c := range []struct {
		target   string
		warm     []string
		shapes   []stepShape
		outcome  Outcome
		timed    string
		baseline float64
		role     Role
		failed   string
	}{
		{"{weighted: '>= +50%'}", nil, []stepShape{cold, small}, Pass, "mission small", 64, RoleTarget, ""},
		{"{weighted: '>= +10%'}", []string{"mission"}, both, Pass, "mission mission:warm small", 64, RoleTarget, ""},
		{"{weighted: '>= +50%'}", []string{"mission"}, both, Defer, "mission mission:warm small", 64, RoleTarget, "all launches of a warm step"},
		{"{weighted: '>= +10%'}", []string{"mission"}, []stepShape{{"mission", 3, 20, 1.02, 0}, warm, small}, Defer, "mission mission:warm small", 64, RoleTarget, "on all launches of a step "},
		{"{weighted: '>= +10%'}", []string{"mission"}, []stepShape{cold, small}, Defer, "mission mission:warm small", 0, "", "mission:warm"},
		{"{shapes: [mission], speedup: '>= +50%'}", []string{"mission"}, []stepShape{cold, small}, Pass, "mission small", 64, RoleInfo, ""},
	} {
		p := performancePolicy(t, "{target: "+c.target+", guard: {speedup: '>= -2%'}, secret_shape: false}")
		e := evidence("mission", "small")
		e.Weights = &Weights{Launches: map[string]float64{"mission": 3, "small": 1}, Warm: c.warm}
		e.Shapes = InContexts(&p.Rules[0], e.Shapes, e.Weights)
		if timed := strings.Join(TimedShapes(&p.Rules[0], e), " "); timed != c.timed {
			t.Errorf("%s, warm %v: %s is timed", c.target, c.warm, timed)
		}
		if len(c.shapes) < len(e.Shapes) {
			e.Shapes = slices.DeleteFunc(e.Shapes, func(s Shape) bool { return s.Context != "" }) // evidence from before the manifest said so
		}
		step{shapes: c.shapes, pairs: 50, noise: simulate.Noise{Within: 0.02, Between: 0.002}}.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
		v := NewSimulator().Judge(p, e)
		if v.Outcome != c.outcome || !strings.Contains(v.Summary, c.failed) {
			t.Errorf("%s of %d shapes: %s: %s", c.target, len(c.shapes), v.Outcome, v.Summary)
		}
		if c.baseline == 0 {
			continue
		}
		if step := "bring all launches of a warm step together to ≤"; strings.Contains(c.failed, "warm step") != strings.Contains(strings.Join(v.ToPass, "\n"), step) {
			t.Errorf("%s: to pass: %q", c.target, v.ToPass)
		}
		w, warm := v.Weighted, v.WeightedWarm
		if w == nil || w.Role != c.role || w.Baseline != c.baseline || w.Context != "" || (warm != nil) != (c.warm != nil && c.role == RoleTarget) {
			t.Errorf("%s: %+v and %+v, want %v µs per step as %s", c.target, w, warm, c.baseline, c.role)
			continue
		}
		if warm != nil && (warm.Baseline != 28 || warm.Context != policy.Warm || warm.Speedup.Value < 0.14 || warm.Speedup.Value > 0.18) {
			t.Errorf("%s, warm: %+v", c.target, warm)
		}
		failed := map[bool]Status{true: Failed, false: Passed}
		if warm != nil && (w.Status != failed[strings.HasSuffix(c.failed, "a step ")] || warm.Status != failed[strings.HasSuffix(c.failed, "warm step")]) {
			t.Errorf("%s: cold %s and warm %s: %s", c.target, w.Status, warm.Status, v.Summary)
		}
	}
}
