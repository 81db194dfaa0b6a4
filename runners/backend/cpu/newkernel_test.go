package cpu

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// A kernel that the base does not have is compared with its reference and timed by itself: the policy asks +5 % over nothing.
func TestNewKernelIsTimed(t *testing.T) {
	m, p := languages(t)
	for name, c := range map[string]struct {
		body    string
		outcome gates.Outcome
		rounds  int
		says    string
	}{
		"right": {"for (volatile int again = 0; again < 250; again++) for (int i = 0; i < N; i++) y[i] = 2 * x[i];", gates.Pass, 6, "Timed without a baseline: "},
		"wrong": {"for (int i = 0; i < N; i++) y[i] = 3 * x[i];", gates.Defer, 0, ""},
	} {
		w := newTestWorker(t, m, p, baseline, include+"void scale(const float *x, float *y, int32_t N) { "+c.body+" }\n", time.Minute)
		w.job.Baseline = nil
		e, err := gather.Gather(t.Context(), w.job, w, silent{})
		if err != nil || e.Fault != "" {
			t.Fatalf("%s: %v %s", name, err, e.Fault)
		}
		v := gates.Judge(p, "test.yaml", e)
		rounds := 0
		if e.Performance != nil {
			rounds = len(e.Performance.Rounds)
		}
		if v.Outcome != c.outcome || !strings.Contains(v.Summary, c.says) || rounds != c.rounds || e.Baseline != nil {
			t.Errorf("%s: %s (%s) after %d rounds: %s", name, v.Outcome, v.Reason, rounds, v.Summary)
		}
		for _, row := range v.Comparisons {
			if row.Candidate == nil || row.Candidate.P50 <= 0 || row.Baseline != nil {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}
