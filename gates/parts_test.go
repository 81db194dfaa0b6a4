package gates

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A case that the change has broken is told before those that were wrong already.
func TestOrderOfWrongCases(t *testing.T) {
	named := func(shape string, existed bool, baseline facts.Fact) facts.WrongCase {
		return facts.WrongCase{Input: Input{Shape: shape, Dims: "S=1", Distribution: "normal"}, Problem: facts.Quote("wrong"), Baseline: baseline, Existed: existed}
	}
	old, worse, own := named("old", true, facts.Quote("wrong")), named("worse", false, facts.Quote("wrong")), named("own", false, nil)
	for _, c := range []struct {
		cases []facts.WrongCase
		total int
		want  []string // shapes in their order
		says  string
	}{
		{[]facts.WrongCase{old, worse, own}, 5, []string{"own", "worse", "old"}, ". 1 of them were wrong before this change"},
		{[]facts.WrongCase{old, own, old}, 5, []string{"own", "old", "old"}, ". 2 of them were wrong before this change"},
		{[]facts.WrongCase{own}, 5, []string{"own"}, "in 1 of 5 cases; first: own, seed 0, normal inputs: wrong"},
		{[]facts.WrongCase{old}, 5, []string{"old"}, ". They were wrong before this change"},
		{[]facts.WrongCase{old, worse}, 2, []string{"worse", "old"}, "both wrong in every case (2)"},
	} {
		r := (&judgement{evidence: &Evidence{Kernel: "k"}}).wrong(slices.Clone(c.cases), c.total)
		var got []string
		for _, d := range facts.Sentences(r.More) {
			shape, _, _ := strings.Cut(d, ",")
			got = append(got, shape)
		}
		if !slices.Equal(got, c.want) || !strings.Contains(r.Found.Sentence(), c.says) {
			t.Errorf("%v: %s", got, r.Found.Sentence())
		}
		if setup := strings.Contains(c.says, "every case"); (r.Reason == ReasonSetup) != setup {
			t.Errorf("%s: the reason is %s", c.says, r.Reason)
		}
	}
}

