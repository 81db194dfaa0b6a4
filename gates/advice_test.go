package gates

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// What the compiler refused is shown at its lines.
func TestFindingsOfABuild(t *testing.T) {
	e := evidence("mission")
	e.Candidate = &Build{Variant: "b", Error: "it does not compile", Diagnostics: []Diagnostic{{Severity: "warning", Message: "unused"}, {File: "k.cu", Line: 7, Severity: "error", Message: "no such name"}}}
	e.Baseline.OK, e.Baseline.Error = false, "another reason"
	v := judged(t, gate10, e)
	if v.Reason != ReasonBuild || len(v.Findings) != 1 || v.Findings[0].Line != 7 {
		t.Errorf("%s: %+v", v.Summary, v.Findings)
	}
	if got := strings.Join(detailTexts(v.Gates[0]), "; "); got != "k.cu:7: error: no such name; the baseline does not build either: another reason" {
		t.Error(got)
	}
}

// Advice is about the first thing that keeps a shape from passing although its median has met the goal.
func TestAdvice(t *testing.T) {
	slowTail := []tail{{metric: "mean", limit: 1.5, dist: always(t, 1.25)}}
	slowKind := []kindTest{{name: "large", dist: always(t, 0.5)}}
	for _, c := range []struct {
		s    shapeComparison
		want string
	}{
		{shapeComparison{}, ""},
		{shapeComparison{tails: slowTail, kinds: slowKind, kindFloor: 0.9, refuted: facts.Quote("x")}, "make the slow launches on mission faster"},
		{shapeComparison{kinds: slowKind, kindFloor: 0.9, refuted: facts.Quote("x"), samples: &samples{}}, "make mission faster again on the kinds of input that became slower"},
		{shapeComparison{kinds: slowKind, kindFloor: 0.98, samples: &samples{
			strata:        strata{kinds: []string{"normal", "large"}},
			baselineTimes: timedSample{stats.Sample{Rounds: [][]float64{{70, 34.68}}}, [][]int{{0, 1}}},
		}}, "bring `mission` to ≤\u00a035.38\u00a0µs on large inputs"},
		{shapeComparison{refuted: facts.Quote("x")}, "make a single launch"},
		{shapeComparison{unconfirmed: facts.Quote("x")}, "make a single launch"},
	} {
		c.s.shape.Name = "mission"
		if got := stepWords(c.s.advice(0.025)); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// An output is no worse than the baseline's up to the noise of an average, and of a single element.
func TestNoWorseThanTheBaseline(t *testing.T) {
	was := Errors{Elements: 100, Bad: 10, NaN: 2, Inf: 2, Unwritten: 2, MaxAbs: 1, MeanAbs: 1, Norm: 1}
	for _, c := range []struct {
		name       string
		edit       func(*Errors)
		more, fine bool // no more bad elements, and no worse
	}{
		{"the same", func(*Errors) {}, true, true},
		{"a norm within the noise", func(e *Errors) { e.Norm = 1.1 }, true, true},
		{"a norm beyond it", func(e *Errors) { e.Norm = 1.11 }, true, false},
		{"a mean within the noise", func(e *Errors) { e.MeanAbs = 1.1 }, true, true},
		{"a mean beyond it", func(e *Errors) { e.MeanAbs = 1.11 }, true, false},
		{"an element within the noise", func(e *Errors) { e.MaxAbs = 2 }, true, true},
		{"an element beyond it", func(e *Errors) { e.MaxAbs = 2.01 }, true, false},
		{"other elements", func(e *Errors) { e.Elements = 101 }, false, false},
		{"one NaN more", func(e *Errors) { e.NaN, e.Bad = 3, 11 }, false, false},
		{"one infinite more", func(e *Errors) { e.Inf, e.Bad = 3, 11 }, false, false},
		{"one unwritten more", func(e *Errors) { e.Unwritten, e.Bad = 3, 11 }, false, false},
		{"one wrong more", func(e *Errors) { e.Bad = 11 }, false, false},
		{"one wrong more in place of a NaN", func(e *Errors) { e.NaN = 1 }, false, false},
		{"one fewer of each", func(e *Errors) { e.Bad, e.NaN, e.Inf, e.Unwritten = 6, 1, 1, 1 }, true, true},
	} {
		e := was
		c.edit(&e)
		if more, fine := e.noMore(&was), e.noWorse(&was); more != c.more || fine != c.fine {
			t.Errorf("%s: no more %v, no worse %v", c.name, more, fine)
		}
		if e.noMore(nil) || e.noWorse(nil) {
			t.Errorf("%s: without a baseline it is no worse", c.name)
		}
	}
}

// Elements that no bound allows existed before where the baseline's output can be compared and has as many.
func TestCountsThatExisted(t *testing.T) {
	for _, c := range []struct {
		name string
		is   Errors
		was  *Errors
		want []bool
	}{
		{"none", Errors{Elements: 100}, nil, nil},
		{"no baseline", Errors{Elements: 100, NaN: 1}, nil, []bool{false}},
		{"as many", Errors{Elements: 100, NaN: 1, Inf: 2, Unwritten: 3}, &Errors{Elements: 100, NaN: 1, Inf: 2, Unwritten: 3}, []bool{true, true, true}},
		{"one more", Errors{Elements: 100, NaN: 2}, &Errors{Elements: 100, NaN: 1}, []bool{false}},
		{"fewer, of other elements", Errors{Elements: 100, NaN: 1}, &Errors{Elements: 101, NaN: 5}, []bool{false}},
	} {
		var got []bool
		for _, m := range c.is.countMisses(c.was) {
			got = append(got, m.existed)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A row of cases shows the first problem that the change has caused, and else the first that existed.
func TestProblemOfARow(t *testing.T) {
	own, old, none := facts.WrongCase{Problem: facts.Quote("own")}, facts.WrongCase{Problem: facts.Quote("old"), Existed: true}, facts.WrongCase{}
	for _, c := range []struct {
		cases []facts.WrongCase
		want  string
	}{
		{[]facts.WrongCase{none, none}, ""}, {[]facts.WrongCase{none, own}, "seed 1: own"}, {[]facts.WrongCase{old, own}, "seed 1: own"}, {[]facts.WrongCase{old, none, own}, "seed 2: own"}, {[]facts.WrongCase{own, old}, "seed 0: own"},
		{[]facts.WrongCase{old, old}, "seed 0: old"}, {[]facts.WrongCase{none, old, none, own, own}, "seed 3: own"},
	} {
		j := &judgement{}
		passed := 0
		for i, w := range c.cases {
			if w.Problem == nil {
				passed++
			}
			j.addCase(Case{Input: Input{Shape: "mission", Seed: uint64(i)}, Errors: &Errors{Elements: 10, Bad: i}}, w, w.Problem != nil)
		}
		if row := j.cases[0]; len(j.cases) != 1 || row.Problem != c.want || row.Total != len(c.cases) || row.Passed != passed || !near(row.BadShare, float64(len(c.cases)-1)/10) {
			t.Errorf("%+v, want %q", j.cases, c.want)
		}
	}
}

func TestWhatEvidenceHas(t *testing.T) {
	all := []Gate{GateCorrectness, GateSanitize, GatePerformance, GateProfile}
	whole := &Evidence{Correctness: &Correctness{}, Sanitize: &Sanitize{}, Performance: &Performance{}, Profile: &Profile{}}
	for _, gate := range append(all, GateBuild, GatePTXAS) {
		if !(&judgement{evidence: whole}).has(gate) {
			t.Errorf("%s is there", gate)
		}
		if got := (&judgement{evidence: &Evidence{}}).has(gate); got != !slices.Contains(all, gate) {
			t.Errorf("%s of nothing: %v", gate, got)
		}
	}
}

// Rates are shown where the work is known, however little it is.
func TestRatesOfLittleWork(t *testing.T) {
	for _, c := range []struct {
		s      shapeComparison
		micros float64
		want   [3]float64 // TFLOPs, GB/s, share of the roofline; 0 for none
	}{
		{shapeComparison{}, 10, [3]float64{}},
		{shapeComparison{goalOf: goalOf{shape: Shape{FLOPs: 2e7, Bytes: 3e4}}, floor: 5}, 10, [3]float64{2, 3, 0.5}},
		{shapeComparison{goalOf: goalOf{shape: Shape{FLOPs: 1, Bytes: 1}}, floor: 0.5}, 1, [3]float64{1e-6, 1e-3, 0.5}},
		{shapeComparison{goalOf: goalOf{shape: Shape{FLOPs: 2e7, Bytes: 3e4}}, floor: 5}, 0, [3]float64{}},
		{shapeComparison{goalOf: goalOf{shape: Shape{FLOPs: 1e6}}}, 0.5, [3]float64{2, 0, 0}},
	} {
		var row Comparison
		c.s.rates(&row, c.micros)
		for i, got := range []*float64{row.TFLOPs, row.GBs, row.Roofline} {
			if (got == nil) != (c.want[i] == 0) || got != nil && !near(*got, c.want[i]) {
				t.Errorf("%+v at %g µs: figure %d is %v", c.s.shape, c.micros, i, got)
			}
		}
	}
}

// The step of a clock is found where it is a fraction of a per cent, and not where it is finer than anybody cares for.
func TestStepsOfAClock(t *testing.T) {
	for step, want := range map[float64]float64{2: 0, 4: 0.004, 8: 0.008, 20: 0.02} {
		s := &Series{Batch: 1}
		for i := range 30 {
			s.Nanos = append(s.Nanos, 1000+step*float64(i%3-1))
		}
		if got := clockStep(s); !near(got, want) {
			t.Errorf("steps of %g ns in 1000: %g, want %g", step, got, want)
		}
	}
	for name, nanos := range map[string][]float64{"two places": {1000, 1020, 1000, 1020}, "places far apart": {1000, 1040, 1100}, "none": nil} {
		if got := clockStep(&Series{Nanos: nanos}); got != 0 {
			t.Errorf("%s: %g", name, got)
		}
	}
}
