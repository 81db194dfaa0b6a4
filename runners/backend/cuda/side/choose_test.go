package side

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// TestStepsOfChoice checks that the steps of a choice's launch are those of the variant that
// handles the problem.
func TestStepsOfChoice(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "kernels", "sdpa_fp8", manifest.FileName))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(manifest.FileName, text)
	if err != nil {
		t.Fatal(err)
	}
	k := &Kernel{manifest: m, built: Built{Variant: manifest.Choice, Device: "sm_90"}}
	for _, name := range m.Parts(manifest.Choice, "sm_90") {
		b := Built{Variant: name}
		k.built.Parts = append(k.built.Parts, b)
		k.parts = append(k.parts, &Kernel{manifest: m, built: b, launch: func(d manifest.Dims) ([]manifest.StepAt, error) { return m.Steps(name, d, nil) }})
	}
	served := map[string]bool{}
	for _, shape := range m.ShapesFor(manifest.Choice) {
		variant, err := m.Serving(manifest.Choice, "sm_90", shape.Dims)
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.Steps(variant, shape.Dims, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.steps(shape.Dims)
		if err != nil || len(got) != len(want) || got[0].Geometry != want[0].Geometry || got[0].Entry != want[0].Entry {
			t.Errorf("%s: %+v (%v), want those of %s: %+v", shape.Name, got, err, variant, want)
		}
		served[variant] = true
	}
	if len(served) < 2 {
		t.Errorf("the shapes are served by %v alone", served)
	}
	k.built.Parts = []Built{{Variant: "another"}}
	k.parts = []*Kernel{{built: k.built.Parts[0]}}
	if _, err := k.steps(m.ShapesFor(manifest.Choice)[0].Dims); err == nil {
		t.Error("a problem whose variant was not built has steps")
	}
}