// What a batch claims and launches do not show is told of a new kernel whatever its outcome.
func TestTooGoodANewKernel(t *testing.T) {
	p50 := within(100, 0)
	for _, c := range []struct {
		name    string
		goal    policy.Goal
		claims  string
		outcome Status
		floor   float64
		want    string
	}{
		{"nothing", p50, "", Passed, 0, ""},
		{"a claim, and passed", p50, "claims", Passed, 0, "claims"},
		{"a claim, and open", p50, "claims", Open, 0, "claims"},
		{"a claim, and no time asked", faster(0.1), "claims", Passed, 0, ""},
		{"below the floor", faster(0.1), "", Passed, 60, "at least 60 µs"},
	} {
		s := &shapeComparison{samples: &samples{candidate: []float64{50}}, floor: c.floor}
		got := words((&comparison{alpha: 0.025, few: newResamplePlan(fewResamples), overclaimed: quoted(c.claims), shapes: []*shapeComparison{s}}).tooGood(&policy.PerformanceGate{Target: &c.goal}, c.outcome))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A new kernel whose time is met only by what earlier launches left behind is found, and one that gains nothing by that is not.
func TestNewKernelThatKeepsState(t *testing.T) {
	goal := within(100, 0)
	for kept, want := range map[float64]bool{1: false, 1.5: true} {
		s := &shapeComparison{samples: &samples{candidate: []float64{50}}}
		for range 6 {
			appendRound(&s.samples.clocks.stateful, []float64{kept})
		}
		got := (&comparison{alpha: 0.025, few: newResamplePlan(fewResamples), shapes: []*shapeComparison{s}}).tooGood(&policy.PerformanceGate{Target: &goal}, Passed)
		if (got != nil) != want {
			t.Errorf("%g times as fast with its state: %q", kept, got)
		}
	}
}

// A rule may go by the kernel's name.
func TestRuleOfAKernel(t *testing.T) {
	p := parsePolicy(t, "version: 1\ngates: {}\nrules:\n  - {name: special, when: {kernels: [fast_*]}}\n  - {name: default}\n")
	for kernel, want := range map[string]string{"fast_scale": "special", "scale": "default"} {
		e := evidence("mission")
		e.Kernel = kernel
		v := Judge(p, "test.yaml", e)
		if v.Rule != want {
			t.Errorf("%s is judged by %s", kernel, v.Rule)
		}
		if len(v.Builds) != 2 || v.Builds[0].Variant != "a" || v.Builds[1].Variant != "b" {
			t.Errorf("the builds are %+v", v.Builds)
		}
	}
}

// The first launch of a process may take a quarter longer than a later one beyond what it costs the baseline, or half of that cost.
func TestFirstLaunches(t *testing.T) {
	launches := func(first, later float64) (a, b []float64) { return []float64{first, first}, []float64{later, later} }
	for _, c := range []struct {
		name                                             string
		baseFirst, base, candidateFirst, candidate, want float64
	}{
		{"as the baseline", 300, 200, 200, 100, 1 - 1.0/3},
		{"as later ones, where the baseline's is faster", 100, 200, 100, 100, 1 - 0.25},
		{"a quarter of a launch more", 200, 200, 125, 100, 1},
		{"more than that", 200, 200, 165, 100, 1.4},
		{"half of the start more", 1000, 200, 1300, 100, 1},
		{"far more", 200, 200, 900, 100, 2},
		{"far less", 200, 200, 10, 100, 0.5},
	} {
		s := &Singles{}
		s.FirstBaseline, s.Baseline = launches(c.baseFirst, c.base)
		s.FirstCandidate, s.Candidate = launches(c.candidateFirst, c.candidate)
		var k clocks
		k.addFirst(s)
		if len(k.first.Rounds) != 1 || !near(k.first.Rounds[0][0], c.want) {
			t.Errorf("%s: %v, want %g", c.name, k.first.Rounds, c.want)
		}
	}
	var k clocks
	k.addFirst(nil)
	k.addFirst(&Singles{Baseline: []float64{1}, Candidate: []float64{1}})
	if len(k.first.Rounds) != 0 {
		t.Errorf("without first launches: %v", k.first.Rounds)
	}
	for share, proven := range map[float64]bool{0.9: false, 1.1: true} {
		s := &shapeComparison{samples: &samples{}}
		for range 6 {
			appendRound(&s.samples.clocks.first, []float64{share})
		}
		if got := s.preparesOnce(newResamplePlan(fewResamples)); len(got) != 1 || (got[0].p < 0.01) != proven {
			t.Errorf("%g: %v", share, got)
		}
	}
}

// The round in the middle tells the clock's step.
func TestMiddleStepOfTheClock(t *testing.T) {
	for _, c := range []struct {
		steps []float64
		want  bool
	}{
		{nil, false}, {[]float64{0.021}, true}, {[]float64{0.02}, false}, {[]float64{0.021, 0, 0}, false}, {[]float64{0.021, 0, 0.021, 0, 0.021, 0}, true}, {[]float64{0.021, 0, 0, 0, 0.021, 0}, false},
	} {
		s := &shapeComparison{samples: &samples{}}
		for _, step := range c.steps {
			s.samples.steps = append(s.samples.steps, clockShare{all: step, most: step})
		}
		if got := s.coarseClock(); (got != nil) != c.want {
			t.Errorf("%v: %q", c.steps, got)
		}
	}
}

// A side may be much faster than the other, up to a step of half of its time.
func TestStepOfTheFasterSide(t *testing.T) {
	for most, want := range map[float64]bool{0.03: false, 0.5: false, 0.51: true} {
		s := &shapeComparison{samples: &samples{steps: []clockShare{{0.003, most, 0.7}}}}
		if got := s.coarseClock(); (got != nil) != want || s.rounding() != 0.7 {
			t.Errorf("%v: %q, off by %v", most, got, s.rounding())
		}
	}
}

// Compilers refuse both sides for one reason where the first error is the same, wherever it has moved to.
func TestSameRefusal(t *testing.T) {
	refused := func(text, file string, list ...string) *Build {
		b := &Build{Error: text}
		for _, message := range list {
			b.Diagnostics = append(b.Diagnostics, Diagnostic{Severity: "warning", Message: "unused"}, Diagnostic{Severity: "error", File: file, Line: 3, Message: message})
		}
		return b
	}
	for _, c := range []struct {
		name string
		b, c *Build
		want bool
	}{
		{"no baseline", nil, refused("x", ""), false},
		{"the baseline builds", &Build{OK: true, Error: "x"}, refused("x", ""), false},
		{"the candidate builds", refused("x", ""), &Build{OK: true, Error: "x"}, false},
		{"the same text", refused("x", ""), refused("x", ""), true},
		{"another text", refused("x", ""), refused("y", ""), false},
		{"the same error", refused("x", "a/k.cu", "no such type"), refused("y", "b/k.cu", "no such type"), true},
		{"the same error of another file", refused("x", "k.cu", "no such type"), refused("x", "l.cu", "no such type"), false},
		{"another error", refused("x", "k.cu", "no such type"), refused("x", "k.cu", "no such name"), false},
		{"an error and a text", refused("x", "k.cu", "no such type"), refused("x", ""), true},
	} {
		if got := sameRefusal(c.b, c.c); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := fmt.Sprint(diagnostics(refused("", "k.cu", "no such type").Diagnostics)); got != "[warning: unused k.cu:3: error: no such type]" {
		t.Error(got)
	}
}
