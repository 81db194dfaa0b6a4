package gates

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A machine makes the samples of a run whose truth is known: baseline, candidate and
// control alternate in mirrored blocks of random order.
type machine struct {
	model  noiseModel
	ratio  float64 // baseline/candidate, the truth
	blocks int
	tick   float64 // of the clock, as a share of the baseline's time; 0 for a fine one
	// alter changes a sample after it was drawn; nil for none.
	alter func(round, block int, side rune, ns float64) float64
}

const simulatedNanos = simulate.Nanos

// run starts a run: every call measures one more round.
func (m machine) run(rng *rand.Rand) func() Round {
	next := simulate.Machine{Model: m.model, Ratio: m.ratio, Blocks: m.blocks, Tick: m.tick, Alter: m.alter}.Start(rng)
	return func() Round {
		made := next()
		s := Series{Shape: "mission", Batch: 1, Verified: m.blocks, Worst: &Errors{Elements: 100, Norm: 1e-4}, Order: made.Order, Nanos: made.Nanos}
		return Round{Attempt: 1, Series: []Series{s}}
	}
}

// measured is evidence with the rounds of a run.
func (m machine) measured(rng *rand.Rand, n int) *Evidence {
	e := evidence("mission")
	e.Performance = &Performance{}
	for next := m.run(rng); len(e.Performance.Rounds) < n; {
		e.Performance.Rounds = append(e.Performance.Rounds, next())
	}
	return e
}

// quickResamples are fewer: over many runs their noise averages out. One simulation after the other may share them.
func quickResamples() *resamples { return newResamples(stats.MinResamples) }

// judgeQuickly is Judge with fewer resamples.
func judgeQuickly(p *policy.Policy, e *Evidence) *Verdict {
	return judge(p, "test.yaml", e, quickResamples())
}

// A control is a recorded A/A series: the log ratios of its blocks, by round.
type control struct {
	file, shape string
	rounds      [][]float64
}

// recordedControls is every A/A control of the evidence that was committed when the
// sides of a round shared one process, with the offset that this brings.
func recordedControls(t testing.TB) []control {
	t.Helper()
	var controls []control
	for _, pattern := range []string{filepath.Join("testdata", "together", "*.json"), filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "all", "*.json")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			e := readEvidence(t, file)
			if e.Performance == nil {
				continue
			}
			for _, shape := range e.Shapes {
				s := collect(e.Performance.Rounds, shape.Name, clean)
				if len(s.control.Rounds) == 0 {
					continue
				}
				c := control{file: file, shape: shape.Name}
				for _, round := range s.control.Rounds {
					var logs []float64
					for _, ratio := range round {
						logs = append(logs, math.Log(ratio))
					}
					c.rounds = append(c.rounds, logs)
				}
				controls = append(controls, c)
			}
		}
	}
	return controls
}

// sample is the control as the ratios that it was measured as.
func (c control) sample() stats.Sample {
	var s stats.Sample
	for _, round := range c.rounds {
		var ratios []float64
		for _, x := range round {
			ratios = append(ratios, math.Exp(x))
		}
		s.Rounds = append(s.Rounds, ratios)
	}
	return s
}

// recordedModels is the noise of the recorded controls, once with the runs' offsets
// taken out and once with them.
func recordedModels(t testing.TB) []noiseModel {
	t.Helper()
	var records []recordedControl
	for _, c := range recordedControls(t) {
		record, ok := simulate.NewRecordedControl(c.shape, c.sample())
		if !ok {
			t.Fatalf("%s: too few ratios on %s", c.file, c.shape)
		}
		records = append(records, record)
	}
	return []noiseModel{
		simulate.Recorded("recorded on an H200", records, false),
		simulate.Recorded("recorded, with the offsets of whole runs", records, true),
	}
}

// recordedSeries is every series of the committed evidence.
func recordedSeries(t testing.TB) []Series {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "all", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Series
	for _, file := range append(files, more...) {
		if p := readEvidence(t, file).Performance; p != nil {
			for _, r := range p.Rounds {
				all = append(all, r.Series...)
			}
		}
	}
	if len(all) < 500 {
		t.Fatalf("%d series", len(all))
	}
	return all
}

// quiet is a machine with hardly any noise: what a test puts on top of it decides.
func quiet(ratio float64) machine {
	return machine{model: noiseModel{Name: "quiet", Run: func(rng *rand.Rand) func(int) drawFactor {
		return func(int) drawFactor {
			round := 0.0005 * rng.NormFloat64()
			return func(side rune, _ int) float64 {
				x := 0.002 * rng.NormFloat64()
				if side == SideCandidate {
					x += round
				}
				return x
			}
		}
	}}, ratio: ratio, blocks: 20}
}

func newRand(a, b uint64) *rand.Rand { return rand.New(rand.NewPCG(a, b)) }

func judged(t testing.TB, performance string, e *Evidence) *Verdict {
	t.Helper()
	return Judge(performancePolicy(t, performance), "test.yaml", e)
}

const gate10 = `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}`

func expect(t *testing.T, v *Verdict, outcome Outcome, reason Reason, says string) {
	t.Helper()
	if v.Outcome != outcome || v.Reason != reason || !strings.Contains(v.Summary, says) {
		t.Errorf("got %s (%s): %q\nwant %s (%s): …%q…", v.Outcome, v.Reason, v.Summary, outcome, reason, says)
	}
}

// heavy is noise of 1 % between processes and 2 % within them.
var heavy = noiseModel{Name: "heavy", Run: func(rng *rand.Rand) func(int) drawFactor {
	return func(int) drawFactor {
		level := map[rune]float64{SideBaseline: 0.007 * rng.NormFloat64(), SideCandidate: 0.007 * rng.NormFloat64(), SideControl: 0.007 * rng.NormFloat64()}
		return func(side rune, _ int) float64 { return level[side] + 0.02*rng.NormFloat64() }
	}
}}
