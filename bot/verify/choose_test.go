package verify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A runner cannot leave a variant of a choice out, nor give its shapes to another.
func TestChoice(t *testing.T) {
	job := asked(t, "1.5")
	first := job.Manifest.Shapes[0]
	dim := first.Dims[0]
	text := strings.Replace(manifestYAML, "source: scale.c", "variants: {one: {source: scale.c}, other: {source: other.c}}\nchoose: [{when: \"WHEN\", variant: one}, {variant: other}]", 1)
	text = strings.Replace(text, "WHEN", dim.Name+" == "+strings.TrimPrefix(strings.Fields(first.Dims.String())[0], dim.Name+"="), 1)
	m, err := manifest.Join("kernels/scale/kernel.yaml", []byte(manifestYAML), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	job.Candidate.Manifest, job.Candidate.ManifestText, job.Candidate.Variant = m, text, m.DefaultVariant
	if err := os.WriteFile(filepath.Join(job.Candidate.Dir, "other.c"), []byte("// speed 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := honest(t, job)
	if err := verify.Check(job, 0, e); err != nil {
		t.Fatalf("an honest runner: %v", err)
	}
	for name, lie := range map[string]func(*gates.Evidence){
		"left out": func(e *gates.Evidence) { e.Candidate.Parts = e.Candidate.Parts[:1] },
		"all":      func(e *gates.Evidence) { e.Candidate.Parts = nil },
		"another":  func(e *gates.Evidence) { e.Candidate.Parts[1].Variant = "one" },
		"shapes":   func(e *gates.Evidence) { e.Candidate.Parts[1].Shapes = nil },
		"source":   func(e *gates.Evidence) { e.Candidate.Parts[1].Source = "scale.c" },
		"no code":  func(e *gates.Evidence) { e.Candidate.Parts[1].Code = "" },
		"not ok":   func(e *gates.Evidence) { e.Candidate.Parts[1].OK = false },
		"baseline": func(e *gates.Evidence) { e.Baseline.Parts = e.Candidate.Parts },
	} {
		if err := verify.Check(job, 0, told(t, e, lie)); err == nil || !strings.Contains(err.Error(), ".parts") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
