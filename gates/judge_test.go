package gates

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const fullPolicy = `version: 1
gates:
  ptxas:
    registers: {max: 128, increase: "<= 8"}
    static_shared_memory: "<= 48KiB"
    spill_stores: "<= 0B"
    blocks_per_sm: ">= 2"
  correctness:
    shapes: [mission]
    seeds: [0]
    secret_cases: 1
    norm_error: "<= 1%"
    max_abs_error: "<= 0.06"
    determinism: true
    end_to_end: {bad_elements: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
    pairs: 20
  profile:
    required: false
    shapes: [mission]
    all: [{sm__throughput.avg: ">= 50%"}]
    any: [{dram__throughput.avg: "< 50%"}, {lts__throughput.avg: "< 50%"}]
rules:
  - name: default
`

func some[T any](v T) *T { return &v }

// passing is evidence that meets every gate of fullPolicy.
func passing() *Evidence {
	e := evidence("mission", "small")
	e.Device = Device{Kind: "gpu", Name: "NVIDIA L4", Arch: "sm_89", Peak: map[string]float64{"fp8": 242e12}, Bandwidth: 300e9}
	for i := range e.Shapes {
		e.Shapes[i].FLOPs, e.Shapes[i].Bytes, e.Shapes[i].Peak = 5e8, 1e6, "fp8"
	}
	resources := func(registers int) *Resources {
		return &Resources{
			Registers: &registers, StaticShared: some(36 << 10), SpillStores: some(0), SpillLoads: some(0),
			Stack: some(0), BlockThreads: some(128),
		}
	}
	e.Baseline.Resources, e.Candidate.Resources = resources(80), resources(84)
	e.Baseline.Arch, e.Candidate.Arch = "sm_89", "sm_89"
	good := func(c Case) Case {
		c.Errors, c.EndToEnd = &Errors{Elements: 1000, MaxAbs: 0.01, Norm: 1e-3}, &Errors{Elements: 1000, MaxAbs: 0.05, Norm: 0.03}
		c.Deterministic, c.BitParity = some(true), some(false)
		return c
	}
	e.Correctness.Cases = []Case{
		good(Case{Input: Input{Shape: "mission", Dims: "S=512", Distribution: "normal"}}),
		good(Case{Input: Input{Shape: "secret1", Dims: "S=77", Seed: 99, Distribution: "normal", Secret: true}}),
	}
	truth{simulate.Noise{Between: 0.002, Within: 0.005, Dof: 5}, map[string]float64{"mission": 1.2, "small": 1.01}, 1, 20}.
		measure(e, rand.New(rand.NewPCG(7, 7)), 6, 1)
	e.Profile = &Profile{Metrics: []Metric{
		{Shape: "mission", Name: "sm__throughput.avg", Value: 71, Unit: "%"},
		{Shape: "mission", Name: "dram__throughput.avg", Value: 80, Unit: "%"},
		{Shape: "mission", Name: "lts__throughput.avg", Value: 20, Unit: "%"},
	}}
	return e
}

