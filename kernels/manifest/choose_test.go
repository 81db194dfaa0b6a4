package manifest

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// goodChoice is one kernel for two architectures: long problems have a variant of their own on one of them.
const goodChoice = `version: 1
name: sdpa
mode: cuda
entry: sdpa_fp8
arch: [sm_89, sm_90]
arguments:
  - {name: x, dtype: f16, access: in, shape: [S, D]}
  - {name: y, dtype: f16, access: out, shape: [S, D]}
launch: {grid: ["ceildiv(S, TILE)"], block: [128]}
reference: {source: reference.cu, entry: sdpa_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  small: {S: 32, D: 64}
  long: {S: 2048, D: 64}
secret: {S: 1..4096}
toggles:
  TILE: {values: [32, 64], default: 64, layer: micro}
variants:
  long: {source: long.cu, arch: [sm_90a], limits: {S: 1024..4096}}
  short: {source: short.cu, arch: [sm_90a], toggles: {TILE: 32}}
  plain: {source: plain.cu}
choose:
  - {when: "S >= 1024", variant: long}
  - {variant: short}
  - {variant: plain}
`

var chooseMistakes = []mistake{
	{"choice beside a default", goodChoice, "choose:", "default_variant: plain\nchoose:", []string{
		"kernel.yaml:22:18: default_variant: is set together with choose, which already says what a check gates (delete one of them)",
	}},
	{"choice of nothing", goodChoice, "choose:\n  - {when: \"S >= 1024\", variant: long}\n  - {variant: short}\n  - {variant: plain}\n", "choose: []\n", []string{
		`kernel.yaml:22:9: choose: has 0 entries (write 1 to 16, e.g. [{when: "S >= 1024", variant: long}, {variant: short}])`,
	}},
	{"choice of an unknown variant", goodChoice, "{variant: short}", "{variant: shirt}", []string{
		`kernel.yaml:24:15: choose[1].variant: "shirt" is none of the variants (write one of long, short, plain)`,
	}},
	{"choice without the rest", goodChoice, "  - {variant: plain}\n", "  - {when: S < 10, variant: plain}\n", []string{
		"kernel.yaml:25:12: choose[2].when: the last entry applies to all remaining problems (delete it, or add an entry without when)",
	}},
	{"choice without an architecture", goodChoice, "  - {variant: plain}\n", "", []string{
		"kernel.yaml:23:3: choose: has no entry for S=32 D=64 on sm_89 at shape small, S=32 D=64 (end it with a variant that is built for sm_89, without when)",
	}},
	{"choice beyond limits", goodChoice, "S >= 1024", "S >= 32", []string{
		"kernel.yaml:23:32: choose[0].variant: shape small, S=32 D=64 is outside the limits of long, which is chosen for it (widen variants.long.limits, or choose another)",
	}},
	{"choice beyond limits at a secret shape", goodChoice, "S >= 1024", "S >= 1000", []string{
		"kernel.yaml:23:34: choose[0].variant: a secret shape, S=1023 D=64 is outside the limits of long, which is chosen for it (widen variants.long.limits, or choose another)",
	}},
	{"choice never taken", goodChoice, "  - {variant: short}\n", "  - {when: S == 7, variant: short}\n  - {variant: plain}\n", []string{
		"kernel.yaml:24:5: choose[1]: takes none of the shapes, so that nothing would be measured of it (add a shape that it takes, or delete the entry)",
		"kernel.yaml:26:5: choose[3]: takes none of the shapes, so that nothing would be measured of it (add a shape that it takes, or delete the entry)",
	}},
	{"choice by a number", goodChoice, "\"S >= 1024\"", "S", []string{
		`kernel.yaml:23:12: choose[0].when: "S" is no condition (write e.g. S >= 1024)`,
	}},
	{"choice by an unknown name", goodChoice, "S >= 1024", "TILE >= 64", []string{
		`kernel.yaml:23:12: choose[0].when: "TILE" in "TILE >= 64" is not known here (known: S, D)`,
	}},
	{"choice by a division", goodChoice, "S >= 1024", "S/(S - 32) > 1", []string{
		`kernel.yaml:23:12: choose[0].when: "S/(S - 32) > 1" divides by zero at shape small, S=32 D=64 (use max(1, …) where a divisor can be 0)`,
	}},
	{"choice of other arguments", goodChoice, "access: out, shape: [S, D]", "access: out, shape: [S, TILE]", []string{
		"kernel.yaml:24:15: choose[1].variant: the argument y differs from that of long: TILE is 32 and 64 (choose among variants that agree on it)",
	}},
	{"choice as a variant's name", goodChoice, "  plain: {source", "  choose: {source", []string{
		`kernel.yaml:21:3: variants.choose: "choose" is what a choice by problem size is called (choose another name)`,
		`kernel.yaml:25:15: choose[2].variant: "plain" is none of the variants (write one of long, short, choose)`,
	}},
	{"choice of a command", goodCommand, "shapes:", "choose: [{variant: default}]\nshapes:", []string{
		"kernel.yaml:5:9: choose: is not read in command mode (delete it)",
	}},
}

