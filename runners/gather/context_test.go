package gather

import (
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestContextsAreTimed checks that every round times a shape once for each context that a goal asks for.
func TestContextsAreTimed(t *testing.T) {
	j := guardedJob(t, manifestYAML)
	gate := j.Policy.Rules[0].Gates.Performance
	gate.Guard.Context, gate.SecretShape = policy.Contexts{policy.Cold, policy.Warm}, new(false)
	j.Rounds = 2
	b := &scripted{job: j, compile: true, ratio: 2}
	e, err := Gather(t.Context(), j, b, silent{})
	if err != nil || e.Fault != "" {
		t.Fatal(err, e.Fault)
	}
	for i, r := range e.Performance.Rounds {
		var timed []string
		for _, s := range r.Series {
			timed = append(timed, s.Shape)
		}
		if !slices.Equal(timed, []string{"one", "one:warm", "two"}) {
			t.Errorf("round %d times %q", i+1, timed)
		}
	}
	shapes, err := j.TimedShapes(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shapes {
		listed, _ := j.Manifest.Shape(s.Listed())
		if warm := s.Name != s.Listed(); s.Warm != warm || s.Dims.String() != listed.Dims.String() {
			t.Errorf("%+v is measured", s)
		}
	}
}
