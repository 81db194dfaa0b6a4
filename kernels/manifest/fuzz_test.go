package manifest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever the text, Parse does not panic; and what it lets through can be
// used without an error at every shape with every variant.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../sdpa_cpu/kernel.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	for _, text := range []string{
		goodCPU, goodCUDA, goodDevice, goodCommand, goodMap, goodSteps, goodLoop, goodChoice, gather, byValue, descriptorManifest,
		strings.Replace(gather, "dtype: f32, access: in, shape: [V, D], init: {scale: 0.02}", "access: in, shape: [V], fields: [{name: d, dtype: f16, init: -1..1}, {name: q, dtype: int4, count: D}]", 1),
		strings.Replace(goodDevice, "limits: {D: 64", "limits: {S: 1..7 step 9999999999|8..999 step 13, D: 64", 1),
		goodCPU + "flags: []\narguments: []\nsources: [a, b]\nsources: []\n",
		"variants: {a: {flags: [-O2, -O3]}, a: {}}\nmode: cpu\nshapes: {a: &a {S: *a}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse("kernel.yaml", []byte(text))
		if err != nil {
			if m != nil || err.Error() == "" {
				t.Fatalf("a refused manifest is returned, or not explained: %v", err)
			}
			return
		}
		useAll(t, m)
	})
}

func useAll(t *testing.T, m *Manifest) {
	t.Helper()
	if _, err := m.Variant(m.DefaultVariant); err != nil {
		t.Errorf("default variant %q does not exist", m.DefaultVariant)
	}
	for _, device := range m.devices() {
		for _, shape := range m.ShapesFor(m.DefaultVariant) {
			if v, err := m.Serving(m.DefaultVariant, device, shape.Dims); err != nil || !m.Supports(v, shape.Dims) {
				t.Errorf("shape %s is served by %q on %s: %v", shape, v, device, err)
			}
		}
	}
	for _, v := range m.Variants {
		m.CompilerFlags(v.Name)
		toggles := m.ToggleValues(v.Name)
		if len(m.Defines(v.Name)) != len(m.Toggles) {
			t.Errorf("variant %s does not define every toggle", v.Name)
		}
		if len(m.ShapesFor(v.Name)) == 0 {
			t.Errorf("variant %s supports no shape", v.Name)
		}
		for _, shape := range m.ShapesFor(v.Name) {
			if _, ok := m.Shape(shape.Name); !ok || len(shape.Dims) == 0 {
				t.Errorf("shape %q is empty", shape.Name)
			}
			useAt(t, m, v.Name, shape, toggles)
		}
		for _, shape := range m.DrawSecret(v.Name, rand.New(rand.NewPCG(1, 1)), 3) {
			if !m.Supports(v.Name, shape.Dims) {
				t.Errorf("%s is outside the limits of variant %s", shape, v.Name)
			}
		}
		if m.Mode == ModeCUDA && len(m.ArchOf(v.Name)) == 0 {
			t.Errorf("variant %s is compiled for nothing", v.Name)
		}
	}
	for _, file := range m.sortedFiles() {
		m.IsSource(file)
	}
	if m.Mode != ModeCommand && m.ReferencePrototype("r") == "" != m.ReferenceOnDevice() {
		t.Error("a reference has no prototype, or one on the device has one")
	}
	if _, err := ParseEntry(m.Entry); err != nil && m.Entry != "" {
		t.Error(err)
	}
}

func useAt(t *testing.T, m *Manifest, variant string, shape Shape, toggles map[string]int) {
	t.Helper()
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if a.Access == Scalar && len(a.Vector) > 0 {
			continue // its lanes are tried when the manifest is read
		}
		if a.Access == Scalar {
			if _, err := m.ScalarValue(a, shape.Dims, toggles); err != nil {
				t.Errorf("%s, %s: %v", shape, a.Name, err)
			}
			continue
		}
		elements, err := m.elements(a, shape.Dims, toggles)
		if err != nil || elements < 1 || elements > maxElements {
			t.Errorf("%s, %s: %d elements: %v", shape, a.Name, elements, err)
		}
		switch {
		case a.Structs():
			if e, err := m.ElementOf(a, shape.Dims, toggles); err != nil || e.Size < 1 || e.Size%e.Align != 0 || len(e.Members) != len(a.Fields) {
				t.Errorf("%s, %s: %+v: %v", shape, a.Name, e, err)
			}
		case a.array() && a.Access != Out && a.ScaleOf == "":
			if f, err := m.FillingOf(a, shape.Dims, toggles); err != nil || f.Scale == 0 || f.Most < f.Least {
				t.Errorf("%s, %s: %+v: %v", shape, a.Name, f, err)
			}
		}
		if a.TensorMap != nil {
			tile, err := m.TileOf(a, shape.Dims, toggles)
			if err != nil || len(tile.Box) != len(tile.Shape) || len(tile.Strides) != len(tile.Shape) {
				t.Errorf("%s, %s: tile %+v: %v", shape, a.Name, tile, err)
			}
			last := 0
			for i := range tile.Shape {
				last += (tile.Shape[i] - 1) * tile.Strides[i]
			}
			if last >= elements {
				t.Errorf("%s, %s: tile %+v has an element %d of %d", shape, a.Name, tile, last, elements)
			}
		}
		if a.Quantize != nil && len(a.GroupAxes()) != len(a.Quantize.Per) {
			t.Errorf("%s: %d group axes for %v", a.Name, len(a.GroupAxes()), a.Quantize.Per)
		}
	}
	if m.Mode == ModeCUDA {
		steps, err := m.Steps(variant, shape.Dims, nil)
		if err != nil || len(steps) == 0 || len(m.Entries(variant)) == 0 && steps[0].Memset == "" {
			t.Errorf("%s: %d steps: %v", shape, len(steps), err)
		}
		for _, k := range m.Kernels(variant) {
			if _, err := ParseEntry(k.Entry); err != nil || len(m.Parameters(k.Args, k.Scalars...)) != len(k.Args) {
				t.Errorf("%s with %v: %d parameters: %v", k.Entry, k.Args, len(m.Parameters(k.Args, k.Scalars...)), err)
			}
		}
		for _, a := range m.ScratchOf(variant) {
			if _, err := m.ShapeOf(a, shape.Dims, toggles); err != nil {
				t.Errorf("%s, %s: %v", shape, a.Name, err)
			}
		}
	}
	if m.ReferenceOnDevice() {
		if _, err := m.ReferenceGeometry(shape.Dims); err != nil {
			t.Errorf("%s, reference: %v", shape, err)
		}
	}
	if _, err := m.FLOPs(shape.Dims); err != nil {
		t.Errorf("%s: %v", shape, err)
	}
	if _, err := m.Bytes(shape.Dims); err != nil {
		t.Errorf("%s: %v", shape, err)
	}
}
