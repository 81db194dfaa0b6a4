package gates

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestVerdictsInFull compares every row of a verdict's tables with a golden file: a figure that is computed and shown nowhere else
// cannot change unseen. `go test ./gates -run TestVerdictsInFull -update` rewrites the file. A row that equals one of the first
// verdict is "as above" in the others.
func TestVerdictsInFull(t *testing.T) {
	var got bytes.Buffer
	first := map[string]bool{}
	for i, c := range goldenCases() {
		lines := func(name string, rows any) {
			list := reflect.ValueOf(rows)
			for k := range list.Len() {
				data, err := json.Marshal(list.Index(k).Interface())
				if err != nil {
					t.Fatal(err)
				}
				line := fmt.Sprintf("%s %s", name, data)
				if i == 0 {
					first[line] = true
				} else if first[line] {
					line = name + " as above"
				}
				fmt.Fprintln(&got, line)
			}
		}
		policy := c.policy
		if policy == "" {
			policy = fullPolicy
		}
		e := sanitized()
		c.change(e)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if e, err = ParseEvidence("e.json", data); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p := parsePolicy(t, policy)
		v := judgeQuickly(p, e)
		if strings.HasPrefix(c.name, "not decided") && v.Reason != ReasonInconclusive {
			t.Errorf("%s: %s", c.name, v.Summary)
		}
		fmt.Fprintf(&got, "# %s\n%s (%s): %s\n", c.name, v.Outcome, v.Reason, v.Summary)
		lines("gate", v.Gates)
		lines("resource", v.Resources)
		lines("case", v.Correctness)
		lines("sanitizer", v.Sanitizers)
		lines("shape", v.Comparisons)
		lines("metric", v.Profile)
		lines("measuring", []*Measuring{v.Measuring})
		lines("finding", v.Findings)
		lines("to pass", v.ToPass)
		lines("note", v.Notes)
		lines("wrong", e.Wrong(p.Rules[0].Gates.Correctness))
		if blocks, limit, ok := e.Candidate.Occupancy(e.Candidate.Arch); ok {
			fmt.Fprintf(&got, "occupancy %d by %s\n", blocks, limit)
		}
		lines("next", []Need{next(p, e, quickResamples())})
	}
	file := filepath.Join("testdata", "verdicts.golden")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	is, was := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	section := ""
	for i := range max(len(is), len(was)) {
		if i < len(was) && strings.HasPrefix(was[i], "# ") {
			section = was[i]
		}
		if i >= len(is) || i >= len(was) || is[i] != was[i] {
			t.Fatalf("%s:%d, %s (-update rewrites it)\ngot  %s\nwant %s", file, i+1, section, lineOr(is, i), lineOr(was, i))
		}
	}
}