func TestVerdicts(t *testing.T) {
	series := func(e *Evidence, shape string) *Series {
		for i := range e.Performance.Rounds {
			for k := range e.Performance.Rounds[i].Series {
				if s := &e.Performance.Rounds[i].Series[k]; s.Shape == shape {
					return s
				}
			}
		}
		t.Fatal("no series")
		return nil
	}
	times := func(e *Evidence, shape string, side rune, factor float64) {
		for i := range e.Performance.Rounds {
			for k := range e.Performance.Rounds[i].Series {
				s := &e.Performance.Rounds[i].Series[k]
				for n, letter := range strings.ReplaceAll(s.Order, " ", "") {
					if s.Shape == shape && letter == side {
						s.Nanos[n] *= factor
					}
				}
			}
		}
	}
	alone := func(e *Evidence, nanos float64) {
		for i := range e.Performance.Rounds {
			for k := range e.Performance.Rounds[i].Series {
				e.Performance.Rounds[i].Series[k].Solo = []float64{nanos, nanos, nanos}
			}
		}
	}
	for _, c := range []struct {
		name    string
		change  func(*Evidence)
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"everything as asked", func(*Evidence) {}, Pass, "", "Proven: speedup +2"},
		{"the runner's own fault", func(e *Evidence) { e.Fault = "no space left on device" }, Error, ReasonRunner,
			"The runner could not do its work: no space left on device"},

		{"does not compile", func(e *Evidence) {
			e.Candidate = &Build{Error: `k.cu:3: identifier "x" is undefined`, Diagnostics: []Diagnostic{{File: "k.cu", Line: 3, Severity: "error", Message: `identifier "x" is undefined`}}}
		}, Defer, ReasonBuild, `The candidate does not build: k.cu:3: identifier "x" is undefined`},
		{"the baseline does not compile", func(e *Evidence) { e.Baseline = &Build{Error: "no such file"} }, Error, ReasonSetup,
			"The baseline does not build on this runner: no such file"},

		{"the kernel is gone", func(e *Evidence) { e.Removed, e.Candidate = true, nil }, Defer, ReasonSuspicious,
			"The change removes the kernel's manifest, and with it the gate"},

		{"too many registers", func(e *Evidence) { e.Candidate.Resources.Registers = some(136) }, Defer, ReasonResources,
			"Over budget: registers 136 (at most 128); registers 136 is 56 more than the baseline's 80 (increase <= 8)"},
		{"too many more registers", func(e *Evidence) { e.Candidate.Resources.Registers = some(96) }, Defer, ReasonResources,
			"Over budget: registers 96 is 16 more than the baseline's 80 (increase <= 8)"},
		{"spills", func(e *Evidence) { e.Candidate.Resources.SpillStores = some(8) }, Defer, ReasonResources,
			"Over budget: spill stores 8B (at most 0B)"},
		{"too much shared memory for two blocks", func(e *Evidence) { e.Candidate.Resources.DynamicShared = some(20 << 10) }, Defer, ReasonResources,
			"Over budget: 1 block per SM (asked >= 2; limited by shared memory)"},
		{"resources were not recorded", func(e *Evidence) { e.Candidate.Resources.Registers = nil }, Defer, ReasonInconclusive,
			"The evidence lacks what the ptxas gate needs: not recorded: registers"},

		{"a crash", func(e *Evidence) {
			e.Correctness.Cases[0] = Case{Input: Input{Shape: "mission", Seed: 0, Distribution: "normal"}, Failure: &Failure{"crash", "the kernel crashed: segmentation fault (SIGSEGV)"}}
		}, Defer, ReasonCorrectness, "The output is wrong in 1 of 2 cases; first: mission, seed 0, normal inputs: the kernel crashed: segmentation fault (SIGSEGV)"},
		{"inputs written", func(e *Evidence) { e.Correctness.Cases[0].InputsChanged = []string{"q"} }, Defer, ReasonCorrectness,
			"mission, seed 0, normal inputs: the kernel wrote to its input q"},
		{"wrote outside", func(e *Evidence) { e.Correctness.Cases[0].OutOfBounds = true }, Defer, ReasonCorrectness,
			"the kernel wrote outside its arguments"},
		{"nothing written", func(e *Evidence) { e.Correctness.Cases[0].Errors.Unwritten = 1000 }, Defer, ReasonCorrectness,
			"1000 of 1000 elements were never written"},
		{"NaN", func(e *Evidence) { e.Correctness.Cases[1].Errors.NaN = 3 }, Defer, ReasonCorrectness,
			"secret shape (S=77), seed 99, normal inputs: 3 of 1000 elements are NaN"},
		{"Inf", func(e *Evidence) { e.Correctness.Cases[1].Errors.Inf = 3 }, Defer, ReasonCorrectness, "3 of 1000 elements are infinite"},
		{"norm error", func(e *Evidence) { e.Correctness.Cases[0].Errors.Norm = 0.02 }, Defer, ReasonCorrectness, "norm error 2% (asked <= 1%)"},
		{"max error", func(e *Evidence) { e.Correctness.Cases[0].Errors.MaxAbs = 2.4 }, Defer, ReasonCorrectness, "max |err| 2.4 (asked <= 0.06)"},
		{"one element beyond the tolerance", func(e *Evidence) { e.Correctness.Cases[0].Errors.Bad = 1 }, Defer, ReasonCorrectness,
			"1 of 1000 elements (0.1%) are beyond the manifest's tolerance (asked <= 0%)"},
		{"one element beyond the tolerance while timed", func(e *Evidence) { series(e, "small").Worst.Bad = 1 }, Defer, ReasonCorrectness,
			"on small in round 1: 1 of 100 elements (1%) are beyond the manifest's tolerance (asked <= 0%)"},
		{"end to end", func(e *Evidence) { e.Correctness.Cases[0].EndToEnd.Bad = 11 }, Defer, ReasonCorrectness,
			"against the unquantised inputs: 11 of 1000 elements (1.1%) are beyond the manifest's tolerance (asked <= 1%)"},
		{"the test command fails", func(e *Evidence) {
			e.Correctness = &Correctness{Test: &Test{Command: "./t", Failure: &Failure{"exit", "the test command ended with status 1"}}}
		}, Defer, ReasonCorrectness, "The test command fails: the test command ended with status 1"},
		{"the test command fails on both sides", func(e *Evidence) {
			f := &Failure{"exit", "the test command ended with status 1"}
			e.Correctness = &Correctness{Test: &Test{Command: "./t", Failure: f, Baseline: f}}
		}, Error, ReasonSetup, "The test command fails on both sides"},
		{"timed without a word on the output, and without a test", func(e *Evidence) { series(e, "small").Verified = 0 }, Error, ReasonRunner, "were not verified"},
		{"timed without a word on the output, tested", func(e *Evidence) {
			e.Correctness = &Correctness{Test: &Test{Command: "./t"}}
			series(e, "small").Verified = 0
		}, Pass, "", "Proven: speedup +2"},
		{"both do not compile", func(e *Evidence) {
			e.Candidate = &Build{Error: `k.cu:9: identifier "x" is undefined`, Diagnostics: []Diagnostic{{File: "k.cu", Line: 9, Severity: "error", Message: `identifier "x" is undefined`}}}
			e.Baseline = &Build{Error: `k.cu:3: identifier "x" is undefined`, Diagnostics: []Diagnostic{{File: "k.cu", Line: 3, Severity: "error", Message: `identifier "x" is undefined`}}}
		}, Error, ReasonSetup, `Neither the baseline nor the candidate builds, for the same reason: k.cu:9: identifier "x" is undefined`},
		{"wrong in every case on both sides", func(e *Evidence) {
			for i := range e.Correctness.Cases {
				e.Correctness.Cases[i].Errors.NaN, e.Correctness.Cases[i].Baseline = 1, &Errors{Elements: 1000, NaN: 1}
			}
		}, Error, ReasonSetup, "Baseline and candidate are both wrong in every case (2); first: mission, seed 0"},
		{"wrong before", func(e *Evidence) {
			e.Correctness.Cases[0].Errors.NaN, e.Correctness.Cases[0].BaselineFailure = 1, &Failure{"crash", "the kernel crashed"}
		}, Defer, ReasonCorrectness, "(the baseline is wrong there too: the kernel crashed)"},
		{"not deterministic", func(e *Evidence) { e.Correctness.Cases[0].Deterministic = some(false) }, Defer, ReasonCorrectness,
			"two launches on the same input gave different bits"},
		{"a case was left out", func(e *Evidence) { e.Correctness.Cases = e.Correctness.Cases[1:] }, Defer, ReasonInconclusive,
			"1 cases were not run; first: mission, seed 0, normal inputs"},
		{"the secret case was left out", func(e *Evidence) { e.Correctness.Cases = e.Correctness.Cases[:1] }, Defer, ReasonInconclusive,
			"1 cases were not run; first: 1 secret cases"},

		{"too slow", func(e *Evidence) { times(e, "mission", SideCandidate, 1.15) }, Defer, ReasonTooSlow, "Too slow: speedup +"},
		{"slower on a guard", func(e *Evidence) { times(e, "small", SideCandidate, 1.1) }, Defer, ReasonRegression, "Slower: speedup −8"},
		{"two copies of the baseline differ", func(e *Evidence) { times(e, "mission", SideControl, 1.05) }, Error, ReasonRunner,
			"The runner is not fit to measure: the A/A control on mission is −"},
		{"below the roofline", func(e *Evidence) { e.Shapes[0].FLOPs = 242e12 }, Defer, ReasonSuspicious,
			"Too good to be true: mission takes 8"},
		{"the baseline suffers beside the candidate", func(e *Evidence) { alone(e, 0.9e5) }, Defer, ReasonSuspicious, "the baseline is 11.1\u00a0% slower after the candidate is loaded, on mission (at most 2%)"},
		{"the baseline suffers and the candidate is too slow even so", func(e *Evidence) {
			alone(e, 0.9e5)
			times(e, "mission", SideCandidate, 1.15)
		}, Defer, ReasonTooSlow, "Too slow: speedup +"},
		{"wrong while timed", func(e *Evidence) { series(e, "small").Worst.Unwritten = 100 }, Defer, ReasonCorrectness,
			"The output was wrong while it was timed, on small in round 1: 100 of 100 elements were never written"},
		{"died while timed", func(e *Evidence) {
			e.Performance.Rounds[2].Failure = &Failure{"timeout", "the kernel did not return within 10s and was killed"}
		}, Defer, ReasonCorrectness, "The kernel failed while it was timed, in round 3: the kernel did not return within 10s and was killed"},
		{"timed outputs not verified", func(e *Evidence) { series(e, "mission").Verified = 0 }, Error, ReasonRunner, "were not verified"},
		{"most samples disturbed", func(e *Evidence) {
			for i := range e.Performance.Rounds {
				for k := range e.Performance.Rounds[i].Series {
					s := &e.Performance.Rounds[i].Series[k]
					for n := 3; n < len(s.Nanos); n++ {
						s.Disturbed = append(s.Disturbed, n)
					}
				}
			}
		}, Error, ReasonRunner, "disturbed 342 of 360 samples on small"},
		{"too few rounds", func(e *Evidence) { e.Performance.Rounds = e.Performance.Rounds[:4] }, Defer, ReasonInconclusive,
			"4 rounds were measured; the first decision is after 6"},
		{"the budget was spent after too few rounds", func(e *Evidence) {
			e.Performance.Rounds, e.Performance.Exhausted = e.Performance.Rounds[:5], true
		}, Defer, ReasonInconclusive, "5 rounds were measured; the first decision is after 6"},
		{"same machine code", func(e *Evidence) { e.SameCode, e.Performance = true, nil }, Defer, ReasonTooSlow,
			"Too slow: the machine code is the same as the baseline's, so nothing was gained"},
		{"nothing was timed", func(e *Evidence) { e.Performance = nil }, Defer, ReasonInconclusive, "nothing was timed"},
		{"a new kernel has no baseline", func(e *Evidence) { e.Baseline, e.Performance = nil, nil }, Pass, "", "Every required gate passed."},
		{"the profile informs only", func(e *Evidence) { e.Profile.Metrics[0].Value = 10 }, Pass, "", "Proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			c.change(e)
			v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %q\nwant %s (%s): …%q…", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says)
			}
			if v.Outcome != Pass && v.Reason != ReasonRunner && len(v.ToPass) == 0 {
				t.Error("a DEFER that does not say what is missing")
			}
		})
	}
}

