package arm_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

const policyYAML = `version: 1
gates:
  ptxas: {stack: {max: STACK}}
  correctness: {seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  sanitize: {shapes: [mission], secret_cases: 0}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, guard: {shapes: [small], speedup: ">= -2%"}, pairs: 20}
rules: [{name: default}]
`

type silent struct{}

func (silent) Report(runners.Event) {}

// newJob is a job with a variant for each of the scripts; the first is the baseline.
func newJob(t *testing.T, stack string, scripts ...string) runners.Job {
	t.Helper()
	text := strings.Replace(scripted.Manifest, "source: scale.c\n", "", 1) + "shapes: {mission: {N: 1000}, small: {N: 10}, large: {N: 2000}}\nlimits: {N: 1..100000}\nvariants:\n"
	dir := t.TempDir()
	for i, script := range scripts {
		name := string(rune('a' + i))
		limits := ""
		if strings.Contains(script, "NARROW") {
			limits = ", limits: {N: 1..100}"
		}
		text += "  " + name + ": {source: " + name + ".c" + limits + "}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".c"), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := manifest.Parse("kernel.yaml", []byte(text+"default_variant: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(strings.Replace(policyYAML, "STACK", stack, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return runners.Job{Manifest: m, Policy: p, PolicyFile: "policy.yaml", Trusted: dir, Baseline: &runners.Side{Dir: dir, Variant: "a"}, Candidate: runners.Side{Dir: dir, Variant: "a"}}
}

func open(t *testing.T, opener arm.Opener, job runners.Job, variant string, shapes ...string) *arm.Arm {
	t.Helper()
	bench, err := arm.NewBenchWith(opener, job, shapes)
	if err != nil {
		t.Fatal(err)
	}
	a, err := bench.Open(t.Context(), runners.Side{Dir: job.Trusted, Variant: variant}, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// steps takes all steps up to the first that refuses the candidate.
func steps(t *testing.T, a *arm.Arm) *arm.Refusal {
	t.Helper()
	for _, step := range []func(context.Context) (*arm.Refusal, error){a.Build, a.Check, a.Sanitize} {
		refusal, err := step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if refusal != nil {
			return refusal
		}
	}
	_, refusal, err := a.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return refusal
}

// TestRefusals checks that the gates of the policy refuse an arm at the step that gathers their
// evidence.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		script, stack string
		gate          gates.Gate
		text          string
	}{
		"good":           {"speed 1.2", "64KiB", "", ""},
		"does not build": {"speed 9 BROKEN", "64KiB", gates.GateBuild, "it is broken"},
		"over budget":    {"speed 9", "500B", gates.GatePTXAS, "stack"},
		"wrong":          {"speed 9 WRONG", "64KiB", gates.GateCorrectness, "error"},
		"races":          {"speed 9 RACE", "64KiB", gates.GateSanitize, "race"},
		"other work":     {"speed 9 NARROW", "64KiB", gates.GateBuild, "it does not take the shape mission"},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := steps(t, open(t, scripted.Runner{}.Open, newJob(t, c.stack, "speed 1", c.script), "b"))
			switch {
			case c.gate == "" && refusal != nil:
				t.Errorf("refused: %v", refusal)
			case c.gate != "" && (refusal == nil || refusal.Gate != c.gate || !strings.Contains(refusal.String(), c.text)):
				t.Errorf("got %v, want the %s gate to say %q", refusal, c.gate, c.text)
			}
		})
	}
}

// TestRound checks that a round pairs candidate and baseline on the shapes of the policy or of the
// caller, and never on the secret one.
func TestRound(t *testing.T) {
	for name, c := range map[string]struct{ shapes, want []string }{
		"the policy's": {nil, []string{"mission", "small"}},
		"the caller's": {[]string{"large"}, []string{"large"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := open(t, scripted.Runner{}.Open, newJob(t, "64KiB", "speed 1", "speed 1.25"), "b", c.shapes...)
			if r, err := a.Build(t.Context()); r != nil || err != nil {
				t.Fatal(r, err)
			}
			if r, err := a.Check(t.Context()); r != nil || err != nil {
				t.Fatal(r, err)
			}
			round, refusal, err := a.Round(t.Context())
			if err != nil || refusal != nil {
				t.Fatal(refusal, err)
			}
			speedups := gates.RoundSpeedups(round)
			if len(speedups) != len(c.want) {
				t.Errorf("timed %v, want %v", speedups, c.want)
			}
			for _, shape := range c.want {
				if math.Abs(speedups[shape]-1.25) > 0.02 {
					t.Errorf("%s: a speedup of %v, want about 1.25", shape, speedups[shape])
				}
			}
			if !(round.Seconds > 0) || round.Started.IsZero() {
				t.Errorf("the round does not say when it was measured: %v, %v s", round.Started, round.Seconds)
			}
		})
	}
}

// failing is a backend whose rounds show a fault.
type failing struct {
	runners.Backend
	spoil func(*gates.Round)
}

func (f failing) Round(ctx context.Context, g *policy.PerformanceGate, s []manifest.Shape, p runners.Progress) (gates.Round, error) {
	round, err := f.Backend.Round(ctx, g, s, p)
	f.spoil(&round)
	return round, err
}

// TestTimedFailure checks that a candidate is refused that is right only while nobody times it.
func TestTimedFailure(t *testing.T) {
	for name, spoil := range map[string]func(*gates.Round){
		"crashes": func(r *gates.Round) { r.Failure = &gates.Failure{Kind: "crash", Detail: "it crashed"} },
		"cheats":  func(r *gates.Round) { r.Series[0].Worst = &gates.Errors{Elements: 100, Norm: 0.5, MaxAbs: 1, Bad: 50} },
	} {
		t.Run(name, func(t *testing.T) {
			opener := func(ctx context.Context, job runners.Job, scratch string) (runners.Backend, error) {
				b, err := scripted.Runner{}.Open(ctx, job, scratch)
				return failing{b, spoil}, err
			}
			refusal := steps(t, open(t, opener, newJob(t, "64KiB", "speed 1", "speed 3"), "b"))
			if refusal == nil || refusal.Gate != gates.GatePerformance || refusal.Reason != gates.ReasonCorrectness {
				t.Errorf("got %v, want the performance gate to find wrong outputs", refusal)
			}
		})
	}
}

// picky is a backend that cannot build one of the variants for its device.
type picky struct {
	runners.Backend
	err error
}

func (p picky) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	if side.Variant == "b" {
		return gates.Build{}, p.err
	}
	return p.Backend.Build(ctx, role, side)
}

