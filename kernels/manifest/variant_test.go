package manifest

import (
	"slices"
	"strings"
	"testing"
)

func TestVariantWithToggles(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	const varied = "stage5,NUM_PRODUCER_WARPS=2,TILE_M=128"
	v, err := m.Variant(varied)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "declared name and source", []string{v.Name, v.Source}, []string{"stage5", "stage5.cu"})
	same(t, "defines", m.Defines(varied), []string{
		"-DNUM_PRODUCER_WARPS=2", "-DTILE_M=128", "-DUSE_CP_ASYNC=1", "-DUSE_PERSISTENT_CTA=1", "-DUSE_THREE_STAGE_PIPE=0", "-DUSE_WMMA_PV=1",
	})
	same(t, "the declared variant's, as before", m.ToggleValues("stage5")["NUM_PRODUCER_WARPS"], 4)
	mission, _ := m.Shape("mission")
	g, err := geometry(m, varied, mission.Dims, nil)
	same(t, "its launch", g, Geometry{Grid: [3]int{32, 1, 1}, Block: [3]int{192, 1, 1}, Cluster: [3]int{1, 1, 1}, SharedMemory: 16384})
	same(t, "the launch's error", err, nil)
	same(t, "its tries", m.Try(varied), nil)

	if v, err := m.Variant("stage0,TILE_M=32"); err != nil || v.Toggles["TILE_M"] != 32 {
		t.Errorf("a variant without toggles of its own: %v, %v", v.Toggles, err)
	}
	wide := slices.Clone(mission.Dims)
	wide[slices.IndexFunc(wide, func(d Dim) bool { return d.Name == "D" })].Value = 128
	same(t, "limits of a variant with toggles", m.Supports("stage0,TILE_M=32", wide), false)
}

func TestVariantRefuses(t *testing.T) {
	m := parseFile(t, "testdata/sdpa_fp8.yaml")
	const toggles = "USE_CP_ASYNC, USE_WMMA_PV, USE_THREE_STAGE_PIPE, USE_PERSISTENT_CTA, NUM_PRODUCER_WARPS, TILE_M"
	for name, want := range map[string]string{
		"stage9":                     `sdpa_fp8 has no variant "stage9" (it has stage0, stage1, stage2, stage4, stage5, stage6)`,
		"stage9,TILE_M=32":           `sdpa_fp8 has no variant "stage9" (it has stage0, stage1, stage2, stage4, stage5, stage6)`,
		"":                           `sdpa_fp8 has no variant "" (it has stage0, stage1, stage2, stage4, stage5, stage6)`,
		"stage5,TILE_N=32":           `variant "stage5,TILE_N=32": sdpa_fp8 has no toggle "TILE_N" (it has ` + toggles + `)`,
		"stage5,":                    `variant "stage5,": sdpa_fp8 has no toggle "" (it has ` + toggles + `)`,
		"stage5,TILE_M":              `variant "stage5,TILE_M": TILE_M: "" is none of its values [32 64 128] (write e.g. TILE_M=32)`,
		"stage5,TILE_M=48":           `variant "stage5,TILE_M=48": TILE_M: "48" is none of its values [32 64 128] (write e.g. TILE_M=32)`,
		"stage5,TILE_M=1e2":          `variant "stage5,TILE_M=1e2": TILE_M: "1e2" is none of its values [32 64 128] (write e.g. TILE_M=32)`,
		"stage5,TILE_M=32,TILE_M=64": `variant "stage5,TILE_M=32,TILE_M=64": TILE_M is set twice (delete one)`,
	} {
		if _, err := m.Variant(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		same(t, "Try refuses "+name, m.Try(name) != nil, true)
	}
	cpu := parseFile(t, "../sdpa_cpu/kernel.yaml")
	_, err := cpu.Variant("stage0,X=1")
	if err == nil || !strings.HasSuffix(err.Error(), `sdpa_cpu has no toggle "X" (it has none)`) {
		t.Errorf("a manifest without toggles: %v", err)
	}
}

// Values that no declared variant has may ask for a launch that there cannot be.
func TestTry(t *testing.T) {
	text := `version: 1
name: x
mode: cuda
entry: x
source: x.cu
sources: ["*.cu"]
arch: [sm_90]
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
launch: {grid: ["ceildiv(N, 32)"], block: [32*WARPS]}
reference: {source: r.cu, entry: r, launch: {grid: [N], block: [32]}}
tolerance: {abs: 1}
shapes: {small: {N: 5}}
toggles: {WARPS: {values: [1, 64], default: 1, layer: micro}}
`
	m, err := Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "as declared", m.Try("default"), nil)
	err = m.Try("default,WARPS=64")
	if err == nil || !strings.HasPrefix(err.Error(), `variant "default,WARPS=64": "32*WARPS" `) || !strings.Contains(err.Error(), " at shape small, N=5 ") {
		t.Errorf("a block of 2048 threads: %v", err)
	}
}

func FuzzVariant(f *testing.F) {
	for _, name := range []string{"stage5", "stage5,TILE_M=32", "stage5,TILE_M=32,NUM_PRODUCER_WARPS=1", "stage9,", "stage5,=,", ","} {
		f.Add(name)
	}
	m := parseFile(f, "testdata/sdpa_fp8.yaml")
	f.Fuzz(func(t *testing.T, name string) {
		v, err := m.Variant(name)
		if err != nil {
			return
		}
		if !slices.Contains(m.VariantNames(), v.Name) {
			t.Errorf("%q is found as %q", name, v.Name)
		}
		for _, toggle := range m.Toggles {
			if value, set := v.Toggles[toggle.Name]; set && !slices.Contains(toggle.Values, value) {
				t.Errorf("%q has %s = %d", name, toggle.Name, value)
			}
		}
		m.Try(name)
	})
}
