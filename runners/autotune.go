package runners

import (
	"fmt"
	"slices"
	"strings"
)

// A tuner is a backend whose compiler has its own tuner.
type tuner interface {
	Autotune(Role) []string
}

// noteTuning adds a note on what happens to the tuner's configurations, if both sides are built.
func (g *gatherer) noteTuning() {
	b, c := g.evidence.Baseline, g.evidence.Candidate
	t, ok := g.backend.(tuner)
	if !ok || !c.OK || b != nil && !b.OK {
		return
	}
	candidate := t.Autotune(Candidate)
	baseline := candidate
	if b != nil {
		baseline = t.Autotune(Baseline)
	}
	if note := tuningNote(baseline, candidate); note != "" {
		g.evidence.Notes = append(slices.Clip(g.evidence.Notes), note)
	}
}

// tuningNote says what happens to the configurations of @triton.autotune. The manifest says which
// one is built. So a change of only the configurations changes nothing that is measured here, and
// much for callers that use the decorator.
func tuningNote(baseline, candidate []string) string {
	const advice = "None of them is tried: the manifest's constants, num_warps and num_stages say what is built and measured."
	if slices.Equal(baseline, candidate) {
		if len(candidate) == 0 {
			return ""
		}
		return fmt.Sprintf("@triton.autotune lists %s. %s", counted(candidate), advice)
	}
	var gone, added []string
	for _, c := range baseline {
		if !slices.Contains(candidate, c) {
			gone = append(gone, "- "+c)
		}
	}
	for _, c := range candidate {
		if !slices.Contains(baseline, c) {
			added = append(added, "+ "+c)
		}
	}
	edits := append(gone, added...)
	if len(edits) == 0 {
		edits = []string{"their order"}
	}
	if more := len(edits) - maxTuningEdits; more > 0 {
		edits = append(edits[:maxTuningEdits], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("The change edits the configurations of @triton.autotune, from %s to %s: %s. %s Edit these too, to have the change measured.",
		counted(baseline), counted(candidate), strings.Join(edits, "; "), advice)
}

// maxTuningEdits is how many of them a note lists.
const maxTuningEdits = 10

func counted(configurations []string) string {
	if len(configurations) == 1 {
		return "1 configuration"
	}
	return fmt.Sprintf("%d configurations", len(configurations))
}
