package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// A Part is one variant of a side that chooses by problem size, with the shapes that it
// serves.
type Part struct {
	Shapes []string `json:"shapes,omitempty"`
	Build
}

// Serving is the build that serves a shape: the build itself, or a part of a choice.
func (b *Build) Serving(shape string) *Build {
	for i := range b.Parts {
		if slices.Contains(b.Parts[i].Shapes, shape) {
			return &b.Parts[i].Build
		}
	}
	return b
}

// Chosen says which variant served which shapes; it is empty where there is no choice.
func (b *Build) Chosen() string {
	var parts []string
	for _, p := range b.Parts {
		if len(p.Shapes) > 0 {
			parts = append(parts, fmt.Sprintf("%s by %s", strings.Join(p.Shapes, ", "), p.Variant))
		}
	}
	return strings.Join(parts, "; ")
}

// judged is the builds whose resources count: the build itself, or every variant of a choice that
// serves a shape.
func (b *Build) judged() []Part {
	if len(b.Parts) == 0 {
		return []Part{{Build: *b}}
	}
	return slices.DeleteFunc(slices.Clone(b.Parts), func(p Part) bool { return len(p.Shapes) == 0 })
}

// noteChoices notes which variant served which shape.
func (j *judgement) noteChoices() {
	for _, side := range []struct {
		name  string
		build *Build
	}{{"baseline", j.evidence.Baseline}, {"candidate", j.evidence.Candidate}} {
		if side.build == nil {
			continue
		}
		if chosen := side.build.Chosen(); chosen != "" {
			j.note(facts.ChoosesBySize{Side: side.name, Chosen: chosen})
		}
	}
}
