package sdpatest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Every value of every toggle that kernel.yaml declares has been right on a GPU: in a variant, or behind its name
// (gpu.sh's step toggles). The tests of the gates judge the evidence.
func TestRecordedToggles(t *testing.T) {
	m, _ := readManifest(t)
	tried := map[string][]int{}
	for _, v := range m.Variants {
		for name, value := range m.ToggleValues(v.Name) {
			tried[name] = append(tried[name], value)
		}
	}
	files, err := filepath.Glob(folder + "evidence/toggles/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no evidence of toggles", err)
	}
	for _, file := range files {
		e := readEvidence(t, file)
		if e.Device.Name != "NVIDIA H200" {
			t.Errorf("%s was measured on %s", file, e.Device.Name)
		}
		variant := e.Provenance.Head.Variant
		for name, value := range e.Candidate.Toggles {
			if m.ToggleValues(variant)[name] != value {
				t.Errorf("%s: %s was built with %s = %d", file, variant, name, value)
			}
			tried[name] = append(tried[name], value)
		}
	}
	for _, toggle := range m.Toggles {
		for _, value := range toggle.Values {
			if !slices.Contains(tried[toggle.Name], value) {
				t.Errorf("%s = %d was never tried", toggle.Name, value)
			}
		}
	}
}

// The choice by problem size passed on an H200 against the variant that served all shapes before: no shape was left out.
func TestRecordedChoice(t *testing.T) {
	m, _ := readManifest(t)
	text, err := os.ReadFile(folder + "choose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("choose.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	e := readEvidence(t, folder+"evidence/all/choose.json")
	v := gates.Judge(policy, "choose.yaml", e)
	if v.Outcome != gates.Pass || e.Device.Name != "NVIDIA H200" || e.Provenance.Base.Variant != "stage6_fp8" || e.Provenance.Head.Variant != "choose" {
		t.Errorf("%s (%s) of %s over %s on %s: %s", v.Outcome, v.Reason, e.Provenance.Head.Variant, e.Provenance.Base.Variant, e.Device.Name, v.Summary)
	}
	for _, shape := range m.Shapes {
		if !slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Shape == shape.Name && c.Status == gates.Passed }) {
			t.Errorf("%s did not pass, or was not asked about", shape.Name)
		}
	}
}

// compute-sanitizer found nothing in any variant on an H200. The policy that has it look again (gpu.sh's step sanitize) asks
// for no less. evidence/sanitize.txt says how long the problems were, and what was found before it was fixed.
func TestRecordedSanitizers(t *testing.T) {
	policyYAML, err := os.ReadFile(folder + "sanitize.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("sanitize.yaml", policyYAML)
	if err != nil {
		t.Fatal(err)
	}
	if g := p.RuleFor(policy.Change{}).Gates.Sanitize; len(g.Tools) != 4 || !g.Decides() || g.MissingTool != policy.MissingDefers {
		t.Errorf("sanitize.yaml asks for %+v", g)
	}
	text, err := os.ReadFile(folder + "evidence/sanitize.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := readManifest(t)
	for _, v := range m.Variants {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^%s \(sm_90a?\): memcheck clean, racecheck clean at [3-9] shapes$`, regexp.QuoteMeta(v.Name)))
		if !line.Match(text) {
			t.Errorf("evidence/sanitize.txt has no clean run of %s", v.Name)
		}
	}
}
