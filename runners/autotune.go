package runners

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// tuningNote says what becomes of the configurations of @triton.autotune. The manifest says which one is built, so that a change of
// the configurations alone changes nothing that is measured here, and much for whoever calls the kernel through the decorator.
func tuningNote(baseline, candidate *gates.Build) string {
	if !candidate.OK || len(candidate.Autotune) == 0 && (baseline == nil || len(baseline.Autotune) == 0) {
		return ""
	}
	const advice = "None of them is tried: the manifest's constants, num_warps and num_stages say what is built and measured."
	if baseline == nil || !baseline.OK || slices.Equal(baseline.Autotune, candidate.Autotune) {
		if len(candidate.Autotune) == 0 {
			return ""
		}
		return fmt.Sprintf("@triton.autotune lists %s. %s", counted(candidate.Autotune), advice)
	}
	var gone, added []string
	for _, c := range baseline.Autotune {
		if !slices.Contains(candidate.Autotune, c) {
			gone = append(gone, "- "+c)
		}
	}
	for _, c := range candidate.Autotune {
		if !slices.Contains(baseline.Autotune, c) {
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
		counted(baseline.Autotune), counted(candidate.Autotune), strings.Join(edits, "; "), advice)
}

// maxTuningEdits is how many of them a note lists.
const maxTuningEdits = 10

func counted(configurations []string) string {
	if len(configurations) == 1 {
		return "1 configuration"
	}
	return fmt.Sprintf("%d configurations", len(configurations))
}