// Each problem goes to the first entry that takes it and is built for the device.
func TestChoose(t *testing.T) {
	m := parsed(t, goodChoice)
	same(t, "default variant", m.DefaultVariant, Choice)
	at := func(device string, s int) string {
		v, err := m.Serving(Choice, device, Dims{{"S", s}, {"D", 64}})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	same(t, "sm_90", []string{at("sm_90", 1), at("sm_90", 1023), at("sm_90", 1024), at("sm_90", 4096)}, []string{"short", "short", "long", "long"})
	same(t, "sm_89", []string{at("sm_89", 1), at("sm_89", 4096)}, []string{"plain", "plain"})
	same(t, "parts on sm_90", m.Parts(Choice, "sm_90"), []string{"long", "short"})
	same(t, "parts anywhere", m.Parts(Choice, ""), []string{"long", "short", "plain"})
	same(t, "parts on sm_89", m.Parts(Choice, "sm_89"), []string{"plain"})
	names := func(part, device string) (all []string) {
		for _, s := range m.ServedBy(Choice, part, device) {
			all = append(all, s.Name)
		}
		return all
	}
	same(t, "long's shapes", names("long", "sm_90"), []string{"long"})
	same(t, "short's shapes", names("short", "sm_90"), []string{"small"})
	same(t, "plain's shapes", names("plain", "sm_89"), []string{"small", "long"})
	if names("plain", "sm_90") != nil {
		t.Errorf("plain serves %v where others do", names("plain", "sm_90"))
	}
	same(t, "archs", m.ArchOf(Choice), []Arch{"sm_89", "sm_90", "sm_90a"})
	same(t, "cover of small", m.Cover(Choice, []string{"small"}), []string{"long"})
	same(t, "cover of all", len(m.Cover(Choice, []string{"small", "long"})), 0)
	same(t, "cover of one variant", len(m.Cover("long", nil)), 0)
	if err := m.Try(Choice); err != nil {
		t.Error(err)
	}
	if _, err := m.Variant("choose,TILE=32"); err == nil || !strings.Contains(err.Error(), "the choice has no toggles") {
		t.Errorf("toggles behind the choice: %v", err)
	}
	if _, err := m.Variant("chose"); err == nil || !strings.Contains(err.Error(), "short, plain, choose") {
		t.Errorf("an unknown variant: %v", err)
	}
	for i, s := range m.DrawSecret(Choice, rand.New(rand.NewPCG(1, 2)), 50) {
		if v, _ := s.Dims.Get("S"); !m.Supports(Choice, s.Dims) || v > 4096 {
			t.Errorf("secret shape %d is %s", i, s)
		}
	}
}

// What tells two builds apart knows the choice: another bound, another order and another launch of a variant that is chosen
// are something else, and what no entry names is not.
func TestChoiceIsPartOfTheCall(t *testing.T) {
	m := parsed(t, goodChoice)
	for name, change := range map[string][]string{
		"bound":   {"S >= 1024", "S >= 1025"},
		"variant": {"{variant: short}", "{variant: plain}", "\n  - {variant: plain}\n  - {variant: plain}", "\n  - {variant: plain}"},
		"launch":  {"short: {source: short.cu", "short: {launch: {grid: [S], block: [64]}, source: short.cu"},
	} {
		other := parsed(t, edited(t, goodChoice, change...))
		if m.Call(Choice) == other.Call(Choice) || m.Recipe(Choice) == other.Recipe(Choice) {
			t.Errorf("another %s makes no difference", name)
		}
		if name != "bound" && m.Launches(Choice) == other.Launches(Choice) {
			t.Errorf("another %s makes no difference in numbers", name)
		}
	}
	beside := parsed(t, edited(t, goodChoice, "  plain: {source", "  unused: {source: unused.cu}\n  plain: {source"))
	same(t, "an unused variant", beside.Recipe(Choice), m.Recipe(Choice))
	same(t, "an unused variant's launches", beside.Launches(Choice), m.Launches(Choice))
}

// A head can bring a choice, and cannot get rid of a shape by it.
func TestChoiceSheds(t *testing.T) {
	single := edited(t, goodChoice, "choose:\n  - {when: \"S >= 1024\", variant: long}\n  - {variant: short}\n  - {variant: plain}\n", "default_variant: plain\n")
	m := joined(t, single, goodChoice)
	same(t, "default variant", m.DefaultVariant, Choice)
	if shapes, secret := Sheds(parsed(t, single), m); len(shapes) > 0 || secret {
		t.Errorf("the choice sheds %v, secret ones %v", shapes, secret)
	}
	narrow := edited(t, single, "default_variant: plain", "default_variant: long")
	if shapes, secret := Sheds(parsed(t, goodChoice), joined(t, goodChoice, narrow)); len(shapes) != 1 || shapes[0] != "small" || !secret {
		t.Errorf("one variant in the choice's place sheds %v, secret ones %v", shapes, secret)
	}
	// The base asks for a shape that the head's choice gives to a variant that does not take it.
	asks := edited(t, single, "  long: {S: 2048", "  between: {S: 512, D: 64}\n  long: {S: 2048")
	_, err := Join("kernel.yaml", []byte(asks), []byte(edited(t, goodChoice, "S >= 1024", "S >= 512", "small: {S: 32", "small: {S: 33")))
	if err == nil || !strings.Contains(err.Error(), "shape between, S=512 D=64 is outside the limits of long") {
		t.Errorf("a shape of the base's that the head's choice cannot serve: %v", err)
	}
	// And what the choice says of an argument is held against the base's.
	tile := edited(t, single, "access: out, shape: [S, D]", "access: out, shape: [S, TILE]")
	_, err = Join("kernel.yaml", []byte(tile), []byte(edited(t, goodChoice, "{variant: short}\n  - {variant: plain}", "{variant: short}\n  - {variant: short}")))
	if err == nil || !strings.Contains(err.Error(), "variants.short.toggles.TILE: 32 changes the argument y") {
		t.Errorf("a choice that changes the problem: %v", err)
	}
}
