package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// use is a kernel of a launch with these figures.
func use(entry string, line, registers, shared, spills int) KernelUse {
	threads, none := 128, 0
	return KernelUse{Entry: entry, Line: line, Resources: Resources{
		Registers: &registers, StaticShared: &shared, DynamicShared: &none, SpillStores: &spills, SpillLoads: &spills, BlockThreads: &threads,
	}}
}

// several is evidence of launches of several kernels.
func several(baseline, candidate []KernelUse) *Evidence {
	e := passing()
	for _, side := range []struct {
		build *Build
		uses  []KernelUse
	}{{e.Baseline, baseline}, {e.Candidate, candidate}} {
		side.build.Arch, side.build.Kernels, side.build.Resources = "sm_90", side.uses, MaxResources(side.uses)
	}
	return e
}

// Each bound is held against the kernel that is worst in it, whichever that is, and each kernel is
// shown.
func TestEveryKernelIsJudged(t *testing.T) {
	base := []KernelUse{use("split", 10, 64, 1024, 0), use("combine", 50, 32, 0, 0)}
	for name, c := range map[string]struct {
		gate      string
		candidate []KernelUse
		says      string // "" passes
		line      int
	}{
		"within":             {`{registers: "<= 64", spill_stores: "<= 0B", blocks_per_sm: ">= 8"}`, base, "", 0},
		"the second":         {`{registers: "<= 64"}`, []KernelUse{use("split", 10, 40, 0, 0), use("combine", 50, 80, 0, 0)}, "registers of combine 80 (at most 64)", 50},
		"the first":          {`{registers: "<= 64"}`, []KernelUse{use("split", 10, 80, 0, 0), use("combine", 50, 40, 0, 0)}, "registers of split 80 (at most 64)", 10},
		"each its own worst": {`{registers: "<= 64", spill_stores: "<= 0B"}`, []KernelUse{use("split", 10, 80, 0, 0), use("combine", 50, 40, 0, 8)}, "registers of split 80 (at most 64); spill stores of combine 8B (at most 0B)", 10},
		"shared of one":      {`{shared_memory: "<= 4KiB"}`, []KernelUse{use("split", 10, 40, 8192, 0), use("combine", 50, 40, 0, 0)}, "shared memory of split 8KiB (at most 4KiB)", 10},
		"an increase":        {`{registers: {increase: "<= 8"}}`, []KernelUse{use("split", 10, 64, 0, 0), use("merge", 50, 80, 0, 0)}, "registers of merge 80 is 16 more than the baseline's 64", 50},
		"occupancy":          {`{blocks_per_sm: ">= 8"}`, []KernelUse{use("split", 10, 40, 0, 0), use("combine", 50, 128, 0, 0)}, "4 blocks per SM of combine (asked >= 8; limited by registers)", 50},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  ptxas: "+c.gate+"\nrules:\n  - name: default\n"))
			if err != nil {
				t.Fatal(err)
			}
			v := Judge(p, "p.yaml", several(base, c.candidate))
			switch {
			case c.says == "" && v.Outcome != Pass:
				t.Errorf("%s: %s", v.Outcome, v.Summary)
			case c.says != "" && (v.Reason != ReasonResources || !strings.Contains(strings.ReplaceAll(v.Summary, "\u00a0", " "), c.says)):
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			case c.says != "" && v.Findings[0].Line != c.line:
				t.Errorf("the finding is in line %d, want %d", v.Findings[0].Line, c.line)
			}
			shown := map[string]bool{}
			for _, r := range v.Resources {
				shown[r.Name] = true
			}
			for _, k := range c.candidate {
				if !shown[k.Entry+": registers"] || !shown[k.Entry+": blocks per SM"] {
					t.Errorf("%s is not shown: %v", k.Entry, shown)
				}
			}
		})
	}
}

// What one kernel does not say is not taken for nothing.
func TestMost(t *testing.T) {
	most := MaxResources([]KernelUse{use("a", 1, 10, 300, 0), use("b", 2, 20, 100, 4)})
	if *most.Registers != 20 || *most.StaticShared != 300 || *most.SpillStores != 4 || most.Stack != nil {
		t.Errorf("got %+v", most)
	}
	silent := use("c", 3, 1, 1, 1)
	silent.Registers = nil
	for _, order := range [][]KernelUse{{use("a", 1, 10, 300, 0), silent}, {silent, use("a", 1, 10, 300, 0)}} {
		if most := MaxResources(order); most.Registers != nil {
			t.Errorf("%d registers are known", *most.Registers)
		}
	}
}

// Evidence of several kernels is read back as it was written.
func TestKernelsInEvidence(t *testing.T) {
	e := several(nil, []KernelUse{use("split", 10, 64, 1024, 0), use("combine", 50, 32, 0, 0)})
	e.Baseline.Kernels, e.Baseline.Resources = nil, nil
	e.Profile = &Profile{Metrics: []Metric{{Shape: "mission", Name: "m.sum", Value: 1, Step: 2, Kernel: "combine"}}}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseEvidence("evidence.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Candidate, back.Candidate) + cmp.Diff(e.Profile, back.Profile); diff != "" {
		t.Error(diff)
	}
}

// Counters of several kernels are sums where they are sums, and else means by the time that each
// kernel ran; without the times they are not known.
func TestMetricsOfSeveralKernels(t *testing.T) {
	step := func(n int, kernel, name string, v float64) Metric {
		return Metric{Shape: "mission", Name: name, Value: v, Unit: "u", Step: n, Kernel: kernel}
	}
	timed := []Metric{step(1, "split", MetricDuration, 900), step(2, "combine", MetricDuration, 100)}
	counted := []Metric{step(1, "split", "bytes.sum", 10), step(2, "combine", "bytes.sum", 5), step(1, "split", "busy.pct", 80), step(2, "combine", "busy.pct", 10)}
	for _, c := range []struct {
		name string
		in   []Metric
		want float64
		none bool
	}{
		{"bytes.sum", counted, 15, false},
		{"busy.pct", append(timed, counted...), 73, false},
		{"busy.pct", counted, 0, true},
		{"other", counted, 0, true},
		{"one", []Metric{{Shape: "mission", Name: "one", Value: 4}}, 4, false},
		{"one", []Metric{{Shape: "small", Name: "one", Value: 4}}, 0, true},
	} {
		got, _, _ := (&Profile{Metrics: c.in}).of("mission", c.name)
		if (got == nil) != c.none || got != nil && *got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