// TestBuildForThisDevice checks that a variant for other devices is refused, and that a fault of the
// host is none of the candidate.
func TestBuildForThisDevice(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		baseline string
		refused  bool
	}{
		"for another GPU":         {runners.SetupErrorf("variant b is built for sm_90a, but the GPU is sm_89"), "a", true},
		"no compiler":             {errors.New("the compiler is gone"), "a", false},
		"baseline for other GPUs": {runners.SetupErrorf("variant b is built for sm_90a, but the GPU is sm_89"), "b", false},
	} {
		t.Run(name, func(t *testing.T) {
			job := newJob(t, "64KiB", "speed 1", "speed 2", "speed 3")
			job.Baseline.Variant = c.baseline
			candidate := map[string]string{"a": "b", "b": "c"}[c.baseline]
			a := open(t, func(ctx context.Context, job runners.Job, scratch string) (runners.Backend, error) {
				b, err := scripted.Runner{}.Open(ctx, job, scratch)
				return picky{b, c.err}, err
			}, job, candidate)
			refusal, err := a.Build(t.Context())
			if (refusal != nil) != c.refused || (err != nil) == c.refused {
				t.Errorf("refusal %v, error %v", refusal, err)
			}
			if c.refused && !strings.Contains(refusal.Text, "the GPU is sm_89") {
				t.Errorf("refused: %v", refusal)
			}
		})
	}
}

// TestSame checks that equal machine code is one arm, and that the baseline is recognised.
func TestSame(t *testing.T) {
	job := newJob(t, "64KiB", "speed 1", "speed 2", "speed 2", "speed 1")
	same := map[string]string{}
	for _, variant := range []string{"b", "c", "d"} {
		a := open(t, scripted.Runner{}.Open, job, variant)
		if a.Same() != "" {
			t.Error("an arm is known before it is built")
		}
		if r, err := a.Build(t.Context()); r != nil || err != nil {
			t.Fatal(r, err)
		}
		same[variant] = a.Same()
		if a.IsBaseline() != (variant == "d") {
			t.Errorf("%s: IsBaseline %v", variant, a.IsBaseline())
		}
	}
	if same["b"] == "" || same["b"] != same["c"] || same["b"] == same["d"] {
		t.Errorf("b is %q, c is %q and d is %q", same["b"], same["c"], same["d"])
	}
}

// TestArmsShareNothing checks that each arm has a copy of the policy, and that the job's policy does not change.
func TestArmsShareNothing(t *testing.T) {
	job := newJob(t, "64KiB", "speed 1", "speed 2 RACE")
	if refusal := steps(t, open(t, scripted.Runner{}.Open, job, "b")); refusal == nil {
		t.Error("the sanitizers did not run")
	}
	if g := job.Rule().Gates; g.Sanitize == nil || g.Performance.Target == nil {
		t.Error("an arm has changed the policy of the job")
	}
}

func TestBadBench(t *testing.T) {
	job := newJob(t, "64KiB", "speed 1")
	untimed := job
	var err error
	if untimed.Policy, err = policy.Parse("policy.yaml", []byte("version: 1\ngates: {}\nrules: [{name: default}]\n")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		job    runners.Job
		shapes []string
		want   string
	}{
		"no such shape": {job, []string{"huge"}, `scale cannot be timed on the shape "huge" (its baseline takes mission, small, large)`},
		"nothing timed": {untimed, nil, "policy.yaml: the rule default has no performance gate, and a search needs one to time scale (add gates.performance, or name another policy)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := arm.NewBenchWith(scripted.Runner{}.Open, c.job, c.shapes)
			if _, bad := err.(usage.Error); !bad || err.Error() != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestGuards checks which shapes of a race have a limit.
func TestGuards(t *testing.T) {
	bench, err := arm.NewBenchWith(scripted.Runner{}.Open, newJob(t, "64KiB", "speed 1"), []string{"mission", "small", "large"})
	if err != nil {
		t.Fatal(err)
	}
	if limits := bench.Guards(); len(limits) != 1 || math.Abs(limits["small"]-0.98) > 1e-12 {
		t.Errorf("the limits are %v, want 0.98 on small: mission is the target, and nothing guards large", limits)
	}
}
