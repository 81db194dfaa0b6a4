package cpu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// fastWhere is twice as fast as the baseline where a condition on N holds, and four times
// slower elsewhere.
func fastWhere(condition string) string {
	return fmt.Sprintf(`#include <stdint.h>
void scale(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < (%s ? 8 : 64); again++)
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
}
`, condition)
}

// A kernel that is fast on the shapes that the manifest names and slow on all others passed
// before a size was drawn for the run.
func TestFastOnlyOnNamedShapes(t *testing.T) {
	long.Test(t)
	for _, c := range []struct {
		name    string
		secret  bool
		outcome gates.Outcome
	}{{"with a secret shape", true, gates.Defer}, {"without one", false, gates.Pass}} {
		t.Run(c.name, func(t *testing.T) {
			m, p := languages(t)
			gate := p.Rules[0].Gates.Performance
			gate.SecretShape, gate.Pairs = &c.secret, 4
			var e *gates.Evidence
			var v *gates.Verdict
			for try := 0; v == nil || try < 4 && v.Reason == gates.ReasonInconclusive; try++ { // a busy machine may not decide
				w := newTestWorker(t, m, p, baseline, fastWhere("N == 64 || N == 1000"), time.Minute)
				w.job.Provenance.Command = "kernelgate check scale"
				var err error
				if e, err = gather.Gather(t.Context(), w.job, w, silent{}); err != nil {
					t.Fatal(err)
				}
				v = gates.Judge(p, "test.yaml", e)
			}
			if v.Outcome != c.outcome {
				t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if !c.secret {
				return
			}
			drawn := e.Shapes[2]
			again := "kernelgate check scale --secret-shape " + drawn.Dims
			if v.Reason != gates.ReasonRegression || !strings.Contains(v.Summary, "on secret ("+drawn.Dims+")") || !strings.Contains(strings.Join(v.ToPass, "\n"), again) {
				t.Errorf("%s (%s): %s\n%q", v.Outcome, v.Reason, v.Summary, v.ToPass)
			}
		})
	}
}

// Where a batch hides the loss on the secret shape, launches that run alone show it.
func TestSlowAloneOnOtherShapes(t *testing.T) {
	long.Test(t)
	m, p := languages(t)
	p.Rules[0].Gates.Performance.Pairs = 4
	w := newTestWorker(t, m, p, baseline, include+attackSource(t, "slots.h")+attackSource(t, "slow-alone-on-other-shapes.c"), time.Minute)
	e, err := gather.Gather(t.Context(), w.job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(p, "test.yaml", e)
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonInconclusive && !strings.Contains(v.Summary, "on secret ("+e.Shapes[2].Dims+")") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
