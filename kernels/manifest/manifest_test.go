package manifest

import (
	"flag"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies/strict"
)

var update = flag.Bool("update", false, "rewrite schema.json")

func parseFile(t testing.TB, file string) *Manifest {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestCUDAManifest(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	same(t, "shapes", m.ShapeNames(), []string{"small", "mission", "long", "batch", "decoder"})
	same(t, "variants", m.VariantNames(), []string{"stage0", "stage1", "stage2", "stage4", "stage5", "stage6"})
	same(t, "default variant", m.DefaultVariant, "stage2")
	same(t, "defines", m.Defines("stage5"), []string{
		"-DNUM_PRODUCER_WARPS=4", "-DTILE_M=64", "-DUSE_CP_ASYNC=1", "-DUSE_PERSISTENT_CTA=1", "-DUSE_THREE_STAGE_PIPE=0", "-DUSE_WMMA_PV=1",
	})
	same(t, "flags", m.CompilerFlags("stage5"), []string{"-O3", "--use_fast_math", "-std=c++17", "-lineinfo", "-Xptxas", "-O3", "-maxrregcount=120"})

	mission, ok := m.Shape("mission")
	if !ok {
		t.Fatal("no shape mission")
	}
	same(t, "mission", mission.String(), "mission (B=1 H=8 S=512 D=64 causal=0)")
	q, _ := m.argument("q")
	same(t, "axes that index the scales", q.GroupAxes(), []int{1})
	axes, err := m.ShapeOf(q, mission.Dims, nil)
	same(t, "q", axes, []int{1, 8, 512, 64})
	same(t, "q's error", err, nil)
	elements, _ := m.elements(q, mission.Dims, nil)
	same(t, "elements", elements, 262144)
	scale, _ := m.argument("softmax_scale")
	value, _ := m.ScalarValue(scale, mission.Dims, nil)
	same(t, "scalar", value, 0.125)
	flops, _ := m.FLOPs(mission.Dims)
	same(t, "flops", flops, 4*8*512*512*64.0)
	bytes, _ := m.Bytes(mission.Dims)
	same(t, "bytes", bytes, 5*8*512*64.0)
}

// geometry is a launch of one kernel in numbers.
func geometry(m *Manifest, variant string, dims Dims, toggles map[string]int) (Geometry, error) {
	steps, err := m.Steps(variant, dims, toggles)
	if err != nil {
		return Geometry{}, err
	}
	return steps[0].Geometry, nil
}

func TestGeometry(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	mission, _ := m.Shape("mission")
	for _, tt := range []struct {
		variant string
		want    Geometry
	}{
		{"stage0", Geometry{Grid: [3]int{128, 1, 1}, Block: [3]int{128, 1, 1}, Cluster: [3]int{1, 1, 1}}},
		{"stage2", Geometry{Grid: [3]int{8, 8, 1}, Block: [3]int{128, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 16384}},
		{"stage4", Geometry{Grid: [3]int{8, 8, 1}, Block: [3]int{128, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 24576}},
		{"stage5", Geometry{Grid: [3]int{64, 1, 1}, Block: [3]int{256, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 16384}},
		{"stage6", Geometry{Grid: [3]int{8, 8, 1}, Block: [3]int{256, 1, 1}, Cluster: [3]int{2, 1, 1}, SharedMemory: 16384}},
	} {
		for name, toggles := range map[string]map[string]int{"nil": nil, "the variant's": m.ToggleValues(tt.variant)} {
			got, err := geometry(m, tt.variant, mission.Dims, toggles)
			same(t, tt.variant+" with toggles "+name, got, tt.want)
			same(t, tt.variant+"'s error", err, nil)
		}
	}
	got, err := geometry(m, "stage5", mission.Dims, map[string]int{"NUM_PRODUCER_WARPS": 2})
	same(t, "stage5 with one toggle changed", got, Geometry{Grid: [3]int{64, 1, 1}, Block: [3]int{192, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 16384})
	same(t, "its error", err, nil)
	sdpa := parseFile(t, "../sdpa_fp8/kernel.yaml")
	for shape, want := range map[string]Geometry{
		"small":    {Grid: [3]int{1, 1, 1}, Block: [3]int{256, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 75792},
		"mission":  {Grid: [3]int{16, 8, 1}, Block: [3]int{256, 1, 1}, Cluster: [3]int{2, 1, 1}, SharedMemory: 75792},
		"batch512": {Grid: [3]int{8, 8, 2}, Block: [3]int{256, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 75792},
	} {
		s, _ := sdpa.Shape(shape)
		got, err := geometry(sdpa, "stage6_split", s.Dims, nil)
		same(t, "a cluster that depends on the shape, "+shape, got, want)
		same(t, "its error", err, nil)
	}
	got, err = m.ReferenceGeometry(mission.Dims)
	same(t, "reference", got, Geometry{Grid: [3]int{1024, 1, 1}, Block: [3]int{128, 1, 1}, Cluster: [3]int{1, 1, 1}})
	same(t, "the reference's error", err, nil)
}

func TestGeometryRefuses(t *testing.T) {
	cuda, cpu := parseFile(t, "testdata/sdpa_fp8.yaml"), parseFile(t, "../sdpa_cpu/kernel.yaml")
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := geometry(cuda, "stage9", cuda.Shapes[0].Dims, nil)
	refused(err, `sdpa_fp8 has no variant "stage9" (it has stage0, stage1, stage2, stage4, stage5, stage6)`)
	_, err = geometry(cpu, "stage2", cpu.Shapes[0].Dims, nil)
	refused(err, "sdpa_cpu has no launch: its mode is cpu")
	_, err = cpu.ReferenceGeometry(cpu.Shapes[0].Dims)
	refused(err, "sdpa_cpu has no reference on the device: see ReferenceOnDevice")
}

func TestArchOf(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	for variant, want := range map[string][]Arch{"stage2": {"sm_89", "sm_90"}, "stage6": {"sm_90a"}} {
		same(t, variant, m.ArchOf(variant), want)
	}
}

func TestPrototypes(t *testing.T) {
	for _, tt := range []struct{ file, kernel, reference string }{
		{
			"../sdpa_cpu/kernel.yaml",
			"void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale, const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D);",
			"void sdpa_reference(const double *q, const double *k, const double *v, double *o, int32_t B, int32_t H, int32_t S, int32_t D);",
		},
		{
			"testdata/sdpa_fp8.yaml",
			"void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale, const float *v_scale, uint16_t *o, int32_t batch, int32_t heads, int32_t length, int32_t causal, float softmax_scale);",
			"",
		},
		{"testdata/minimal.yaml", "void scale(float *x, int64_t n);", "void scale_reference(double *x, int64_t n);"},
		{"testdata/command.yaml", "", ""},
	} {
		m := parseFile(t, tt.file)
		reference := ""
		if m.Reference != nil {
			reference = m.Reference.Entry
		}
		same(t, tt.file, m.CPrototype(m.Entry), tt.kernel)
		same(t, tt.file+", reference", m.ReferencePrototype(reference), tt.reference)
		same(t, tt.file+", reference on the device", m.ReferenceOnDevice(), m.Mode == ModeCUDA)
	}
}

func TestDefaults(t *testing.T) {
	m := parseFile(t, "testdata/minimal.yaml")
	same(t, "variants", []Variant(m.Variants), []Variant{{Name: "default", Source: "scale.c"}})
	same(t, "default variant", m.DefaultVariant, "default")
	same(t, "init", m.Arguments[0].Init.Draw, ByPolicy)
	same(t, "sources", m.Sources, []string{"*.c", "*.cc", "*.cpp", "*.cxx", "*.c++", "*.h"})
	same(t, "defines", m.Defines("default"), []string{})
	same(t, "unit", parseFile(t, "testdata/command.yaml").Command.Unit.Micros(), 1e3)
}

// What is shipped must be whole: the manifest, every file that it names, and
// the declared function in each of them.
func TestShipped(t *testing.T) {
	spaces := regexp.MustCompile(`\s+`)
	plain := func(s string) string {
		return spaces.ReplaceAllString(strings.ReplaceAll(s, "restrict ", ""), " ")
	}
	folders, err := fs.ReadDir(kernels.Shipped, ".")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no kernel is shipped: %v", err)
	}
	for _, folder := range folders {
		file := folder.Name() + "/" + FileName
		data, err := kernels.Shipped.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse("kernels/"+file, data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "name", m.Name, folder.Name())
		for _, name := range m.sortedFiles() {
			source, err := kernels.Shipped.ReadFile(folder.Name() + "/" + name)
			if err != nil {
				t.Error(err)
				continue
			}
			declared := m.CPrototype(m.Entry)
			switch isReference := name == m.Reference.Source; {
			case isReference && m.ReferenceOnDevice():
				declared = " " + m.Reference.Entry + "("
			case isReference:
				declared = m.ReferencePrototype(m.Reference.Entry)
			case m.Mode == ModeCUDA: // in types of the device, such as __half
				declared = " " + m.Entry + "("
			}
			if !strings.Contains(plain(string(source)), declared) {
				t.Errorf("%s does not declare %s", name, declared)
			}
			same(t, "a change may bring "+name, m.IsSource(name), name != m.Reference.Source)
		}
	}
}

func TestSchemaInStep(t *testing.T) {
	want, err := strict.Schema(SchemaID, "kernelgate kernel manifest", Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Error("schema.json is out of step with the language (run go test ./kernels/manifest -update)")
	}
}