// lineOr is the i-th line, where there is one.
func lineOr(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

type goldenCase struct {
	name, policy string
	change       func(*Evidence)
}

func goldenCases() []goldenCase {
	sanitizing := strings.Replace(fullPolicy, "  performance:", "  sanitize: {shapes: [small], tools: [memcheck, racecheck]}\n  performance:", 1)
	unlimited := regexp.MustCompile(`(?m)^  ptxas:\n(    .*\n)+`).ReplaceAllString(fullPolicy, "  ptxas: {}\n")
	profiled := strings.Replace(fullPolicy, "    required: false\n", "", 1)
	metric := func(name string, step int, value float64) Metric {
		return Metric{Shape: "mission", Name: name, Value: value, Unit: "%", Step: step, Kernel: fmt.Sprintf("k%d", step)}
	}
	measured := func(m machine, rounds int) func(*Evidence) {
		return func(e *Evidence) {
			e.Performance = m.measured(newRand(3, 3), rounds).Performance
			e.Performance.Seconds = 12.5
			e.Shapes = e.Shapes[:1]
		}
	}
	return []goldenCase{
		{"everything as asked", sanitizing, func(*Evidence) {}},
		{"a table of cases", "", func(e *Evidence) {
			for seed := range uint64(3) {
				k := e.Correctness.Cases[0]
				k.Seed = seed + 1
				k.Errors = &Errors{Elements: 1000, MaxAbs: 0.01 * float64(seed+1), MeanAbs: 0.001 * float64(3-seed), Norm: 0.002 * float64(seed), Bad: 0}
				k.EndToEnd = &Errors{Elements: 1000, MaxAbs: 0.03 * float64(3-seed), Bad: int(seed)}
				k.Baseline = &Errors{Elements: 1000, Norm: 0.0005 * float64(seed+1)}
				k.Deterministic, k.BitParity = some(seed != 9), some(seed == 1)
				e.Correctness.Cases = append(e.Correctness.Cases, k)
			}
		}},
		{"less precise, and too little to tell", "", func(e *Evidence) {
			e.Correctness.Cases[0].Errors.Norm, e.Correctness.Cases[0].Baseline = 0.9e-4, &Errors{Elements: 1000, Norm: 1e-5}
			e.Correctness.Cases[1].Errors.Norm, e.Correctness.Cases[1].Baseline = 2e-3, &Errors{Elements: 1000, Norm: 1e-3}
		}},
		{"some cases wrong, one of them before", "", func(e *Evidence) {
			for i := range 3 {
				k := e.Correctness.Cases[0]
				k.Seed, k.Errors = uint64(i+1), &Errors{Elements: 1000, NaN: i, Bad: 5 * i}
				if i == 2 {
					k.Baseline = &Errors{Elements: 1000, NaN: 1}
				}
				e.Correctness.Cases = append(e.Correctness.Cases, k)
			}
		}},
		{"one infinite element", "", func(e *Evidence) { e.Correctness.Cases[1].Errors.Inf = 1 }},
		{"one unwritten element", "", func(e *Evidence) { e.Correctness.Cases[1].Errors.Unwritten = 1 }},
		{"several kernels", "", func(e *Evidence) {
			from := several([]KernelUse{use("split", 10, 64, 1024, 0), use("old", 30, 40, 0, 0)}, []KernelUse{use("split", 11, 72, 2048, 0), use("combine", 50, 32, 512, 0)})
			e.Baseline, e.Candidate = from.Baseline, from.Candidate
			e.Candidate.Resources.Scratch = some(4096)
			e.Candidate.Resources.Globals, e.Candidate.Resources.Warnings = []string{"state"}, []string{"careful"}
		}},
		{"several kernels, over budget", "", func(e *Evidence) {
			from := several([]KernelUse{use("split", 10, 64, 1024, 0)}, []KernelUse{use("split", 11, 140, 2048, 8), use("combine", 50, 32, 512, 0), use("third", 60, 32, 512, 0), use("fourth", 70, 32, 512, 0)})
			e.Baseline, e.Candidate = from.Baseline, from.Candidate
			e.Baseline.Resources.Scratch = some(8)
		}},
		{"four kernels within budget", "", func(e *Evidence) {
			all := []KernelUse{use("a", 1, 64, 1024, 0), use("b", 2, 72, 0, 0), use("c", 3, 32, 0, 0), use("d", 4, 32, 0, 0)}
			from := several(all, all)
			e.Baseline, e.Candidate = from.Baseline, from.Candidate
		}},
		{"a processor's figures", unlimited, func(e *Evidence) {
			e.Candidate.Resources = &Resources{Stack: some(64), CodeSize: some(4096)}
		}},
		{"a processor's kernel that keeps state", unlimited, func(e *Evidence) {
			e.Mode, e.Candidate.Resources = "cpu", &Resources{Stack: some(64), CodeSize: some(4096), Globals: []string{"once (4 B)"}}
		}},
		{"a profile that fails", profiled, func(e *Evidence) { e.Profile.Metrics[0].Value = 10 }},
		{"a profile of which none of any holds", profiled, func(e *Evidence) { e.Profile.Metrics[1].Value, e.Profile.Metrics[2].Value = 80, 90 }},
		{"a profile that lacks a counter of all", profiled, func(e *Evidence) { e.Profile.Metrics = e.Profile.Metrics[1:] }},
		{"a profile that lacks a counter of any", profiled, func(e *Evidence) { e.Profile.Metrics = e.Profile.Metrics[:2] }},
		{"a profile with one of any", profiled, func(e *Evidence) { e.Profile.Metrics = append(e.Profile.Metrics[:1], e.Profile.Metrics[2]) }},
		{"a profile that was skipped", profiled, func(e *Evidence) { e.Profile = &Profile{Skipped: "no permission"} }},
		{"no profile", profiled, func(e *Evidence) { e.Profile = nil }},
		{"a profile of several kernels", profiled, func(e *Evidence) {
			e.Profile.Metrics = []Metric{
				metric(MetricDuration, 1, 10), metric(MetricDuration, 2, 30),
				metric("sm__throughput.avg", 1, 20), metric("sm__throughput.avg", 2, 80),
				metric("dram__throughput.avg", 1, 70), metric("dram__throughput.avg", 2, 10),
				metric("lts__throughput.avg", 1, 90), metric("lts__throughput.avg", 2, 90),
			}
		}},
		{"a profile of several kernels without their times", profiled, func(e *Evidence) {
			e.Profile.Metrics = []Metric{metric("sm__throughput.avg", 1, 20), metric("sm__throughput.avg", 2, 80)}
		}},

		{"not decided", gatePolicy(gate10), measured(quiet(1.1005), 20)},
		{"not decided, and affordable rounds would decide", gatePolicy(gate10), measured(machine{model: heavy, ratio: 1.115, blocks: 20}, 6)},
		{"not decided when the budget was spent", gatePolicy(gate10), func(e *Evidence) {
			measured(machine{model: heavy, ratio: 1.11, blocks: 20}, 8)(e)
			e.Performance.Exhausted = true
		}},
		{"on the threshold", gatePolicy(gate10), measured(quiet(1.1), 20)},
		{"too slow", gatePolicy(gate10), measured(quiet(1.05), 20)},
		{"slower than the guard allows", gatePolicy(`{guard: {shapes: [mission], speedup: ">= -2%"}, pairs: 20}`), measured(quiet(0.9), 20)},
		{"a second attempt", gatePolicy(gate10), func(e *Evidence) {
			measured(quiet(1.2), 12)(e)
			for i := range e.Performance.Rounds {
				e.Performance.Rounds[i].Attempt = 1 + i/6
			}
		}},
		{"with solo times, marks and kinds of input", gatePolicy(gate10), func(e *Evidence) {
			measured(quiet(1.3), 6)(e)
			for i := range e.Performance.Rounds {
				s := &e.Performance.Rounds[i].Series[0]
				s.Distributions, s.Disturbed, s.Cold, s.Seed = []string{"normal", "zero"}, []int{3, 3, 10}, true, 5
				s.Solo, s.SoloDisturbed = []float64{1e5, 1.01e5, 0.99e5}, 1
			}
		}},
		{"a new kernel", gatePolicy(`{target: {shapes: [mission], speedup: ">= +10%", p50: "<= 95us"}, pairs: 20}`), func(e *Evidence) {
			measured(quiet(1), 6)(e)
			e.Baseline = nil
		}},
		{"a new kernel with a shape that was never timed", gatePolicy(`{target: {shapes: all, p50: "<= 105us"}, pairs: 20}`), func(e *Evidence) {
			measured(quiet(1), 6)(e)
			e.Baseline, e.Shapes = nil, append(e.Shapes, Shape{Name: "small", Dims: "S=2"})
		}},
		{"a new kernel that is fast enough", gatePolicy(`{target: {shapes: [mission], p50: "<= 105us", p90: "<= 106us"}, pairs: 20}`), func(e *Evidence) {
			measured(quiet(1), 6)(e)
			e.Baseline = nil
		}},
	}
}

// gatePolicy asks for correctness and for the given performance.
func gatePolicy(performance string) string {
	return fmt.Sprintf(`version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 1%%"}
  performance: %s
rules:
  - name: default
`, performance)
}