// The same evidence under the same policy gives the same verdict, byte for byte.
func TestVerdictsAreReproducible(t *testing.T) {
	p := parsePolicy(t, fullPolicy)
	render := func() []byte {
		data, err := json.Marshal(passing())
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEvidence("e.json", data)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(Judge(p, "test.yaml", e))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if first, second := render(), render(); !bytes.Equal(first, second) {
		t.Errorf("two verdicts from the same evidence differ:\n%s\n%s", first, second)
	}
}

// A gate behind a failed one is not run: green before fast.
func TestGatesStopAtTheFirstFailure(t *testing.T) {
	e := passing()
	e.Correctness.Cases[0].Errors.NaN = 1
	v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e)
	var got []string
	for _, r := range v.Gates {
		got = append(got, string(r.Gate)+" "+string(r.Status))
	}
	want := "build pass, ptxas pass, correctness fail, performance not-run, profile not-run"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, ", "), want)
	}
	if len(v.Comparisons) != 0 {
		t.Error("times of a wrong kernel are shown")
	}
}

func TestMetricsOfAGoal(t *testing.T) {
	for _, c := range []struct {
		name, target string
		outcome      Outcome
	}{
		// 100 µs → 83.3 µs: speedup +20 %, latency reduction 16.7 %.
		{"latency reduction met", `latency_reduction: ">= 15%"`, Pass},
		{"latency reduction is not the speedup", `latency_reduction: ">= 19%"`, Defer},
		{"p50 met", `p50: "<= 85us"`, Pass},
		{"p50 missed", `p50: "<= 80us"`, Defer},
		{"p90 met", `p90: "<= 90us"`, Pass},
		{"both must hold", `speedup: ">= +10%", p50: "<= 80us"`, Defer},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := performancePolicy(t, "{target: {shapes: [mission], "+c.target+"}, pairs: 20}")
			if v := Judge(p, "test.yaml", passing()); v.Outcome != c.outcome {
				t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

func shippedPolicy(t testing.TB, name string) *policy.Policy {
	t.Helper()
	text, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(name+".yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readEvidence(t testing.TB, file string) *Evidence {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEvidence(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// words is the sentence of a fact, where there is one.
func words(f facts.Fact) string {
	if f == nil {
		return ""
	}
	return f.Sentence()
}

// quoted is a text as a fact, where there is one.
func quoted(text string) facts.Fact {
	if text == "" {
		return nil
	}
	return facts.Quote(text)
}

// stepWords is an advice in words, where there is one.
func stepWords(a facts.Advice) string {
	if a == nil {
		return ""
	}
	return a.Step(facts.Reader{})
}

func detailTexts(r GateResult) []string {
	var texts []string
	for _, d := range r.Details {
		texts = append(texts, d.Text)
	}
	return texts
}
