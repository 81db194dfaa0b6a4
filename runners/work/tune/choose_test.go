package tune

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const chooseManifest = `version: 1
name: scale
mode: cpu
entry: scale
arguments:
  - {name: x, dtype: f32, access: in, shape: [B, N]}
  - {name: y, dtype: f32, access: out, shape: [B, N]}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.001}
limits: {B: 1..100, N: 1..100000}
shapes:
  tiny: {B: 1, N: 10}
  short: {B: 1, N: 200}
  many: {B: 64, N: 200}
  long: {B: 1, N: 5000}
  huge: {B: 2, N: 50000}
variants:
  plain: {source: a.c}
  wide: {source: b.c}
  batched: {source: c.c}
  narrow: {source: d.c, limits: {N: 1..100}}
default_variant: plain # the safe one
`

// chooseTimes has a different best variant for small, many and long problems.
func chooseTimes() Times {
	return Times{
		"tiny":  {"plain": 1, "wide": 3, "batched": 2, "narrow": 0.5},
		"short": {"plain": 1, "wide": 1.5, "batched": 1.2},
		"many":  {"plain": 1, "wide": 1.4, "batched": 0.7},
		"long":  {"plain": 1, "wide": 0.6, "batched": 1},
		"huge":  {"plain": 1, "wide": 0.5, "batched": 0.9},
	}
}

// TestChoose checks the choice, and the manifest that has it.
func TestChoose(t *testing.T) {
	choice, err := Choose("kernel.yaml", []byte(chooseManifest), "", chooseTimes())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "choose.diff", choice.Diff("kernel.yaml", []byte(chooseManifest)))
	want := map[string]string{"tiny": "narrow", "short": "plain", "many": "batched", "long": "wide", "huge": "wide"}
	for _, s := range choice.Served {
		if s.Variant != want[s.Shape] || s.Behind > Nearest {
			t.Errorf("%s is served by %s, %.3f behind; want %s", s.Shape, s.Variant, s.Behind, want[s.Shape])
		}
	}
	if len(choice.Served) != 5 || len(choice.Rules) != 4 {
		t.Errorf("%d shapes by %d rules", len(choice.Served), len(choice.Rules))
	}
	// Choose on the manifest that has the choice proposes no further change.
	again, err := Choose("kernel.yaml", choice.Text, "", chooseTimes())
	if err != nil || again.Diff("kernel.yaml", choice.Text) != "" {
		t.Errorf("the choice again: %v\n%s", err, again.Diff("kernel.yaml", choice.Text))
	}
}

// TestChooseOne checks that no rules are needed if one variant is near the best on every shape, whether the
// manifest has a choose list or not.
func TestChooseOne(t *testing.T) {
	times := chooseTimes()
	for shape := range times {
		times[shape]["wide"] = 0.4
	}
	choice, err := Choose("kernel.yaml", []byte(chooseManifest), "", chooseTimes())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{chooseManifest, string(choice.Text)} {
		one, err := Choose("kernel.yaml", []byte(text), "", times)
		if err != nil {
			t.Fatal(err)
		}
		if len(one.Rules) != 1 || !strings.Contains(string(one.Text), "\ndefault_variant: wide") || strings.Contains(string(one.Text), "choose:") {
			t.Errorf("rules %v\n%s", one.Rules, one.Text)
		}
	}
}

// TestChooseNeighbours checks shapes whose best variants alternate: a condition may take one of them.
func TestChooseNeighbours(t *testing.T) {
	text := strings.Replace(chooseManifest, "shapes:\n", "shapes:\n  one: {B: 1, N: 201}\n  two: {B: 1, N: 202}\n  three: {B: 1, N: 203}\n", 1)
	times := chooseTimes()
	times["one"], times["two"], times["three"] = map[string]float64{"wide": 1}, map[string]float64{"plain": 1}, map[string]float64{"wide": 1}
	choice, err := Choose("kernel.yaml", []byte(text), "", times)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range choice.Served {
		if _, measured := times[s.Shape][s.Variant]; s.Behind > Nearest || !measured {
			t.Errorf("%+v", s)
		}
	}
	if _, err := Choose("kernel.yaml", []byte(text), "", Times{}); err == nil || err.Error() != "no shape was measured" {
		t.Errorf("without times: %v", err)
	}
}

// TestChooseAttention finds a choice for the FP8 attention kernel from its recorded evidence on an
// H200, on 20 shapes and more.
func TestChooseAttention(t *testing.T) {
	folder := "../../../kernels/sdpa_fp8/"
	text, err := os.ReadFile(folder + manifest.FileName)
	if err != nil {
		t.Fatal(err)
	}
	showcase, err := os.ReadFile(folder + "showcase.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("showcase.yaml", showcase)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(folder + "evidence/all/stage6*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	times := Times{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := gates.ParseEvidence(file, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range gates.Judge(p, "showcase.yaml", e).Comparisons {
			if row.Secret || row.Candidate == nil || row.Baseline == nil {
				continue
			}
			if times[row.Shape] == nil {
				times[row.Shape] = map[string]float64{}
			}
			times[row.Shape][e.Provenance.Head.Variant] = row.Candidate.P50 / row.Baseline.P50
		}
	}
	// A shape that only some variants were measured on would favour those variants.
	for shape, of := range times {
		if len(of) < len(files) {
			delete(times, shape)
		}
	}
	choice, err := Choose(manifest.FileName, text, "sm_90", times)
	if err != nil {
		t.Fatal(err)
	}
	worst := slices.MaxFunc(choice.Served, func(a, b Served) int { return int(math.Copysign(1, a.Behind-b.Behind)) })
	t.Logf("%d rules for %d shapes of %d variants, at most %.2f %% behind the best (%s)", len(choice.Rules), len(choice.Served), len(files), 100*worst.Behind, worst.Shape)
	for _, r := range choice.Rules {
		t.Logf("%q: %s", r.When, r.Variant)
	}
	if worst.Behind > Nearest || len(choice.Served) != len(times) || len(times) < 5 {
		t.Errorf("%+v of %d shapes", choice.Served, len(times))
	}
}
