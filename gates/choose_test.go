package gates

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// Every variant of a choice that serves a shape keeps to the budgets, and the report says which that is.
func TestChoice(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates: {ptxas: {registers: \"<= 100\"}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	part := func(variant string, registers int, shapes ...string) Part {
		return Part{Shapes: shapes, Build: Build{Variant: variant, Source: variant + ".cu", OK: true, Code: variant, Arch: "sm_90", Resources: &Resources{Registers: &registers}}}
	}
	judged := func(parts ...Part) *Verdict {
		plain := part("plain", 90)
		e := &Evidence{Schema: EvidenceSchema, Kernel: "k", Mode: "cuda", Baseline: &plain.Build, Candidate: &Build{Variant: "choose", OK: true, Code: "c", Parts: parts}}
		return Judge(p, "p.yaml", e)
	}
	v := judged(part("short", 80, "small", "mission"), part("long", 100, "big"), part("elsewhere", 255))
	if v.Outcome != Pass || !strings.Contains(v.Summary, "This was a static check: nothing was run") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if want := "The candidate chooses a variant by problem size: small, mission by short; big by long."; !slices.Contains(v.Notes, want) {
		t.Errorf("the notes are %q, without %q", v.Notes, want)
	}
	var rows []string
	for _, r := range v.Resources {
		if r.Baseline == nil || *r.Baseline != 90 {
			t.Errorf("%s has no baseline beside it", r.Name)
		}
		rows = append(rows, r.Name)
	}
	if !slices.Equal(rows, []string{"registers of short", "registers of long"}) {
		t.Errorf("the rows are %q", rows)
	}
	v = judged(part("short", 80, "small"), part("long", 101, "big"))
	if v.Outcome != Defer || v.Reason != ReasonResources || v.Summary != "long: Over budget: registers 101 (at most 100)" || len(v.ToPass) != 1 || !strings.HasSuffix(v.ToPass[0], " in long") {
		t.Errorf("%s (%s): %s, to pass %q", v.Outcome, v.Reason, v.Summary, v.ToPass)
	}
	missing := part("long", 0, "big")
	missing.Resources = nil
	if v = judged(part("short", 80, "small"), missing); v.Outcome == Pass {
		t.Errorf("a variant without figures: %s", v.Summary)
	}
	if strings.Contains(strings.Join(v.ToPass, " "), "kernelgate check") || !strings.Contains(strings.Join(v.ToPass, " "), "ptxas") {
		t.Errorf("to pass: %q", v.ToPass)
	}
}
