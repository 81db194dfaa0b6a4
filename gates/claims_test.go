package gates

import (
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A batch may claim a quarter of its gain, or a twentieth of the candidate's time, more than launches show alone, beyond the allowance. A
// new kernel may take five microseconds, or a quarter of its time, longer alone.
func TestOverclaims(t *testing.T) {
	for _, c := range []struct {
		name            string
		base, candidate float64 // in a batch
		gain            float64 // alone
		alone           float64 // the candidate's time alone, of a new kernel
		want            bool
	}{
		{"a large gain, a quarter lacking", 100, 60, 40 - 10.4, 0, false}, // 0.5 + 10 may be lacking
		{"a large gain, more lacking", 100, 60, 40 - 10.7, 0, true},
		{"no gain, a twentieth of the time lacking", 100, 100, -5.4, 0, false}, // 0.5 + 5
		{"no gain, more lacking", 100, 100, -5.7, 0, true},
		{"a long new kernel, a quarter more alone", 100, 100, 0, 124.8, false},
		{"a long new kernel, more than that", 100, 100, 0, 125.3, true},
		{"a short new kernel, with its start", 4, 4, 0, 8.9, false},
		{"a short new kernel, more than that", 4, 4, 0, 9.1, true},
	} {
		e := &Evidence{Mode: "cuda", Baseline: &Build{}}
		run := singleRun{base: c.base, gains: []float64{c.gain}, candidate: c.alone}
		if c.alone > 0 {
			e.Baseline = nil
		}
		s := run.shape()
		s.samples.single.candidate[0] = c.candidate
		for _, pairs := range s.samples.single.rounds {
			for i := range pairs {
				pairs[i].batch = c.base - c.candidate
			}
		}
		found := s.overclaims(newResamplePlan(fewResamples), e)
		if len(found) != 1 || (found[0].p < 0.01) != c.want {
			t.Errorf("%s: %v, want %v", c.name, found, c.want)
		}
	}
}

// A shape is served by the part that names it, and else by the build itself.
func TestServing(t *testing.T) {
	b := &Build{Variant: "choose", Parts: []Part{{Build: Build{Variant: "a"}, Shapes: []string{"one"}}, {Build: Build{Variant: "b"}, Shapes: []string{"two", "three"}}}}
	for shape, want := range map[string]string{"one": "a", "two": "b", "three": "b"} {
		if got := b.Serving(shape); got == nil || got.Variant != want {
			t.Errorf("%s: %+v", shape, got)
		}
	}
	plain := &Build{Variant: "plain"}
	if got := plain.Serving("one"); got != plain {
		t.Errorf("%+v", got)
	}
}

// Timed outputs are as before where each that is wrong is one that the baseline gets wrong, and together they explain the worst.
func TestTimedOutputsAsBefore(t *testing.T) {
	gate := &policy.CorrectnessGate{}
	gate.Bad = &quantity.Bound[quantity.Percent]{Op: quantity.AtMost}
	bad := func(n int) Errors { return Errors{Elements: 100, Bad: n, MaxAbs: 1, MeanAbs: 1, Norm: 1} }
	fine := Errors{Elements: 100}
	worst := bad(5)
	for _, c := range []struct {
		name    string
		outputs []TimedOutput
		want    bool
	}{
		{"none", nil, false},
		{"one as before", []TimedOutput{{Candidate: bad(5), Baseline: bad(5)}}, true},
		{"one as before, and one that is right now", []TimedOutput{{Candidate: fine, Baseline: bad(5)}, {Candidate: bad(5), Baseline: bad(5)}}, true},
		{"one that the baseline got right", []TimedOutput{{Candidate: bad(5), Baseline: bad(5)}, {Candidate: bad(1), Baseline: fine}}, false},
		{"one that is worse", []TimedOutput{{Candidate: bad(5), Baseline: bad(4)}}, false},
		{"not the worst", []TimedOutput{{Candidate: bad(4), Baseline: bad(4)}}, false},
	} {
		if got := (Series{Worst: &worst, Outputs: c.outputs}).asBefore(gate); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
