package sdpatest

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// kindLoss is how much slower than stage6_fp8 a chosen variant may be on one kind of input: what the guards of choose.yaml
// allow.
const kindLoss = 1.02

// A kindTime is the median time of both sides on one kind of input, in microseconds.
type kindTime struct{ baseline, candidate float64 }

// kindTimes computes the times of recorded evidence by shape and kind of input, over all rounds. Shapes that were drawn for
// the run are left out.
func kindTimes(e *gates.Evidence) map[string]map[string]kindTime {
	samples := map[string]map[string]map[rune][]float64{}
	for _, round := range e.Performance.Rounds {
		for _, s := range round.Series {
			if len(s.Distributions) == 0 {
				continue
			}
			at, block := 0, 0
			for _, side := range s.Order {
				if side == ' ' {
					block++
					continue
				}
				kind := s.Distributions[block%len(s.Distributions)]
				if samples[s.Shape] == nil {
					samples[s.Shape] = map[string]map[rune][]float64{}
				}
				if samples[s.Shape][kind] == nil {
					samples[s.Shape][kind] = map[rune][]float64{}
				}
				if !slices.Contains(s.Disturbed, at) {
					samples[s.Shape][kind][side] = append(samples[s.Shape][kind][side], s.Nanos[at]/1000)
				}
				at++
			}
		}
	}
	all := map[string]map[string]kindTime{}
	for shape, kinds := range samples {
		if slices.ContainsFunc(e.Shapes, func(s gates.Shape) bool { return s.Name == shape && s.Secret }) {
			continue
		}
		all[shape] = map[string]kindTime{}
		for kind, sides := range kinds {
			all[shape][kind] = kindTime{stats.Describe(sides['b']).P50, stats.Describe(sides['c']).P50}
		}
	}
	return all
}

// A pace is how long a variant takes on a shape, as a share of stage6_fp8's time in the same rounds.
type pace struct {
	mean    float64 // the geometric mean over the kinds of input
	slowest float64 // on the kind that it is slowest on
}

// paces are the paces of each variant on one shape.
type paces map[string]pace

// serves tells whether the variant may be chosen: it is no slower than stage6_fp8, whatever the inputs.
func (p pace) serves() bool { return p.mean <= 1 && p.slowest <= kindLoss }

// best is the fastest variant that may be chosen.
func (p paces) best() (variant string, mean float64) {
	mean = math.Inf(1)
	for name, x := range p {
		if x.serves() && (x.mean < mean || x.mean == mean && name < variant) {
			variant, mean = name, x.mean
		}
	}
	return variant, mean
}

// near tells whether the variant may be chosen and is at most 2 % slower than the best one.
func (p paces) near(variant string) bool {
	x, measured := p[variant]
	_, best := p.best()
	return measured && x.serves() && x.mean <= best*nearest
}

// measured reads the recorded times of single variants (evidence/tune) by shape. Shapes that no gate has timed have those of the
// sweep.
func measured(t *testing.T, points []sweptPoint) map[string]paces {
	t.Helper()
	files, err := filepath.Glob(folder + "evidence/tune/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no evidence of single variants", err)
	}
	all := map[string]paces{}
	for _, file := range files {
		e := readEvidence(t, file)
		if e.Provenance.Base.Variant != "stage6_fp8" || e.Device.Name != "NVIDIA H200" {
			t.Fatalf("%s compares with %s on %s", file, e.Provenance.Base.Variant, e.Device.Name)
		}
		for shape, kinds := range kindTimes(e) {
			if len(kinds) != 5 {
				t.Fatalf("%s timed %s on %d kinds of input", file, shape, len(kinds))
			}
			logs, slowest := 0.0, 0.0
			for _, x := range kinds {
				logs += math.Log(x.candidate / x.baseline)
				slowest = max(slowest, x.candidate/x.baseline)
			}
			if all[shape] == nil {
				all[shape] = paces{"stage6_fp8": {1, 1}}
			}
			all[shape][e.Provenance.Head.Variant] = pace{math.Exp(logs / float64(len(kinds))), slowest}
		}
	}
	m, _ := readManifest(t)
	for _, s := range m.Shapes {
		for _, p := range points {
			if all[s.Name] == nil && slices.Equal(p.dims, s.Dims) {
				all[s.Name] = p.paces
			}
		}
	}
	return all
}

func readEvidence(t *testing.T, file string) *gates.Evidence {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
