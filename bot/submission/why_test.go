package submission

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

// profiled is evidence with two profiles of an H200: of a public shape, and of a secret one.
func profiled(t *testing.T) *gates.Evidence {
	t.Helper()
	lines, err := os.ReadFile("../../gates/why/testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(lines, []byte("\n"))
	var public, secret gates.ExplainedShape
	for _, one := range []*gates.ExplainedShape{&public, &secret} {
		if err := json.Unmarshal(first, one); err != nil {
			t.Fatal(err)
		}
	}
	public.Shape, secret.Shape = "mission", "secret"
	for _, side := range [][]gates.Counted{secret.Baseline, secret.Again, secret.Candidate} {
		for _, k := range side {
			k.Counters["dram__bytes_read.sum"] = 987654321
		}
	}
	return &gates.Evidence{
		Shapes:    []gates.Shape{{Name: "mission", Dims: "N=1024"}, {Name: "secret", Dims: "N=7331", Secret: true}},
		Explained: &gates.Explained{Tool: "ncu", Shapes: []gates.ExplainedShape{public, secret}},
	}
}

// Why carries the explanation of the times: the sentence, the limiter of each side and the counters. It leaves
// out what was counted on a secret size, and rounds the figures of a probe.
func TestWhyExplainsTimes(t *testing.T) {
	e := profiled(t)
	v := &gates.Verdict{Outcome: gates.Defer, Why: gates.Explain(e, nil)}
	if len(v.Why) != 2 || v.Why[0].Cause == "" {
		t.Fatalf("the recording is explained as %+v", v.Why)
	}
	ask := func(intent result.Intent) *Why {
		done := &Submission{Handle: "h", Intent: intent, Result: &result.Result{Outcome: gates.Defer}}
		return whyOf(done, result.Redact(v, e))
	}
	claim, probe := ask(result.Claim), ask(result.Probe)
	for intent, w := range map[result.Intent]*Why{result.Claim: claim, result.Probe: probe} {
		if len(w.Causes) != 1 || w.Causes[0].Shape != "mission" || w.Causes[0].Cause != v.Why[0].Cause {
			t.Fatalf("%s: %+v", intent, w.Causes)
		}
		c := w.Causes[0]
		if c.Baseline != "shared memory" || c.Candidate == "" || len(c.Measures) == 0 || !strings.Contains(c.Text, "fewer bank conflicts in shared memory; limiter") {
			t.Errorf("%s: %+v", intent, c)
		}
		if !strings.Contains(w.Text, "why mission differs: "+c.Text) || !strings.Contains(w.Text, c.Measures[0].Name+": ") {
			t.Errorf("%s: the text is %s", intent, w.Text)
		}
		whole, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"7331", "98765", "988"} {
			if strings.Contains(string(whole), secret) {
				t.Errorf("%s: the answer has %q of the secret size: %s", intent, secret, whole)
			}
		}
	}
	if claim.Causes[0].Text != v.Why[0].Sentence {
		t.Errorf("a claim is told %q, and the verdict says %q", claim.Causes[0].Text, v.Why[0].Sentence)
	}
	for i, m := range probe.Causes[0].Measures {
		exact := claim.Causes[0].Measures[i]
		if *exact.Baseline != 0 && *m.Baseline != *result.TwoDigits(exact.Baseline) {
			t.Errorf("a probe is told %v of %s", *m.Baseline, m.Name)
		}
	}
	if got := *claim.Causes[0].Measures[0].Baseline; got == *probe.Causes[0].Measures[0].Baseline {
		t.Errorf("%v has two digits in the recording: the test shows nothing", got)
	}
}
