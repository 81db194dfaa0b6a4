package verify_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
)

// Outputs of timed launches are some of those that the reference was asked about. Each of them is wrong on one side, and none is worse
// than the worst.
func TestLiesAboutTimedOutputs(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	worst := gates.Errors{Elements: 100, Bad: 40, NaN: 10, Inf: 10, Unwritten: 10, MaxAbs: 4, MeanAbs: 3, Norm: 2}
	set := func(s *gates.Series) {
		w := worst
		s.Worst, s.Referenced = &w, 1
		s.Outputs = []gates.TimedOutput{{Candidate: worst, Baseline: worst}}
		if len(s.Distributions) > 0 {
			s.Outputs[0].Distribution = s.Distributions[0]
		}
	}
	honestly := told(t, e, func(e *gates.Evidence) { set(&e.Performance.Rounds[0].Series[0]) })
	output := func(change func(*gates.TimedOutput)) func(*gates.Evidence) {
		return func(e *gates.Evidence) { change(&e.Performance.Rounds[0].Series[0].Outputs[0]) }
	}
	const refused = "series[0].outputs[0]"
	lies := []lie{
		{"more outputs than the reference was asked about", "series[0].outputs", func(e *gates.Evidence) { e.Performance.Rounds[0].Series[0].Referenced = 0 }},
		{"no worst", refused, func(e *gates.Evidence) { e.Performance.Rounds[0].Series[0].Worst = nil }},
		{"other elements", refused, output(func(o *gates.TimedOutput) { o.Baseline.Elements = 101 })},
		{"nothing is wrong", refused, output(func(o *gates.TimedOutput) {
			o.Candidate, o.Baseline = gates.Errors{Elements: 100}, gates.Errors{Elements: 100}
		})},
		{"one element is wrong, on one side", "", output(func(o *gates.TimedOutput) {
			o.Candidate, o.Baseline = gates.Errors{Elements: 100}, gates.Errors{Elements: 100, Bad: 1}
		})},
		{"any kind of input where none was named", "", func(e *gates.Evidence) {
			s := &e.Performance.Rounds[0].Series[0]
			s.Distributions, s.Outputs[0].Distribution = nil, "other"
		}},
		{"one kind of input", refused + ".distribution", func(e *gates.Evidence) {
			s := &e.Performance.Rounds[0].Series[0]
			s.Distributions, s.Outputs[0].Distribution = []string{"normal"}, "other"
		}},
	}
	for name, worse := range map[string]func(*gates.Errors){
		"bad": func(e *gates.Errors) { e.Bad++ }, "NaN": func(e *gates.Errors) { e.NaN++ }, "infinite": func(e *gates.Errors) { e.Inf++ }, "unwritten": func(e *gates.Errors) { e.Unwritten++ },
		"the maximum": func(e *gates.Errors) { e.MaxAbs++ }, "the mean": func(e *gates.Errors) { e.MeanAbs++ }, "the norm": func(e *gates.Errors) { e.Norm++ },
	} {
		lies = append(lies, lie{name + " beyond the worst", refused, output(func(o *gates.TimedOutput) { worse(&o.Candidate) })})
		lies = append(lies, lie{name + " of the baseline", "", output(func(o *gates.TimedOutput) { worse(&o.Baseline) })})
	}
	tell(t, job, honestly, lies)
}

// A later attempt without a number of rounds ends where it likes, and one with a number counts its own rounds alone.
func TestRoundsOfALaterAttempt(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	more := told(t, e, func(e *gates.Evidence) { e.Performance.Rounds = append(e.Performance.Rounds, e.Performance.Rounds[0]) })
	if err := verify.Check(job, len(e.Performance.Rounds), more); err != nil {
		t.Errorf("one round more: %v", err)
	}
	job.Rounds = len(e.Performance.Rounds) - 1
	if err := verify.Check(job, 1, e); err != nil {
		t.Errorf("after one earlier round: %v", err)
	}
	job.Rounds++
	if err := verify.Check(job, 1, e); err == nil {
		t.Error("a round is missing")
	}
}
