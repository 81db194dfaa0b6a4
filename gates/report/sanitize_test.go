package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// raced is a kernel that is right in all of its cases, and has a race.
func raced() *gates.Verdict {
	v := deferred("correctness", gates.Failed, gates.ReasonCorrectness,
		"racecheck: a race between write and read of shared memory in sdpa.cu:123 and :140 (6,144 hazards); 1 more",
		"fix what the sanitizers found")
	right := passing()
	v.Gates[2] = right.Gates[2]
	v.Gates = slices.Insert(v.Gates, 3, gates.GateResult{
		Gate: "sanitize", Status: gates.Failed, Required: true, Reason: gates.ReasonCorrectness, Text: v.Summary, ToPass: v.ToPass,
		Details: quotes("racecheck: a race between write and read of shared memory in sdpa.cu:123 and :140 (6,144 hazards)", "memcheck: a read of 4 bytes beyond an array in load_tile"),
	})
	const with = "compute-sanitizer 2025.3.1.0"
	v.Sanitizers = []gates.SanitizerRow{
		{Tool: "memcheck", With: with, Status: gates.Failed, Findings: []gates.Finding{
			{Tool: "memcheck", Kind: gates.KindOutOfBounds, Text: "a read of 4 bytes beyond an array", Kernel: "load_tile", Count: 1}}},
		{Tool: "racecheck", With: with, Status: gates.Failed, Findings: []gates.Finding{
			{Tool: "racecheck", Kind: gates.KindRace, Text: "a race between write and read of shared memory", File: "sdpa.cu", Line: 123,
				OtherFile: "sdpa.cu", OtherLine: 140, Kernel: "sdpa_fp8", Count: 6144}}},
		{Tool: "initcheck", With: with, Status: gates.Passed},
		{Tool: "synccheck", Status: gates.Missing, Note: "was not run"},
	}
	return v
}

// A kernel with more findings than anyone reads does not fill the page.
func TestSanitizersAreCut(t *testing.T) {
	v := raced()
	for i := range 100 {
		v.Sanitizers[0].Findings = append(v.Sanitizers[0].Findings, gates.Finding{Kind: gates.KindOther, Text: fmt.Sprintf("fault number %d", i), File: "sdpa.cu", Line: i + 1})
	}
	text := Markdown(v, Options{})
	if strings.Contains(text, "fault number 30") || !strings.Contains(text, "82 more findings are in evidence.json") {
		t.Error(text)
	}
}
