package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A bomb is a small manifest that is costly to read. Aliases repeat what stands in it once.
type bomb struct {
	variants, steps, shapes, arguments, toggles int

	expr string // of every size
}

func (b bomb) String() string {
	var t strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&t, format+"\n", args...) }
	line("version: 1\nname: k\nmode: cuda\narch: [sm_90]\narguments:")
	for i := range b.arguments {
		access := "in"
		if i == 0 {
			access = "out"
		}
		line("  - {name: x%d, dtype: f32, access: %s, shape: [%q, %q, %q, %q]}", i, access, b.expr, b.expr, b.expr, b.expr)
	}
	line("reference: {source: reference.cu, entry: r, launch: {grid: [1], block: [1]}}\ntolerance: {abs: 0.1}\nshapes:")
	for i := range b.shapes {
		line("  s%d: {D: %d, E: 1}", i, i+1)
	}
	line("secret: {D: 1..1000}\nlimits: {D: 1..100000}\nentry: k\nvariants:")
	step := fmt.Sprintf("{grid: [%q, %q, %q], block: [%q, %q, %q], shared_memory: %q}", b.expr, b.expr, b.expr, b.expr, b.expr, b.expr, b.expr)
	line("  v0: {source: k.cu, launch: &l {steps: [&s %s%s]}}", step, strings.Repeat(", *s", b.steps-1))
	for i := 1; i < b.variants; i++ {
		line("  v%d: {source: k.cu, launch: *l}", i)
	}
	line("default_variant: v0")
	if b.toggles > 0 {
		line("toggles:")
	}
	for i := range b.toggles {
		line("  T%d: {values: [0], default: 0, layer: micro}", i)
	}
	return t.String()
}

// long is an expression of the largest length whose value is 1.
func long() string {
	e := "1+(D%7" + strings.Repeat("+D%7", 46) + ")*0"
	return e + strings.Repeat(" ", maxExprLength-len(e)-2) + "+0"
}

// A manifest that costs too much to check is refused before anything in it is computed, at the field that costs the most.
func TestCostlyManifestsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		bomb   bomb
		path   string
		reason string
	}{
		"16 KB, 5 s":     {bomb{32, 32, 32, 16, 0, long()}, "variants.v", "holds more than 100000 values"},
		"few long steps": {bomb{4, 16, 64, 1, 0, long()}, "variants.v2.launch.steps[0].grid", "steps of at most 4000000"},
		"names alone":    {bomb{64, 16, 64, 64, 64, "1"}, "variants.v", "steps of at most 4000000"},
		"long arguments": {bomb{1, 1, 64, 64, 0, long()}, "arguments[0].shape", "steps of at most 4000000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("kernels/k/kernel.yaml", []byte(c.bomb.String()))
			problems, _ := errors.AsType[strict.Problems](err)
			if !slices.ContainsFunc(problems, func(p strict.Problem) bool {
				return p.File == "kernels/k/kernel.yaml" && p.Line > 0 && strings.HasPrefix(p.Path, c.path) && strings.Contains(p.Message, c.reason)
			}) {
				t.Errorf("got %v\nwant %s at %s", err, c.reason, c.path)
			}
		})
	}
}

// Large manifests that people might write stay within the budget.
func TestLargeManifestsAreAffordable(t *testing.T) {
	for name, b := range map[string]bomb{
		"many variants": {64, 1, 16, 12, 4, "ceildiv(D, 100000)"},
		"many steps":    {4, 32, 16, 12, 4, "ceildiv(D, 100000)"},
		"many shapes":   {8, 2, 64, 12, 4, "ceildiv(D, 100000)"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("kernel.yaml", []byte(b.String())); err != nil {
				t.Error(err)
			}
		})
	}
}

// Equal launches are tried once: a mistake in one that several variants share is told where it stands first.
func TestEqualLaunchesAreTriedOnce(t *testing.T) {
	b := bomb{variants: 8, steps: 1, shapes: 1, arguments: 1, expr: "1"}
	_, err := Parse("kernel.yaml", []byte(strings.ReplaceAll(b.String(), `block: ["1"`, `block: ["2000"`)))
	problems, _ := errors.AsType[strict.Problems](err)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Path, "variants.v0.") {
		t.Errorf("got %v, want one mistake in v0", err)
	}
}
