package manifest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/compare"
)

// Every key of a manifest that decides anything is compared, and says which way it goes
// where somebody can know.
func TestCompare(t *testing.T) {
	seen := map[string]bool{"version": true, "description": true, "rivals": true} // always 1, and what decides nothing
	for _, e := range []struct {
		base, old, new string
		path           string
		is, back       compare.Direction
	}{
		{goodCPU, "name: sdpa\n", "name: other\n", "name", "changes", "changes"},
		{goodCommand, "mode: command\n", "mode: command\nsources: ['*.c']\n", "sources", "changes", "changes"},
		{goodCPU, "dtype: f16", "dtype: f32", "arguments[o]", "changes", "changes"},
		{goodCPU, "value: S", "value: 2*S", "arguments[n]", "changes", "changes"},
		{goodCPU, "mode: cpu", "mode: cpu\nthreads: 2", "threads", "changes", "changes"},
		{gather, "init: 0..V-1", "init: 0..V-2", "arguments[index]", "changes", "changes"},
		{gather, "lengths: 1..T", "lengths: 2..T", "arguments[rows]", "changes", "changes"},
		{gather, "share: 1/4", "share: 1/8", "arguments[mask]", "changes", "changes"},
		{gather, "scale: 0.02", "scale: 0.01", "arguments[table]", "changes", "changes"},
		{gather, "dims: [V, T, D]", "dims: [V, D, T]", "reference", "changes", "changes"},
		{goodCPU, "flops: 4*B", "flops: 1*B", "work", "changes", "changes"},
		{goodCPU, "entry: sdpa_reference", "entry: easy", "reference", "changes", "changes"},
		{goodCPU, "abs: 0.06", "abs: 0.6", "tolerance.abs", "loosens", "tightens"},
		{goodCPU, "abs: 0.06", "abs: 0.06, rel: 0.1", "tolerance.rel", "loosens", "tightens"},
		{goodCPU, "  mission: {B: 1, H: 2, S: 96, D: 64}\n", "", "shapes.mission", "loosens", "changes"},
		{goodCPU, "S: 96", "S: 9", "shapes.mission", "changes", "changes"},
		{goodCPU, "S: 1..4096", "S: 1..512", "limits.S", "loosens", "changes"},
		{goodCPU, ", D: 64|128}", "}", "limits.D", "changes", "loosens"},
		{goodCPU, "S: 1..160", "S: 1..16", "secret.S", "loosens", "changes"},
		{goodCPU, "secret: {S: 1..160}\n", "", "secret.S", "loosens", "changes"},
		{goodRecorded, "noise: 0.1", "noise: 0.2", "recorded.decode", "changes", "changes"},
		{goodRecorded, "    sha256: 0", "    sha256: 1", "recorded.decode", "changes", "changes"},
		{goodRecorded, "recorded:\n  decode:", "recorded:\n  other: {file: b.st, sha256: " + someDigest + ", shape: small}\n  decode:", "recorded.other", "changes", "changes"},
		{goodCommand, "bench: [./bench]", "bench: [./fast]", "command", "changes", "changes"},
		{goodWeights, "mission: 1", "mission: 2", "weights", "changes", "changes"},
		{goodWeights, "step: 1840us", "step: 9000us", "weights", "changes", "changes"},
	} {
		text := strings.Replace(e.base, e.old, e.new, 1)
		if text == e.base {
			t.Fatalf("%q is not in the manifest", e.old)
		}
		old, edited := parsed(t, e.base), parsed(t, text)
		if there := Compare(old, edited); len(there) != 1 || there[0].Path != e.path || there[0].Direction != e.is {
			t.Errorf("%q → %q: %+v, want %s at %s", e.old, e.new, there, e.is, e.path)
		}
		if back := Compare(edited, old); len(back) != 1 || back[0].Path != e.path || back[0].Direction != e.back {
			t.Errorf("%q → %q: %+v, want %s at %s", e.new, e.old, back, e.back, e.path)
		}
		if same := Compare(edited, parsed(t, text)); len(same) > 0 {
			t.Errorf("a manifest differs from itself: %v", same)
		}
		field, _, _ := strings.Cut(e.path, ".")
		field, _, _ = strings.Cut(field, "[")
		seen[field] = true
	}
	other := Compare(parsed(t, goodCPU), parsed(t, goodCommand))
	if len(other) == 0 || other[1].Path != "mode" || other[1].Direction != compare.Changes {
		t.Errorf("another mode: %+v", other)
	}
	seen["mode"] = true
	for i := range reflect.TypeFor[Manifest]().NumField() {
		tag := reflect.TypeFor[Manifest]().Field(i).Tag
		if name := tag.Get("yaml"); name != "" && !seen[name] && tag.Get("half") != "implementation" {
			t.Errorf("%s is not compared", name)
		}
	}
}

