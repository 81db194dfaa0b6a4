package gates

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

func TestWhichEvidenceHasSingleLaunches(t *testing.T) {
	for want, list := range map[bool][]Evidence{true: {{Mode: "cuda"}, {Mode: "cpu"}}, false: {{Mode: "command"}}} {
		for _, e := range list {
			if judgesSingle(&e) != want {
				t.Errorf("%s: %v", e.Mode, !want)
			}
		}
	}
}

// Every case that a policy asks for must have been run, with all that the policy asks of it.
func TestMissingCases(t *testing.T) {
	gate := parsePolicy(t, `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], distributions: [normal], determinism: true, bit_parity: true, secret_cases: 2, norm_error: "<= 1%"}
rules: [{name: default}]
`).Rules[0].Gates.Correctness
	for _, c := range []struct {
		name   string
		change func(*[]Case)
		want   []string
	}{
		{"all are there", func(*[]Case) {}, nil},
		{"a seed", func(all *[]Case) { *all = slices.Delete(*all, 1, 2) }, []string{"mission, seed 1, normal inputs"}},
		{"a secret case", func(all *[]Case) { *all = (*all)[:3] }, []string{"1 secret cases"}},
		{"secret cases are no others", func(all *[]Case) { (*all)[0].Secret = true }, []string{"mission, seed 0, normal inputs"}},
		{"a second launch", func(all *[]Case) { (*all)[0].Deterministic = nil }, []string{"mission, seed 0, normal inputs: a second launch"}},
		{"the baseline's output", func(all *[]Case) { (*all)[1].BitParity = nil }, []string{"mission, seed 1, normal inputs: the baseline's output"}},
		{"a case that failed", func(all *[]Case) {
			(*all)[1] = Case{Input: Input{Shape: "mission", Distribution: "normal", Seed: 1}, Failure: &Failure{}}
		}, nil},
	} {
		var cases []Case
		for i := range 4 {
			cases = append(cases, Case{Input: Input{Shape: "mission", Distribution: "normal", Seed: uint64(i % 2), Secret: i > 1}, Deterministic: new(true), BitParity: new(true), Errors: &Errors{}})
		}
		c.change(&cases)
		e := &Evidence{Shapes: []Shape{{Name: "mission"}}, Correctness: &Correctness{Cases: cases}}
		if got := facts.Sentences(missingCases(gate, e)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	other := *gate
	other.Shapes = policy.Shapes{Names: []string{"other"}}
	other.SecretCases = 0
	if got := missingCases(&other, &Evidence{Shapes: []Shape{{Name: "mission"}}, Correctness: &Correctness{}}); len(got) != 1 || got[0].Sentence() != "shape other, which the kernel's manifest does not have" {
		t.Errorf("%q", got)
	}
}

// A later machine code needs more rounds that meet the goal, each by itself.
func TestRoundsThatProve(t *testing.T) {
	for _, c := range []struct {
		number, agree, rounds int
		meet                  float64
		want                  bool
	}{
		{1, 0, 6, 0.01, true}, {1, 6, 6, 0.03, false}, {1, 6, 6, 0.025, true}, {2, 6, 6, 0, false}, {2, 7, 7, 0, false}, {2, 8, 8, 0, true}, {2, 8, 8, 0.03, false}, {2, 11, 12, 0, true}, {2, 10, 12, 0, false},
		{3, 8, 8, 0, false}, {3, 9, 9, 0, true},
	} {
		if got := (&comparison{number: c.number, alpha: 0.025}).proves(test{meet: c.meet, agree: c.agree, rounds: c.rounds}); got != c.want {
			t.Errorf("code %d, %d of %d rounds, p %g: %v", c.number, c.agree, c.rounds, c.meet, got)
		}
	}
}

// A round that is exactly on the goal meets it.
func TestRoundsOnTheGoal(t *testing.T) {
	rounds := stats.Sample{Rounds: [][]float64{{1.5}, {1.5}, {1.5}, {1.5}, {1.4}, {1.6}}}
	micros := stats.Sample{Rounds: [][]float64{{4}, {4}, {4}, {4}, {5}, {3}}}
	s := &shapeComparison{goalOf: goalOf{role: RoleTarget}, ratio: always(t, 1.5), samples: &samples{ratios: rounds, candidateTimes: timedSample{Sample: micros}}}
	goal := within(4, 4)
	goal.Speedup = &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: 0.5}
	tests, ok := s.testsOf(newResamplePlan(fewResamples), &goal)
	if !ok || len(tests) != 3 {
		t.Fatalf("%+v", tests)
	}
	for _, c := range tests {
		if c.agree != 5 || c.rounds != 6 {
			t.Errorf("%s: %d of %d rounds agree", c.metric, c.agree, c.rounds)
		}
	}
}

// The step of a clock is the smallest distance of two readings, if all others are multiples of it, up to the noise of how times are
// stored.
func TestDistancesOfReadings(t *testing.T) {
	for _, c := range []struct {
		nanos []float64
		want  float64 // nanoseconds
	}{
		{[]float64{1000, 1010, 1010, 1030}, 10},
		{[]float64{1030, 1010, 1000, 1010}, 10},
		{[]float64{1000, 1010, 1010, 1030.4}, 10.2},
		{[]float64{1000, 1010, 1010, 1030.6}, 0},
		{[]float64{1000, 1010, 1010, 1010.0005, 1030}, 10},
		{[]float64{1000, 1010, 1030}, 0}, // no reading twice
		{[]float64{1000, 1010, 1010}, 0}, // two readings
		{[]float64{1000, 1002.4, 1002.4, 1004.8}, 0},
		{[]float64{1000, 1002.6, 1002.6, 1005.2}, 2.6},
		{[]float64{1000, 1010, 1010, 5010.4}, 10.001},
	} {
		median := slices.Sorted(slices.Values(c.nanos))[len(c.nanos)/2]
		if got := clockStep(&Series{Nanos: c.nanos}) * median; math.Abs(got-c.want) > 0.001 {
			t.Errorf("%v: %g, want %g", c.nanos, got, c.want)
		}
	}
}

func TestClippedDiff(t *testing.T) {
	line := strings.Repeat("x", 1023) + "\n"
	for _, c := range []struct {
		diff       string
		lines, cut int
		kept       int // bytes
	}{
		{"a\nb\nc\n", 3, 0, 5}, {"a\nb\nc\n", 2, 1, 3}, {strings.Repeat(line, 16), 100, 0, MaxCodeDiff - 1}, {strings.Repeat(line, 15) + strings.Repeat("x", 1024), 100, 0, MaxCodeDiff},
		{strings.Repeat(line, 15) + strings.Repeat("x", 1025), 100, 1, 15*1024 - 1}, {strings.Repeat(line, 17), 100, 1, MaxCodeDiff - 1},
	} {
		if kept, cut := ClipDiff(c.diff, c.lines); len(kept) != c.kept || cut != c.cut {
			t.Errorf("%d bytes in at most %d lines: %d bytes are kept and %d lines cut, want %d and %d", len(c.diff), c.lines, len(kept), cut, c.kept, c.cut)
		}
	}
}

// What is wrong with a case, and whether the baseline has it.
func TestMissesOfACase(t *testing.T) {
	gate := &policy.CorrectnessGate{Determinism: true, BitParity: true}
	gate.MaxAbs = &quantity.Bound[quantity.Number]{Op: quantity.AtMost, Value: 0.5}
	none := &Errors{Elements: 10}
	at := func(abs float64) *Errors { return &Errors{Elements: 10, MaxAbs: abs, MeanAbs: 0.1, Norm: 0.1} }
	for _, c := range []struct {
		name string
		k    Case
		want string
	}{
		{"nothing", Case{Errors: none, Deterministic: new(true), BitParity: new(true)}, "[]"},
		{"other bits than the baseline's", Case{Errors: none, Deterministic: new(true), BitParity: new(false)}, "[{the output is not bit-identical to the baseline's false}]"},
		{"other bits each time", Case{Errors: none, Deterministic: new(false)}, "[{two launches on the same input gave different bits false}]"},
		{"other bits each time, as before", Case{Errors: none, Deterministic: new(false), BaselineDeterministic: new(false)}, "[{two launches on the same input gave different bits true}]"},
		{"other bits each time, as not before", Case{Errors: none, Deterministic: new(false), BaselineDeterministic: new(true)}, "[{two launches on the same input gave different bits false}]"},
		{"an error", Case{Errors: at(1)}, "[{max |err| 1 (asked <= 0.5) false}]"},
		{"an error, as before", Case{Errors: at(1.1), Baseline: at(1)}, "[{max |err| 1.1 (asked <= 0.5) true}]"},
		{"an error, larger than before", Case{Errors: at(1.11), Baseline: at(1)}, "[{max |err| 1.11 (asked <= 0.5) false}]"},
		{"an error that the bound allowed before", Case{Errors: at(0.52), Baseline: at(0.5)}, "[{max |err| 0.52 (asked <= 0.5) false}]"},
	} {
		got := "["
		for _, m := range c.k.misses(gate) {
			got += fmt.Sprintf("{%s %v}", m.fact.Sentence(), m.existed)
		}
		if got += "]"; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A new kernel is timed where nothing is asked of its time, and only then.
func TestWhoWantsTime(t *testing.T) {
	rule := performancePolicy(t, gate10).Rules[0]
	untimed := untimed(rule.Gates.Performance)
	for name, c := range map[string]struct {
		e    Evidence
		r    GateResult
		want bool
	}{
		"a new kernel":               {Evidence{}, untimed, true},
		"with a baseline":            {Evidence{Baseline: &Build{}}, untimed, false},
		"timed already":              {Evidence{Performance: &Performance{}}, untimed, false},
		"an earlier gate failed":     {Evidence{}, GateResult{Status: NotRun, Found: facts.NotReached{}}, false},
		"judged":                     {Evidence{}, GateResult{Status: Passed, Found: untimed.Found}, false},
		"compared, and not run then": {Evidence{Baseline: &Build{}}, GateResult{Status: NotRun}, false},
	} {
		c.e.Shapes = []Shape{{Name: "mission"}}
		j := &judgement{rule: &rule, evidence: &c.e}
		if got := j.wantsTime(c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A high-water mark that cannot be used is told with its field.
func TestProblemsOfABest(t *testing.T) {
	for _, c := range []struct {
		want string
		edit func(*Best)
	}{
		{"", func(*Best) {}}, {"shape", func(b *Best) { b.Shape = "x" }}, {"commit", func(b *Best) { b.Commit = "x" }}, {"baseline", func(b *Best) { b.Baseline = 0 }}, {"unmeasured", func(b *Best) { b.Unmeasured = -1 }},
		{"", func(b *Best) { b.Lost = slices.Repeat(b.Lost, 20) }}, {"lost", func(b *Best) { b.Lost = slices.Repeat(b.Lost, 21) }}, {"lost[0]", func(b *Best) { b.Lost[0].Commit = "x" }},
		{"lost[0]", func(b *Best) { b.Lost[0].Speedup = 0 }}, {"lost[0]", func(b *Best) { b.Lost[0].Speedup = -1 }}, {"lost[0]", func(b *Best) { b.Lost[0].Speedup = -1.5 }}, {"lost[0]", func(b *Best) { b.Lost[0].Speedup = 0.5 }},
	} {
		b := Best{Shape: "mission", Commit: bestCommit, Baseline: 0.9, Lost: []Loss{{Commit: bestCommit, Speedup: -0.1}}}
		c.edit(&b)
		if field, problem := b.problem(map[string]bool{"mission": true}); field != c.want || (problem == "") != (field == "") {
			t.Errorf("%+v: %s %s, want %q", b, field, problem, c.want)
		}
	}
}

// A finding without a count was seen once.
func TestHowOftenAMistakeWasSeen(t *testing.T) {
	for _, c := range []struct {
		is, was int
		want    bool
	}{{0, 0, true}, {1, 0, true}, {2, 0, false}, {0, 1, true}, {2, 2, true}, {3, 2, false}} {
		if got := noMoreOf([]Finding{{Count: c.is}}, []int{0}, []Finding{{Count: c.was}}, []int{0}); got != c.want {
			t.Errorf("%d after %d: %v", c.is, c.was, got)
		}
	}
}

// Three kernels are named one by one, and of more the worst.
func TestHeadlineOfKernels(t *testing.T) {
	for n, want := range map[int]string{1: "k1: 11 registers; within budget", 3: "k1: 11 registers; k2: 12 registers; k3: 13 registers; within budget", 4: "the worst of 4 kernels: 14 registers; within budget"} {
		var table resourceTable
		for i := range n {
			table.candidate = append(table.candidate, KernelUse{Entry: fmt.Sprint("k", i+1), Resources: Resources{Registers: new(11 + i)}})
		}
		if got := table.within("").Sentence(); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestEvidenceThatIsCutOff(t *testing.T) {
	for _, text := range []string{"", "{", `{"schema":`, `{"schema": "kernelgate/evidence/v1", "shapes": [`} {
		if e, err := ParseEvidence("e.json", []byte(text)); err == nil || e != nil || !strings.Contains(err.Error(), "e.json:1:") || !strings.HasSuffix(err.Error(), "unexpected end of JSON input") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The last round tells which attempt it was.
func TestAttemptOfTheLastRound(t *testing.T) {
	p := &Performance{Rounds: []Round{{Attempt: 1}, {Attempt: 1}, {Attempt: 2}}}
	for rounds, want := range map[int]int{1: 1, 2: 1, 3: 2} {
		if m := (&comparison{rounds: rounds}).measuring(&policy.PerformanceGate{}, p, []interim{{3, 0.01}}); m.Attempts != want {
			t.Errorf("after %d rounds: attempt %d, want %d", rounds, m.Attempts, want)
		}
	}
}
