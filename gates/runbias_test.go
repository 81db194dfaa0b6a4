package gates

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// The recorded A/A controls, each as if it were the candidate of a run in which
// another run's control on the same shape was seen: the intervals hold the truth, which
// is 1, and the p-values are those of no effect. Without the offset of whole runs they
// do not.
func TestRecordedControls(t *testing.T) {
	draws := newResamplePlan(stats.DefaultResamples)
	controls := recordedControls(t)
	if len(controls) < 100 {
		t.Fatalf("only %d controls are recorded", len(controls))
	}
	byShape := map[string][]*stats.Distribution{}
	for _, c := range controls {
		byShape[c.shape] = append(byShape[c.shape], draw(draws, c.sample(), 0.5))
	}
	count := func(shape string, with func(d, other *stats.Distribution) *stats.Distribution) (covered, low float64) {
		n := 0.0
		for name, all := range byShape {
			if shape != "" && name != shape {
				continue
			}
			for i, d := range all {
				weight := 1 / float64(len(all)-1)
				for k, other := range all {
					if k == i {
						continue
					}
					wide := with(d, other)
					n += weight
					if lower, upper := wide.Bounds(0.025); lower <= 1 && 1 <= upper {
						covered += weight
					}
					if 2*min(wide.PAbove(1), wide.PBelow(1)) <= 0.05 {
						low += weight
					}
				}
			}
		}
		return covered / n, low / n
	}
	plain, plainLow := count("", func(d, _ *stats.Distribution) *stats.Distribution { return d })
	seen := func(d, other *stats.Distribution) *stats.Distribution { return d.With(expectedBias.Seen(other)) }
	covered, low := count("", seen)
	// The shortest launches are the ones that are most off.
	small, smallLow := count("small", seen)
	blind, blindLow := count("", func(d, _ *stats.Distribution) *stats.Distribution { return d.With(expectedBias) })
	t.Logf("%d recorded controls: 95 %% intervals hold 1 in %.1f %%, p below 5 %% in %.1f %%; with no control to see %.1f %% and %.1f %%; on small alone %.1f %% and %.1f %%; without the offset %.1f %% and %.1f %%",
		len(controls), 100*covered, 100*low, 100*blind, 100*blindLow, 100*small, 100*smallLow, 100*plain, 100*plainLow)
	if min(covered, blind, small) < 0.93 {
		t.Errorf("the intervals hold the truth in %.3f of the controls, in %.3f with no control to see, in %.3f of those on small; want at least 0.93", covered, blind, small)
	}
	if max(low, blindLow, smallLow) > 0.08 {
		t.Errorf("p is below 5 %% in %.3f of the controls, in %.3f with no control to see, in %.3f of those on small; want at most 0.08", low, blindLow, smallLow)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "statistics.md"))
	if err != nil {
		t.Fatal(err)
	}
	claim := fmt.Sprintf("Over the %d A/A controls recorded on an H200 the 95 %% interval holds the truth in %.0f %%; without that part it would be %.0f %%.", len(controls), 100*covered, 100*plain)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), claim) {
		t.Errorf("docs/statistics.md does not say: %s", claim)
	}
	if plain > 0.9 {
		t.Errorf("without the offset %.3f are covered: it is not in these records", plain)
	}
}

// controlsApart is every A/A control that was recorded with each side in a process of
// its own.
func controlsApart(t *testing.T) []stats.Sample {
	t.Helper()
	var all []stats.Sample
	files, err := filepath.Glob(filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		e := readEvidence(t, file)
		if e.Performance == nil {
			continue
		}
		for _, shape := range e.Shapes {
			if s := collect(e.Performance.Rounds, shape.Name, clean); s.fresh && len(s.control.Rounds) > 0 {
				all = append(all, s.control)
			}
		}
	}
	folder := filepath.Join("..", "runners", "backend", "cuda", "testdata", "h200")
	var first struct {
		Controls [][]float64 `json:"controls"`
	}
	var runs struct {
		Kinds map[string]struct {
			Controls [][]float64 `json:"controls"`
		} `json:"kinds"`
	}
	for name, into := range map[string]any{"controls.json": &first, "accuracy.json": &runs} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lists := first.Controls
	for _, k := range slices.Sorted(maps.Keys(runs.Kinds)) {
		lists = append(lists, runs.Kinds[k].Controls...)
	}
	for _, medians := range lists {
		var s stats.Sample
		for _, m := range medians {
			s.Rounds = append(s.Rounds, []float64{m})
		}
		all = append(all, s)
	}
	return all
}

// With each side in a process of its own, at places that differ from round to round,
// the controls are those of no effect already; the little offset that is still
// expected leaves the intervals on the safe side.
func TestControlsApart(t *testing.T) {
	controls := controlsApart(t)
	if len(controls) < 120 {
		t.Fatalf("only %d controls are recorded", len(controls))
	}
	draws := newResamplePlan(stats.DefaultResamples)
	low, covered := 0.0, 0.0
	for _, c := range controls {
		d := draw(draws, c, 0.5)
		if 2*min(d.PAbove(1), d.PBelow(1)) <= 0.05 {
			low++
		}
		if lower, upper := d.With(separateBias).Bounds(0.025); lower <= 1 && 1 <= upper {
			covered++
		}
	}
	n := float64(len(controls))
	t.Logf("%d controls apart: p below 5 %% in %.1f %%, intervals hold 1 in %.1f %%", len(controls), 100*low/n, 100*covered/n)
	if low/n > 0.08 || covered/n < 0.93 {
		t.Errorf("p is below 5 %% in %.3f (want at most 0.08), intervals hold 1 in %.3f (want at least 0.93)", low/n, covered/n)
	}
}

// An offset of the whole run does not shrink with the rounds.
func TestOffsetDoesNotShrink(t *testing.T) {
	for _, rounds := range []int{6, 20, 200} {
		sample := simulate.Noise{Between: 1e-5, Within: 1e-5}.Ratios(newRand(1, 1), 1.2, rounds, 10)
		d := draw(newResamplePlan(stats.MinResamples), sample, 0.5).With(expectedBias)
		lower, _ := d.Bounds(0.00375)
		if reach := math.Log(d.Estimate / lower); reach < 2*expectedBias.Scale {
			t.Errorf("after %d rounds the bound is %.5f below the estimate, for an offset of %v", rounds, reach, expectedBias.Scale)
		}
	}
}

// A baseline that is itself 1.9 % slow in every round lets its candidate look that
// much better. The control shows it, and what it shows widens the interval.
func TestControlWidens(t *testing.T) {
	slow := func(_, _ int, side rune, ns float64) float64 {
		if side == SideBaseline {
			return ns * 1.019
		}
		return ns
	}
	for seed := range uint64(20) {
		m := quiet(1.09)
		m.alter = slow
		if v := judged(t, gate10, m.measured(newRand(5, seed), 20)); v.Outcome == Pass {
			t.Fatalf("a true +9 %% passes a +10 %% gate: %s", v.Summary)
		}
	}
	v := judged(t, gate10, quiet(1.14).measured(newRand(5, 5), 20))
	expect(t, v, Pass, "", "Proven")
}