// What is for people, and the implementation, is nobody's rule.
func TestCompareWhatDecidesNothing(t *testing.T) {
	for _, e := range []struct{ base, old, new string }{
		{goodCUDA, "name: sdpa\n", "name: sdpa\ndescription: Attention\nrivals: [{name: torch, command: [python3, rival.py]}]\n"},
		{goodCUDA, "source: stage1.cu", "source: stage1.cu, lesson: none was learnt, description: first"},
		{goodCUDA, "variants:\n", "variants:\n  stage3: {source: stage3.cu}\n"},
		{goodCPU, "source: sdpa.c\n", "source: b.c\n"},
		{goodCPU, "source: sdpa.c\n", "source: sdpa.c\nsources: ['*.c']\n"},
		{goodCPU, "entry: sdpa_fp8", "entry: sdpa2"},
		{goodCUDA, "arch: [sm_89, sm_90]", "arch: [sm_90]"},
		{goodCPU, "flags: [-O2]", "flags: [-O3]"},
		{goodCUDA, "block: [128]", "block: [256]"},
		{goodDevice, "limits: {D: 64, causal: 0}", "limits: {D: 64, causal: 0, S: 1..64}"},
		{goodCUDA, "default_variant: stage2", "default_variant: stage1"},
		{goodCUDA, "default: 64", "default: 32"},
	} {
		text := strings.Replace(e.base, e.old, e.new, 1)
		if text == e.base {
			t.Fatalf("%q is not in the manifest", e.old)
		}
		if list := Compare(parsed(t, e.base), parsed(t, text)); len(list) > 0 {
			t.Errorf("%q: %v", e.new, list)
		}
	}
}

// A variant that somebody else counts on, such as a policy's baseline, is told with all
// that it is built and launched by.
func TestCompareNamedVariant(t *testing.T) {
	for _, e := range []struct{ old, new string }{
		{"source: stage1.cu", "source: slow.cu"},
		{"block: [128]", "block: [32]"},
		{"flags: [-O3", "flags: [-O0"},
		{"  stage1: {source: stage1.cu}\n", ""},
	} {
		text := strings.Replace(goodCUDA, e.old, e.new, 1)
		if text == goodCUDA {
			t.Fatalf("%q is not in the manifest", e.old)
		}
		if list := Compare(parsed(t, goodCUDA), parsed(t, text), "stage1"); len(list) != 1 || list[0].Path != "variants.stage1" || !list.Loosens() {
			t.Errorf("%q: %v", e.new, list)
		}
		if list := Compare(parsed(t, goodCUDA), parsed(t, goodCUDA), "stage1", "no_such"); len(list) > 0 {
			t.Errorf("a manifest differs from itself: %v", list)
		}
	}
}

// Which shape comes first decides what secret shapes are like.
func TestCompareOrderOfShapes(t *testing.T) {
	const small, mission = "  small: {B: 1, H: 1, S: 32, D: 64}\n", "  mission: {B: 1, H: 2, S: 96, D: 64}\n"
	swapped := strings.Replace(goodCPU, small+mission, mission+small, 1)
	if list := Compare(parsed(t, goodCPU), parsed(t, swapped)); len(list) != 1 || !list.Loosens() {
		t.Errorf("the other shape comes first: %+v", list)
	}
}

func parsed(t testing.TB, text string) *Manifest {
	t.Helper()
	m, err := Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
