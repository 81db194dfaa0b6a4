package gates

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Only the number of a machine code keeps a comparison open where every shape that has not passed would pass as the first code.
func TestPassesAsTheFirstCode(t *testing.T) {
	shape := func(status Status, meets ...float64) *shapeComparison {
		s := &shapeComparison{status: status}
		for _, p := range meets {
			s.tests = append(s.tests, test{meet: p})
		}
		return s
	}
	slow := shape(Open, 0.001)
	slow.tails = []tail{{limit: 1.5, dist: always(t, 1.25)}}
	clueless := shape(Open)
	clueless.tooFew = true
	for _, c := range []struct {
		name   string
		number int
		shapes []*shapeComparison
		want   bool
	}{
		{"the first code", 1, []*shapeComparison{shape(Open, 0.001)}, false},
		{"enough for a first code", 2, []*shapeComparison{shape(Open, 0.03)}, true}, // 0.01 is a third of what a first code has
		{"not enough for a first code", 2, []*shapeComparison{shape(Open, 0.031)}, false},
		{"one test of two is not enough", 2, []*shapeComparison{shape(Open, 0.001, 0.5)}, false},
		{"what has passed does not matter", 2, []*shapeComparison{shape(Passed, 0.5), shape(Open, 0.001)}, true},
		{"one shape of two is not enough", 2, []*shapeComparison{shape(Open, 0.001), shape(Open, 0.5)}, false},
		{"a slow tail", 2, []*shapeComparison{slow}, false},
		{"too few samples", 2, []*shapeComparison{clueless}, false},
	} {
		if got := (&comparison{alpha: 0.01, number: c.number, shapes: c.shapes}).passesAsFirst(c.number); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// An undecided shape says what is lacking, and nothing about the conditions that are proven.
func TestWhatIsLacking(t *testing.T) {
	s := oneOf(t, "mission", RoleTarget, Open)
	proven, lacking := s.tests[0], s.tests[0]
	proven.meet, proven.threshold = 0.001, 1.1
	s.tests = []test{proven, lacking}
	r := (&comparison{rounds: 6, alpha: 0.025, few: newResamplePlan(fewResamples), shapes: []*shapeComparison{s, oneOf(t, "done", RoleTarget, Passed)}}).undecided(&Performance{})
	if len(r.More) != 1 || len(r.Steps) != 1 || !strings.Contains(stepWords(r.Steps[0]), "mission") {
		t.Errorf("%+v, to pass %+v", r.More, r.Steps)
	}
	few := &shapeComparison{goalOf: goalOf{shape: Shape{Name: "small"}}, status: Open, tooFew: true}
	r = (&comparison{rounds: 6, alpha: 0.025, shapes: []*shapeComparison{few}}).undecided(&Performance{Exhausted: true})
	if len(r.Steps) != 1 || stepWords(r.Steps[0]) != "measure small again: too few clean samples" || !strings.Contains(words(r.Found), "when the time budget was spent") {
		t.Errorf("%+v, to pass %+v", r.Found, r.Steps)
	}
}

// A latency reduction of a fifth is a speedup of a quarter.
func TestThresholdsOfGoals(t *testing.T) {
	s := &shapeComparison{goalOf: goalOf{role: RoleTarget}, ratio: always(t, 1.5), samples: &samples{}}
	percent := func(by float64) *quantity.Bound[quantity.Percent] {
		return &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: quantity.Percent(by)}
	}
	tests, ok := s.testsOf(newResamplePlan(fewResamples), &policy.Goal{Speedup: percent(0.1), LatencyReduction: percent(0.2)})
	if !ok || len(tests) != 2 || !near(tests[0].threshold, 1.1) || !near(tests[1].threshold, 1.25) {
		t.Errorf("%+v", tests)
	}
}

// Where a runner has none of the tools nobody has looked, and where it has one of them that one has.
func TestToolsThatAreLacking(t *testing.T) {
	policy := sanitizePolicy(t, "{shapes: [mission], tools: [memcheck, racecheck], secret_cases: 0}")
	for name, c := range map[string]struct {
		tools []Sanitized
		says  string
	}{
		"none was run":      {nil, "races and bad accesses were not checked: memcheck was not run; racecheck was not run"},
		"none is installed": {[]Sanitized{{Tool: "memcheck", Skipped: "not installed"}, {Tool: "racecheck", Skipped: "not installed"}}, "races and bad accesses were not checked: memcheck: not installed; racecheck: not installed"},
		"one was run":       {[]Sanitized{{Tool: "memcheck"}, {Tool: "racecheck", Skipped: "not installed"}}, "not checked: racecheck: not installed"},
	} {
		e := evidence("mission")
		e.Sanitize = &Sanitize{Cases: []Input{e.Correctness.Cases[0].Input}, Tools: c.tools}
		j := &judgement{rule: &policy.Rules[len(policy.Rules)-1], evidence: e}
		if r := j.sanitize(); r.Status != Missing || !strings.Contains(words(r.Found), c.says) {
			t.Errorf("%s: %s %s", name, r.Status, words(r.Found))
		}
	}
}
