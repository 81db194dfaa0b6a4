package result

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// judged is stored evidence with its verdict.
func judged(t *testing.T, name string, change func(*gates.Evidence)) (*gates.Verdict, *gates.Evidence) {
	t.Helper()
	data, err := os.ReadFile("../../kernels/sdpa_fp8/evidence/" + name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(e)
	}
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return gates.Judge(p, "h200.yaml", e), e
}

// wrongSecrets makes the secret cases of evidence wrong.
func wrongSecrets(e *gates.Evidence) {
	for i := range e.Correctness.Cases {
		if k := &e.Correctness.Cases[i]; k.Secret && k.Errors != nil {
			bad := *k.Errors
			bad.NaN, bad.Bad = 7, 7
			k.Errors = &bad
		}
	}
}

func golden(t *testing.T, file string, value any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
}

// The examples are complete results. They are what the document shows, and they conform to the schema.
func TestExamples(t *testing.T) {
	top := JSONSchema[Result]()
	top["$id"] = "https://raw.githubusercontent.com/kernelgate/kernelgate/main/gates/result/result.schema.json"
	top["title"] = "kernelgate result (" + Schema + ")"
	golden(t, "result.schema.json", top)
	data, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("result.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("result.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range []struct {
		file, evidence string
		change         func(*gates.Evidence)
		of             func(*gates.Verdict, *gates.Evidence) *Result
	}{
		{"pass", "stage1.json", nil, Of},
		{"defer-correctness", "broken.json", nil, Of},
		{"defer-resources", "spills.json", nil, Of},
		{"claim-secret", "stage1.json", wrongSecrets, Redacted},
		{"probe", "stage1.json", nil, Probed},
	} {
		v, e := judged(t, example.evidence, example.change)
		r := example.of(v, e)
		golden(t, "testdata/"+example.file+".json", r)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(value); err != nil {
			t.Errorf("%s: %v", example.file, err)
		}
		if r.Outcome == gates.Defer && len(r.Failures) == 0 && r.Reason != ReasonProbe {
			t.Errorf("%s is deferred, and nothing failed", example.file)
		}
	}
}

// An author who may not know the secret cases learns how many failed, in which class, and nothing else.
func TestRedactedHidesSecrets(t *testing.T) {
	for name, change := range map[string]func(*gates.Evidence){
		"all are right": nil,
		"wrong values":  wrongSecrets,
		"crash": func(e *gates.Evidence) {
			for i := range e.Correctness.Cases {
				if k := &e.Correctness.Cases[i]; k.Secret {
					k.Errors, k.Failure = nil, &gates.Failure{Kind: gates.FailureCrash, Detail: "it crashed on " + k.Dims}
				}
			}
		},
	} {
		v, e := judged(t, "stage1.json", change)
		names := secretNames(v, e)
		if len(names) < 3 {
			t.Fatalf("the evidence has no secret cases: %q", names)
		}
		for form, r := range map[string]any{"claim": Redacted(v, e), "probe": Probed(v, e), "verdict": Redact(v, e)} {
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range names {
				if strings.Contains(string(data), secret) {
					t.Errorf("%s: the %s says %q", name, form, secret)
				}
			}
		}
		r := Redacted(v, e)
		i := slices.IndexFunc(r.Failures, func(f Failure) bool { return f.Shape == Secret })
		if change == nil {
			if i >= 0 {
				t.Errorf("%s: %+v", name, r.Failures[i])
			}
			continue
		}
		if i < 0 || r.Failures[i].Count == 0 || r.Failures[i].FirstBad != nil || r.Outcome != v.Outcome || r.Reason != v.Reason {
			t.Errorf("%s: %s (%s), failures %+v", name, r.Outcome, r.Reason, r.Failures)
		}
	}
}

// A probe has no exact figure, and cannot pass.
// What a profiler counted on a secret size tells the size.
func TestRedactedHidesSecretProfiles(t *testing.T) {
	v, e := judged(t, "stage1.json", nil)
	e.Shapes = append(e.Shapes, gates.Shape{Name: "secret", Dims: "S=331", Secret: true})
	v.Why = []gates.Why{
		{Shape: "secret", Explanation: why.Explanation{Candidate: why.Side{DRAMBytes: new(123456789.0)}}},
		{Shape: "mission", Explanation: why.Explanation{Candidate: why.Side{DRAMBytes: new(42.0)}}},
	}
	if got := Redact(v, e).Why; len(got) != 1 || got[0].Shape != "mission" || *got[0].Candidate.DRAMBytes != 42 {
		t.Errorf("%+v", got)
	}
}

func TestProbeIsRounded(t *testing.T) {
	v, e := judged(t, "stage1.json", nil)
	if v.Outcome != gates.Pass {
		t.Fatalf("the evidence does not pass: %s", v.Summary)
	}
	r := Probed(v, e)
	if r.Outcome != gates.Defer || r.Reason != ReasonProbe {
		t.Errorf("a probe ends with %s (%s)", r.Outcome, r.Reason)
	}
	for _, s := range r.Shapes {
		if s.Speedup == nil {
			continue
		}
		if x := s.Speedup.Mid / step; x-float64(int(x)) > 1e-9 && float64(int(x)+1)-x > 1e-9 {
			t.Errorf("%s: the speedup %v is no step of %v", s.Shape, s.Speedup.Mid, step)
		}
	}
	for x, want := range map[float64]float64{1391.62: 1400, 0.0347: 0.035, 12.5: 13, 99.7: 100} {
		if got := *TwoDigits(&x); got != want {
			t.Errorf("%v becomes %v, want %v", x, got, want)
		}
	}
}

// Both sums over the launches of a step are in a result, and a probe rounds both.
func TestSumsOfSteps(t *testing.T) {
	v, e := judged(t, "stage1.json", nil)
	cold := gates.WeightedSpeed{
		Role: gates.RoleTarget, Status: gates.Passed, Baseline: 64.123, Candidate: 60.456, Speedup: gates.Estimate{Value: 0.0612, Lower: new(0.0551), Upper: new(0.0701)},
		Saved: gates.Span{Value: 3.667}, Step: &gates.WholeStep{Share: 0.2, Speedup: gates.Estimate{Value: 0.012}},
	}
	warm := cold
	warm.Context, warm.Baseline, warm.Speedup.Value = policy.Warm, 28.789, 0.0333
	v.Weighted, v.WeightedWarm = &cold, &warm
	r := Of(v, e)
	if len(r.sums()) != 2 || *r.Weighted.Baseline != 64.123 || *r.WeightedWarm.Baseline != 28.789 || *r.WeightedWarm.Saved != 3.667 {
		t.Errorf("the sums are %+v and %+v", r.Weighted, r.WeightedWarm)
	}
	for _, row := range []string{"\n| all launches of a step | target | pass | 64.12 |", "\n| all launches of a warm step | target | pass | 28.79 |"} {
		if !strings.Contains(r.Text(), row) {
			t.Errorf("the text lacks %q:\n%s", row, r.Text())
		}
	}
	for _, w := range Probed(v, e).sums() {
		if *w.Baseline != 64 && *w.Baseline != 29 || w.Saved != nil || w.Step != nil || w.Speedup.Mid != 0.05 {
			t.Errorf("a probe shows %+v with %+v", w, w.Speedup)
		}
	}
	v.Weighted.Role, v.WeightedWarm = gates.RoleInfo, nil
	if r := Of(v, e); len(r.sums()) != 1 || strings.Contains(r.Text(), gates.StepLabel) {
		t.Errorf("a sum for information is in the table:\n%s", r.Text())
	}
}
