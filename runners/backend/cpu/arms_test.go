package cpu

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

const armsManifest = `version: 1
name: scale
mode: cpu
entry: scale
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.0001}
shapes: {small: {N: 2000}, mission: {N: 9000}}
limits: {N: 1..10000}
flags: [-O1]
toggles: {TIMES: {values: [1, 2, 8, 200], default: 8, layer: micro}, WRONG: {values: [0, 1, 2, 3], default: 0, layer: micro}}
variants:
  only: {source: scale.c}
`

// armsSource does its work TIMES times. WRONG=1 gives a wrong result, 2 crashes, and 3 does not compile.
const armsSource = `#include <stdint.h>
#if WRONG == 3
#error no
#endif
void scale(const float *x, float *y, int32_t N) {
  for (volatile int t = 0; t < TIMES; t++)
    for (int i = 0; i < N; i++) y[i] = (WRONG == 1 ? 3 : 2) * x[i];
  if (WRONG == 2) *(volatile int *)0 = 1;
}
`

// TestArms times candidates next to the baseline: they are in the order of their work, a wrong one is named, and one that crashes
// costs the others nothing.
func TestArms(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(armsManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte("version: 1\ngates:\n  performance: {target: {shapes: all, speedup: \">= +10%\"}, pairs: 20}\n  correctness: {seeds: [0], norm_error: \"<= 1%\"}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := sourceFolder(t, map[string]string{"scale.c": armsSource, "reference.c": "void reference(void) {}\n"})
	side := func(variant string) runners.Side { return runners.Side{Dir: dir, Variant: variant} }
	base := side("only")
	w := newWorker(t, runners.Job{Manifest: m, Policy: p, Trusted: dir, Baseline: &base, Candidate: base}, Config{Scratch: t.TempDir(), Seed: 5, Getenv: os.Getenv})
	if b, err := w.Build(t.Context(), runners.Baseline, base); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	names := []string{"only,TIMES=2", "only,TIMES=1", "only,TIMES=200", "only,WRONG=1", "only,WRONG=2"}
	scratch := t.TempDir()
	var group sync.WaitGroup
	for i, name := range append(slices.Clone(names), "only,WRONG=3") {
		group.Go(func() {
			b, err := w.BuildArm(t.Context(), name, side(name), filepath.Join(scratch, string(rune('a'+i))))
			if err != nil || b.OK != (name != "only,WRONG=3") {
				t.Errorf("%s: %v, %v %s", name, err, b.OK, b.Error)
			}
		})
	}
	group.Wait()
	found, err := w.TimeArms(t.Context(), names, m.Shapes, 5)
	if err != nil {
		t.Fatal(err)
	}
	ratio := func(i int, shape string) float64 {
		s := found[i].Shapes[shape]
		if len(s.Ratios) == 0 || !(s.Micros > 0) {
			t.Fatalf("%s on %s: %+v", names[i], shape, s)
		}
		sorted := slices.Sorted(slices.Values(s.Ratios))
		return sorted[len(sorted)/2]
	}
	for _, shape := range m.Shapes {
		// Twice the work takes about twice the time; a busy machine stretches both.
		if two, one, many := ratio(0, shape.Name), ratio(1, shape.Name), ratio(2, shape.Name); !(one > two && two > 1.5 && many < 0.5) {
			t.Errorf("%s: 8 times the work is %.2f of once, %.2f of twice and %.2f of 200 times", shape.Name, one, two, many)
		}
		if same := ratio(3, shape.Name); math.Abs(math.Log(same)) > 1 {
			t.Errorf("%s: equal work gives the ratio %.2f", shape.Name, same)
		}
	}
	if n := len(found[2].Shapes["mission"].Ratios); n != 1 {
		t.Errorf("a candidate that is 25 times slower was timed %d times", n)
	}
	for i, want := range []bool{false, false, false, true, false} {
		if found[i].Differs != want {
			t.Errorf("%s differs: %v", names[i], found[i].Differs)
		}
	}
	if f := found[4].Failure; f == nil || f.Kind != gates.FailureCrash {
		t.Errorf("the one that crashes: %+v", f)
	}
	w.DropArm(names[0])
	if _, err := w.TimeArms(t.Context(), names[:1], m.Shapes, 1); err == nil {
		t.Error("a candidate was timed that is not there any more")
	}
}

// TestOneSlowLaunchDropsNoCandidate scripts the first two launches of the baseline and of a candidate.
func TestOneSlowLaunchDropsNoCandidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		base, arm []float64
		hopeless  bool
	}{
		{"a candidate that was disturbed", []float64{10, 10}, []float64{90, 9}, false},
		{"a baseline that was disturbed", []float64{100, 10}, []float64{90, 90}, true},
		{"a slow candidate", []float64{10, 10}, []float64{90, 80}, true},
		{"a slow candidate, and a baseline that was disturbed the second time", []float64{10, 90}, []float64{90, 80}, true},
		{"a fast candidate", []float64{10, 10}, []float64{9}, false},
	} {
		base, arm := &runningArm{times: c.base[:1]}, &runningArm{times: c.arm[:1]}
		again := map[*runningArm][]float64{base: c.base[1:], arm: c.arm[1:]}
		err := dropHopeless(base, []*runningArm{arm}, func(a *runningArm) error {
			a.times, again[a] = append(a.times, again[a][0]), again[a][1:]
			return nil
		})
		if err != nil || arm.done != c.hopeless || base.done || len(base.times) > 0 || len(arm.times) > 1 {
			t.Errorf("%s: left out: %v, %v, %v, %v", c.name, arm.done, base.times, arm.times, err)
		}
	}
}
