package gather

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// sanitizing returns a job whose policy has the sanitizers examine the first shape.
func sanitizing(t *testing.T) runners.Job {
	t.Helper()
	j := job(t)
	p, err := policy.Parse("policy.yaml", []byte(strings.Replace(policyYAML, "  performance:", "  sanitize: {shapes: [one], distributions: [normal, large], secret_cases: 2}\n  performance:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	j.Policy = p
	return j
}

// TestGatherSanitizes checks that the sanitizers run once, after correctness and before anything is
// timed, and that their failures are the runner's fault.
func TestGatherSanitizes(t *testing.T) {
	const before = "build baseline, build candidate, correctness"
	for _, c := range []struct {
		name    string
		backend scripted
		asked   string
		outcome gates.Outcome
	}{
		{"in its place", scripted{compile: true, ratio: 2}, before + ", sanitize" + strings.Repeat(", round", 6), gates.Pass},
		{"not what is wrong", scripted{compile: true, ratio: 2, wrong: true}, before, gates.Defer},
		{"a fault", scripted{compile: true, ratio: 2, fail: "sanitize"}, before + ", sanitize", gates.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			gathers(t, sanitizing(t), c.backend, c.asked, c.outcome)
		})
	}
}

// TestResumeSanitizes checks that earlier evidence does not satisfy a policy that now asks for the
// sanitizers, but that the missing part can be added to it.
func TestResumeSanitizes(t *testing.T) {
	backend := scripted{compile: true, ratio: 2, job: job(t)}
	e, err := Gather(t.Context(), backend.job, &backend, silent{})
	if err != nil {
		t.Fatal(err)
	}
	now := sanitizing(t)
	if v := gates.Judge(now.Policy, "policy.yaml", e); v.Outcome != gates.Defer || v.Reason != gates.ReasonInconclusive {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	backend.asked = nil
	now.Record = &memory{earlier: runners.Earlier{Evidence: e}, attempts: 1}
	more, err := Gather(t.Context(), now, &backend, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if v := gates.Judge(now.Policy, "policy.yaml", more); v.Outcome != gates.Pass || strings.Join(backend.asked, ", ") != "build baseline, build candidate, sanitize" {
		t.Errorf("asked %v; %s: %s", backend.asked, v.Outcome, v.Summary)
	}
}

func TestSanitizeCases(t *testing.T) {
	j := sanitizing(t)
	gate := j.Policy.Rules[0].Gates.Sanitize
	cases := runners.SanitizeCases(j, gate, rand.New(rand.NewPCG(1, 2)))
	if len(cases) != 2+2 || cases[0].Shape.Name != "one" || cases[1].Distribution != "large" || !cases[2].Secret || !cases[3].Secret {
		t.Errorf("cases %+v", cases)
	}
	if again := runners.SanitizeCases(j, gate, rand.New(rand.NewPCG(3, 4))); again[2].Seed == cases[2].Seed {
		t.Error("another run draws the same secret seed")
	}
}
