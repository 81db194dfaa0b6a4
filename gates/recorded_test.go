package gates

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// The parts of a series have every sample once, each with its kind of input.
func TestSeriesOnKinds(t *testing.T) {
	s := Series{
		Shape: "mission", Distributions: []string{"normal", "recorded:a", "zero"}, Order: "bc cb bc cb", Nanos: []float64{1, 2, 3, 4, 5, 6, 7, 8},
		Disturbed: []int{1, 3, 6}, Solo: []float64{10, 11, 12, 13}, Single: &Singles{Baseline: []float64{20, 21, 22, 23}, Candidate: []float64{30, 31, 32, 33}},
	}
	counted, others := splitKinds([]Round{{Series: []Series{s}}}, "mission", nil)
	want := Series{
		Shape: "mission", Distributions: []string{"normal", "zero"}, Order: "bc bc cb", Nanos: []float64{1, 2, 5, 6, 7, 8},
		Disturbed: []int{1, 4}, Solo: []float64{10, 12, 13}, Single: &Singles{Baseline: []float64{20, 22, 23}, Candidate: []float64{30, 32, 33}},
	}
	if diff := cmp.Diff(want, counted[0].Series[0]); diff != "" {
		t.Error(diff)
	}
	want = Series{
		Shape: "mission", Distributions: []string{"recorded:a"}, Order: "cb", Nanos: []float64{3, 4},
		Disturbed: []int{1}, Solo: []float64{11}, Single: &Singles{Baseline: []float64{21}, Candidate: []float64{31}},
	}
	if diff := cmp.Diff(want, others[0].Series[0]); diff != "" {
		t.Error(diff)
	}
	counted, others = splitKinds([]Round{{Series: []Series{s}}}, "mission", &policy.Goal{Inputs: policy.InputsRecorded})
	if !slices.Equal(counted[0].Series[0].Distributions, []string{"recorded:a"}) || !slices.Equal(others[0].Series[0].Distributions, []string{"normal", "zero"}) {
		t.Errorf("a goal on recordings counts %v, and not %v", counted[0].Series[0].Distributions, others[0].Series[0].Distributions)
	}
	// Without recordings nothing is divided, whatever the goal says.
	s.Distributions = []string{"normal", "zero"}
	if counted, others = splitKinds([]Round{{Series: []Series{s}}}, "mission", &policy.Goal{Inputs: policy.InputsRecorded}); len(others) > 0 || !cmp.Equal(counted[0].Series[0], s) {
		t.Errorf("random inputs alone are divided: %v", others)
	}
}
