package cuda

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"

	"gonum.org/v1/gonum/stat/distuv"
)

// loops is a kernel whose time is its number of loops. The tag changes the
// machine code, but nothing that runs.
func loops(n, tag int) string {
	body := strings.Replace(baselineBody, "k < 400", fmt.Sprintf("k < %d", n), 1)
	return around(body + fmt.Sprintf("\n    if (N < 0) y[0] = %d;", tag))
}

// within is a policy that asks for a speedup on a small problem.
func within(t *testing.T, goal string) string {
	t.Helper()
	return `version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 0.1%"}
  performance:
    ` + goal + `
    rounds: {min: 6, max: 20}
    pairs: 20
    control: 2%
    solo_shift: 5%
rules:
  - name: default
`
}

// accuracy is what the gate is worth on a GPU. Runs of several sessions add up.
type accuracy struct {
	Device string              `json:"device"`
	Driver string              `json:"driver"`
	Kinds  map[string]*figures `json:"kinds"`
}

// figures are of runs of one kind.
type figures struct {
	Runs             int         `json:"runs"`
	Right            int         `json:"right"`
	Speedups         []float64   `json:"speedups"`
	P50Micros        []float64   `json:"p50_us"`
	Rounds           []int       `json:"rounds"`
	Seconds          []float64   `json:"seconds"`           // of a whole run
	MeasuringSeconds []float64   `json:"measuring_seconds"` // of its rounds
	Controls         [][]float64 `json:"controls"`          // by run and round: the baseline over its copy, the median of pairs
}

// A small problem that computes for long: some 80 µs a launch.
const work = 20_000

// kinds are what is tried, with how often it is to be tried in all.
var kinds = []struct {
	name  string
	want  int
	share int // of a turn
	loops int // of the candidate; the baseline has work
	goals []string
	right func([]*gates.Verdict) bool
}{
	{"equal, ±2 %", 200, 4, work, []string{`guard: {shapes: [mission], speedup: ">= -2%"}`, `target: {shapes: [mission], speedup: ">= +2%"}`}, neither},
	{"equal, ±1 %", 40, 2, work, []string{`guard: {shapes: [mission], speedup: ">= -1%"}`, `target: {shapes: [mission], speedup: ">= +1%"}`}, neither},
	{"1 % more work, −0.5 %", 20, 1, work * 101 / 100, []string{`guard: {shapes: [mission], speedup: ">= -0.5%"}`}, func(v []*gates.Verdict) bool {
		return v[0].Outcome == gates.Defer && v[0].Reason == gates.ReasonRegression
	}},
	{"equal, ±2 %, confirmed by lone launches", 60, 3, work, []string{`guard: {shapes: [mission], speedup: ">= -2%"}`, `target: {shapes: [mission], speedup: ">= +2%"}`}, neither},
	{"3 % more work, −2 %, confirmed by lone launches", 20, 1, work * 103 / 100, []string{`guard: {shapes: [mission], speedup: ">= -2%"}`}, func(v []*gates.Verdict) bool {
		return v[0].Outcome == gates.Defer && v[0].Reason == gates.ReasonRegression
	}},
}

// neither slower nor faster by the rule.
func neither(v []*gates.Verdict) bool {
	return v[0].Outcome == gates.Pass && v[1].Outcome == gates.Defer && v[1].Reason == gates.ReasonTooSlow
}

