package bundle

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// A job says which part of its policy is asked, and whoever reads it asks that part and no other.
func TestPartTravels(t *testing.T) {
	for part, holds := range map[runners.Part]func(runners.Job) bool{
		"": func(j runners.Job) bool {
			return j.Rule().Gates.Performance != nil && j.Rule().Gates.Correctness.SecretCases > 0
		},
		runners.PartProbe: func(j runners.Job) bool {
			return j.Rule().Gates.Performance != nil && j.Rule().Gates.Correctness.SecretCases == 0
		},
		runners.PartStatic: func(j runners.Job) bool {
			return j.Rule().Gates.Performance == nil && j.Rule().Gates.Correctness == nil
		},
		runners.PartExplain: func(j runners.Job) bool {
			g := j.Rule().Gates
			return g.Performance == nil && g.OnlyExplain != nil && slices.Equal(g.OnlyExplain.Shapes.Names, []string{"small"})
		},
	} {
		job := example(t)
		job.Part, job.Shapes = part, []string{"small"}
		data, _ := pack(t, job)
		peeked, err := Peek(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for how, got := range map[string]runners.Job{"unpacked": unpack(t, data), "peeked": peeked} {
			if got.Part != part || !holds(got) {
				t.Errorf("%q %s asks %q", part, how, got.Part)
			}
		}
	}
	job := example(t)
	job.Part = "half"
	data, _ := pack(t, job)
	if _, err := Peek(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "job.json: \"half\" is no part of a policy") {
		t.Errorf("an unknown part: %v", err)
	}
}
