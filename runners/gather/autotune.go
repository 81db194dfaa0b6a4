package gather

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// noteTuning says what becomes of the configurations of @triton.autotune, where both sides are built.
func (g *gatherer) noteTuning() {
	b, c := g.evidence.Baseline, g.evidence.Candidate
	if !c.OK || b != nil && !b.OK {
		return
	}
	was := c.Tuning
	if b != nil {
		was = b.Tuning
	}
	g.evidence.Notes = append(slices.Clip(g.evidence.Notes), tuningNotes(was, c.Tuning)...)
}

// tuningNotes are about which configurations there are, and which of them is measured. Those that are not measured run too, for
// whoever calls the kernel through its decorator.
func tuningNotes(baseline, candidate *gates.Tuning) []string {
	var none gates.Tuning
	if baseline == nil {
		baseline = &none
	}
	if candidate == nil {
		candidate = &none
	}
	var notes []string
	if edits := tuningEdits(baseline.Offered, candidate.Offered); edits != "" {
		notes = append(notes, fmt.Sprintf("The change edits the configurations of @triton.autotune, from %s to %s: %s.", counted(baseline.Offered), counted(candidate.Offered), edits))
	}
	if len(candidate.Offered) == 0 {
		return notes
	}
	which := measured(candidate)
	if was := measured(baseline); was != which && len(baseline.Offered) > 0 {
		which += "; for the baseline " + was
	}
	notes = append(notes, fmt.Sprintf("@triton.autotune offers %s. Measured is %s.", counted(candidate.Offered), which))
	if len(candidate.Refused) > 0 {
		notes = append(notes, fmt.Sprintf("Not every configuration of @triton.autotune compiles, and Triton's own tuner would pass over it: %s.", listed(candidate.Refused)))
	}
	return notes
}

// measured names the configurations that a side is measured with.
func measured(t *gates.Tuning) string {
	switch {
	case len(t.Picks) > 0:
		var picks []string
		for _, p := range t.Picks {
			text := fmt.Sprintf("%s at %s (%.4g µs", p.Configuration, p.Shape, p.Micros)
			if slowest := slices.MaxFunc(p.Times, func(a, b gates.TuningTime) int { return int(1000 * (a.Micros - b.Micros)) }); len(p.Times) > 1 {
				text += fmt.Sprintf(", the slowest of %d %.4g µs", len(p.Times), slowest.Micros)
			}
			picks = append(picks, text+")")
		}
		return "the fastest of each shape: " + listed(picks)
	case len(t.Chosen) > 0:
		return "what the manifest chooses: " + listed(t.Chosen)
	}
	return "the fastest one of each shape, which a runner with a GPU finds"
}

// tuningEdits lists what differs between two lists of configurations.
func tuningEdits(baseline, candidate []string) string {
	if slices.Equal(baseline, candidate) {
		return ""
	}
	var edits []string
	for _, c := range baseline {
		if !slices.Contains(candidate, c) {
			edits = append(edits, "- "+c)
		}
	}
	for _, c := range candidate {
		if !slices.Contains(baseline, c) {
			edits = append(edits, "+ "+c)
		}
	}
	if len(edits) == 0 {
		return "their order"
	}
	return listed(edits)
}

// maxTuningEdits is how many of them a note lists.
const maxTuningEdits = 10

func listed(items []string) string {
	if more := len(items) - maxTuningEdits; more > 0 {
		items = append(slices.Clone(items[:maxTuningEdits]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(items, "; ")
}

func counted(configurations []string) string {
	if len(configurations) == 1 {
		return "1 configuration"
	}
	return fmt.Sprintf("%d configurations", len(configurations))
}