// What the gate is worth on this GPU: no false verdict for equal kernels under
// ±2 % and ±1 % rules, and a kernel that does 1 % more work found every time. It
// takes minutes and is asked for with KERNELGATE_GPU_LONG, which names a folder
// for the figures and the kernel's source; it ends by itself after
// KERNELGATE_GPU_SECONDS, and adds to the figures that it finds there.
func TestAccuracyOnGPU(t *testing.T) {
	folder := os.Getenv("KERNELGATE_GPU_LONG")
	if folder == "" {
		t.Skip("set KERNELGATE_GPU_LONG=FOLDER to measure the gate's accuracy for some minutes")
	}
	needsGPU(t)
	needsCompiler(t)
	seconds, err := strconv.Atoi(cmp.Or(os.Getenv("KERNELGATE_GPU_SECONDS"), "3600"))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Duration(seconds) * time.Second)
	file := filepath.Join(folder, "accuracy.json")
	all := accuracy{Kinds: map[string]*figures{}}
	if had, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(had, &all); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.Replace(string(text), "mission: {N: 1000000}", "mission: {N: 65536}", 1)
	if err := os.WriteFile(filepath.Join(folder, "loops.cu"), []byte(loops(work, 0)), 0o644); err != nil {
		t.Fatal(err)
	}
	for turn := 0; time.Now().Before(deadline); turn++ {
		missing := 0
		for _, k := range kinds {
			f := all.Kinds[k.name]
			if f == nil {
				f = &figures{}
				all.Kinds[k.name] = f
			}
			for n := 0; n < k.share && f.Runs < k.want && time.Now().Before(deadline); n++ {
				start := time.Now()
				e, v := trial{manifest: manifest, policy: within(t, k.goals[0]), baseline: loops(work, 0), candidate: loops(k.loops, 1+(turn+n)%5)}.gather(t)
				verdicts := []*gates.Verdict{v}
				for _, goal := range k.goals[1:] {
					p, err := policy.Parse("other.yaml", []byte(within(t, goal)))
					if err != nil {
						t.Fatal(err)
					}
					verdicts = append(verdicts, gates.Judge(p, "other.yaml", e))
				}
				if !f.add(e, verdicts, k.right(verdicts), time.Since(start)) {
					t.Errorf("%s: %s (%s): %s", k.name, v.Outcome, v.Reason, v.Summary)
				}
				all.Device, all.Driver = e.Device.Name, e.Device.Driver
				// Written after every run: a session on a borrowed GPU may end at any time.
				out, err := json.Marshal(all)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, append(out, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			missing += k.want - f.Runs
		}
		if missing == 0 {
			break
		}
	}
	below, series := 0, 0
	for _, k := range kinds {
		f := all.Kinds[k.name]
		d := stats.Describe(f.P50Micros)
		t.Logf("%s: %d of %d right; %.1f s a run, of which %.1f s in rounds; p50 %.3f µs with a spread of %.3f %%", k.name, f.Right, f.Runs,
			stats.Describe(f.Seconds).P50, stats.Describe(f.MeasuringSeconds).P50, d.P50, 100*math.Abs(d.CV))
		for _, c := range f.Controls {
			series++
			if differs(c) {
				below++
			}
		}
	}
	t.Logf("%s: %d of %d A/A controls differ from 1 at 5 %%", all.Device, below, series)
}

func (f *figures) add(e *gates.Evidence, v []*gates.Verdict, right bool, took time.Duration) bool {
	f.Runs++
	if right {
		f.Right++
	}
	f.Seconds = append(f.Seconds, took.Seconds())
	if e.Performance == nil || len(v[0].Comparisons) == 0 {
		return right
	}
	f.Speedups = append(f.Speedups, v[0].Comparisons[0].Speedup.Value)
	f.P50Micros = append(f.P50Micros, v[0].Comparisons[0].Candidate.P50)
	f.Rounds = append(f.Rounds, len(e.Performance.Rounds))
	f.MeasuringSeconds = append(f.MeasuringSeconds, e.Performance.Seconds)
	var controls []float64
	for _, r := range e.Performance.Rounds {
		var ratios []float64
		for block := range strings.FieldsSeq(r.Series[0].Order) {
			sum := map[rune]float64{}
			for i, side := range block {
				sum[side] += r.Series[0].Nanos[len(ratios)*len(block)+i]
			}
			ratios = append(ratios, sum[gates.SideBaseline]/sum[gates.SideControl])
		}
		controls = append(controls, stats.Describe(ratios).P50)
	}
	f.Controls = append(f.Controls, controls)
	return right
}

// differs tells whether rounds say at 5 % that the mean is not 1, by Student's t.
func differs(rounds []float64) bool {
	d := stats.Describe(rounds)
	n := float64(d.N)
	t := math.Abs(d.Mean-1) / (d.Std / math.Sqrt(n))
	return t > distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975)
}
