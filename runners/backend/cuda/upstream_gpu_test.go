package cuda

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// Of each public kernel, upstream's files unchanged, an honest branch passes and a broken one does not.
func TestUpstreamOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	upstreamFolder(t)
	for _, k := range upstreamKernels {
		t.Run(k.name, func(t *testing.T) {
			for _, branch := range []struct {
				name    string
				edit    upstreamEdit
				outcome gates.Outcome
				reason  gates.Reason
			}{{"honest", k.honest, gates.Pass, ""}, {"broken", k.broken, gates.Defer, gates.ReasonCorrectness}} {
				e, v := k.gather(t, branch.edit, "")
				if v.Outcome != branch.outcome || v.Reason != branch.reason {
					t.Errorf("%s: got %s (%s), want %s (%s): %s %s", branch.name, v.Outcome, v.Reason, branch.outcome, branch.reason, v.Summary, e.Fault)
				}
				t.Logf("%s: %s (%s): %s", branch.name, v.Outcome, v.Reason, v.Summary)
				keepEvidence(t, k.name+"-"+branch.name, e)
			}
		})
	}
}
