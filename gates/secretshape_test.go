package gates

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

const secretPolicy = `version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: all, speedup: ">= +10%"}, guard: {shapes: [mission], speedup: ">= -2%", p50: "<= 1us"}, rounds: {min: 6, max: 6}}
rules: [{name: default}]
`

// onSecret is evidence of a kernel that gains on its named shape, and so much on a size that
// was drawn for the run.
func onSecret(secret float64) *Evidence {
	e := evidence("mission")
	e.Shapes = append(e.Shapes, Shape{Name: "secret", Dims: "N=1733 M=2", Secret: true})
	e.Provenance.Command = "kernelgate check --base main k"
	tr := truth{noise: simulate.Noise{Between: 0.001, Within: 0.002}, ratios: map[string]float64{"mission": 1.3, "secret": secret}, control: 1, pairs: 10}
	tr.measure(e, rand.New(rand.NewPCG(1, 2)), 6, 1)
	return e
}

// The secret shape is held against the guard's comparisons, whatever shapes target and guard
// list, and never against a time in microseconds.
func TestSecretShapeIsGuarded(t *testing.T) {
	p := parsePolicy(t, secretPolicy)
	if v := Judge(p, "test.yaml", onSecret(1)); v.Outcome != Pass {
		t.Errorf("as fast as before: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	e := onSecret(0.1)
	if timed := TimedShapes(&p.Rules[0], e); !slices.Equal(timed, []string{"mission", "secret"}) {
		t.Errorf("%q are timed", timed)
	}
	v := Judge(p, "test.yaml", e)
	want := []string{
		"bring `secret (N=1733 M=2)` to ≤\u00a0102.04\u00a0µs: this size is random, so the kernel must also be fast on sizes that the manifest does not name",
		"time this size again with: kernelgate check --base main k --secret-shape N=1733,M=2",
	}
	if v.Reason != ReasonRegression || !strings.Contains(v.Summary, "on secret (N=1733 M=2) (asked speedup >= -2%)") || !slices.Equal(v.ToPass, want) {
		t.Errorf("%s (%s): %s\n%q", v.Outcome, v.Reason, v.Summary, v.ToPass)
	}
	if row := v.ComparisonOf("secret"); row == nil || !row.Secret || row.Role != RoleGuard || row.Label() != "secret (N=1733 M=2)" {
		t.Errorf("its row is %+v", row)
	}
	p.Rules[0].Gates.Performance.SecretShape = new(false)
	if v := Judge(p, "test.yaml", e); v.Outcome != Pass || v.ComparisonOf("secret") != nil {
		t.Errorf("switched off: %s: %s", v.Outcome, v.Summary)
	}
}

// A secret shape without times is missing, and evidence without a secret shape is judged as
// it was before there were any.
func TestSecretShapeMustBeTimed(t *testing.T) {
	p := parsePolicy(t, secretPolicy)
	e := onSecret(1)
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].Series = e.Performance.Rounds[i].Series[:1]
	}
	if v := Judge(p, "test.yaml", e); v.Outcome == Pass {
		t.Errorf("without its times: %s: %s", v.Outcome, v.Summary)
	}
	e.Shapes = e.Shapes[:1]
	if v := Judge(p, "test.yaml", e); v.Outcome != Pass {
		t.Errorf("without the shape: %s: %s", v.Outcome, v.Summary)
	}
}

// Wrong outputs on the secret shape say which size it was.
func TestWrongOnSecretShape(t *testing.T) {
	e := onSecret(1)
	e.Performance.Rounds[2].Series[1].Worst.NaN = 1
	if v := Judge(parsePolicy(t, secretPolicy), "test.yaml", e); v.Reason != ReasonCorrectness || !strings.Contains(v.Summary, "on secret (N=1733 M=2) in round 3") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

func TestParseSecretShape(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*Evidence)
		want string
	}{
		"one":          {func(*Evidence) {}, ""},
		"two":          {func(e *Evidence) { e.Shapes[0].Secret = true }, "shapes[1].secret: marks a second secret shape"},
		"without dims": {func(e *Evidence) { e.Shapes[1].Dims = "" }, "shapes[1].secret: "},
	} {
		e := onSecret(1)
		c.lie(e)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseEvidence("e.json", data)
		switch {
		case c.want == "" && (err != nil || !got.Shapes[1].Secret):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
