package gates

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
)

// A verdict on wrong outputs has the times that were measured, for a report, and does not store them: they decide nothing.
func TestUnjudgedTimes(t *testing.T) {
	e := readEvidence(t, filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "stage1.json"))
	judged := Judge(shippedPolicy(t, "h200"), "h200.yaml", e)
	e.Correctness.Cases[0].Errors.Norm = 0.5
	v := Judge(shippedPolicy(t, "h200"), "h200.yaml", e)
	if v.Reason != ReasonCorrectness || len(v.Comparisons) != 0 || len(v.Unjudged) != len(judged.Comparisons) || judged.Unjudged != nil {
		t.Fatalf("%s: %d times are judged, %d are not", v.Summary, len(v.Comparisons), len(v.Unjudged))
	}
	for _, c := range v.Unjudged {
		was := judged.ComparisonOf(c.Shape)
		if was == nil || c.Baseline.P50 != was.Baseline.P50 || c.Candidate.P50 != was.Candidate.P50 || c.Speedup.Value != was.Speedup.Value || c.Goal != "" || c.Status != NotRun {
			t.Errorf("%+v, and judged %+v", c, was)
		}
	}
	if text, err := json.Marshal(v); err != nil || bytes.Contains(text, []byte("comparisons")) || bytes.Contains(text, []byte("njudged")) {
		t.Errorf("%v: %s", err, text)
	}
}
