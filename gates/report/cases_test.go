package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/why"
)

func ptr[T any](x T) *T { return &x }

func around(value, reach float64) gates.Estimate {
	return gates.Estimate{Value: value, Lower: ptr(value - reach), Upper: ptr(value + reach)}
}

func times(p50 float64) *stats.Summary {
	return &stats.Summary{N: 600, Min: p50 * 0.988, P50: p50, P90: p50 * 1.006, P99: p50 * 1.021,
		Mean: p50 * 1.0012, Std: p50 * 0.0041, CV: 0.0041}
}

func timed(shape, dims string, role gates.Role, goal string, status gates.Status, baseline, candidate, reach float64) gates.Comparison {
	ratio := baseline / candidate
	flops := map[string]float64{"small": 262144, "mission": 536870912, "long": 8589934592}[shape]
	bytes := map[string]float64{"small": 10240, "mission": 1310720, "long": 5242880}[shape]
	return gates.Comparison{
		Shape: shape, Dims: dims, Role: role, Goal: goal, Status: status,
		Baseline: times(baseline), Candidate: times(candidate),
		Speedup: around(ratio-1, reach), LatencyReduction: around(1-1/ratio, reach/ratio/ratio),
		Control: ptr(around(0.0004, 0.0017)), SoloShift: ptr(around(-0.0011, 0.0030)), Alone: ptr(around(ratio-1.002, 0.012)), Detectable: 0.0061,
		TFLOPs: ptr(flops / candidate / 1e6), GBs: ptr(bytes / candidate / 1e3), Roofline: ptr(max(flops/242e6, bytes/300e3) / candidate),
	}
}

const (
	goalTarget = "speedup >= +10% on mission"
	goalGuard  = "speedup >= -2% on all"
)

// passing is a change that meets everything, with every table filled.
func passing() *gates.Verdict {
	found := "Proven: speedup +16.1\u00a0% [+15.7\u00a0%, +16.4\u00a0%] on mission (asked speedup >= +10%)"
	return &gates.Verdict{
		Schema: gates.VerdictSchema, Kernel: "sdpa_fp8", Outcome: gates.Pass, Rule: "default", Policy: "policies/l4.yaml",
		Summary:    found,
		Provenance: origin(),
		Device: gates.Device{Kind: "gpu", Name: "NVIDIA L4", Arch: "sm_89", UUID: "GPU-6f1c2a9e", Driver: "550.54.15", Units: 58,
			Peak: map[string]float64{"fp16": 121e12, "fp8": 242e12}, Bandwidth: 300e9, PeakFrom: "data sheet", L2Bytes: 48 << 20,
			ClockMHz: map[string]int{"sm": 2040, "memory": 6251}},
		Gates: []gates.GateResult{
			{Gate: "build", Status: gates.Passed, Required: true, Text: "compiled with nvcc 12.2"},
			{Gate: "ptxas", Status: gates.Passed, Required: true, Text: "88 registers, 30.3 KiB shared memory, 2 blocks per SM, 0 B spilled; within budget"},
			{Gate: "correctness", Status: gates.Passed, Required: true, Text: "36/36 cases, max |err| 0.0596, norm error 0.92%, deterministic"},
			{Gate: "performance", Status: gates.Passed, Required: true, Text: found},
			{Gate: "profile", Status: gates.Informs, Text: "The profile does not meet the policy: none of: mission: sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active is 0 (asked >= 50%)",
				Details: quotes("mission: the tensor pipe is idle", "mission: DRAM is at 3.1 % of its peak")},
		},
		Resources: []gates.ResourceRow{
			{Name: "registers", Baseline: ptr(84.0), Candidate: ptr(88.0), Limit: "≤ 128, increase <= 8", Status: gates.Passed},
			{Name: "static shared memory", Unit: "B", Baseline: ptr(16896.0), Candidate: ptr(30976.0), Limit: "≤ 48KiB", Status: gates.Passed},
			{Name: "dynamic shared memory", Unit: "B", Candidate: ptr(0.0), Status: gates.NotRun},
			{Name: "spill stores", Unit: "B", Baseline: ptr(0.0), Candidate: ptr(0.0), Limit: "≤ 0B", Status: gates.Passed},
			{Name: "code size", Unit: "B", Baseline: ptr(9216.0), Candidate: ptr(8704.0), Status: gates.NotRun},
			{Name: "blocks per SM", Baseline: ptr(4.0), Candidate: ptr(2.0), Limit: ">= 2", Status: gates.Passed},
		},
		Correctness: []gates.CaseRow{
			{Shape: "small", Dims: "B=1 H=1 S=32 D=64", Distribution: "normal", Passed: 3, Total: 3, MaxAbs: 0.0596, MeanAbs: 0.0121, Norm: 0.0092,
				EndToEnd: ptr(0.0596), Deterministic: ptr(true), BitParity: ptr(false)},
			{Shape: "mission", Dims: "B=1 H=8 S=512 D=64", Distribution: "dominant", Passed: 3, Total: 3, MaxAbs: 0.0212, MeanAbs: 0.00305, Norm: 0.0061,
				BadShare: 0.0004, EndToEnd: ptr(0.0391), Deterministic: ptr(true), BitParity: ptr(true)},
			{Shape: "secret", Dims: "B=3 H=5 S=97 D=64", Distribution: "large", Secret: true, Passed: 6, Total: 6, MaxAbs: 0.0313, MeanAbs: 0.0042, Norm: 0.0088,
				EndToEnd: ptr(0.0417), Deterministic: ptr(true), BitParity: ptr(false)},
		},
		Comparisons: []gates.Comparison{
			timed("small", "B=1 H=1 S=32 D=64", "guard", goalGuard, gates.Passed, 9.15, 9.148, 0.0041),
			timed("mission", "B=1 H=8 S=512 D=64", "target", goalTarget, gates.Passed, 1391.62, 1199.10, 0.0034),
			timed("long", "B=1 H=8 S=2048 D=64", "guard", goalGuard, gates.Passed, 21871.4, 18642.9, 0.0038),
		},
		Profile: []gates.MetricRow{
			{Shape: "mission", Metric: "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", Value: ptr(0.0), Unit: "%", Limit: ">= 50%", Status: gates.Failed},
			{Shape: "mission", Metric: "dram__throughput.avg.pct_of_peak_sustained_elapsed", Limit: "< 50%", Status: gates.Missing},
		},
		Builds: []gates.Build{
			{Variant: "scalar", Source: "sdpa.cu", Flags: []string{"-O3", "--use_fast_math"}, Arch: "sm_89", Compiler: "nvcc 12.2", OK: true, Code: "sha256:91b2c7aa01d3ffee", Cached: true},
			{Variant: "cp_async", Source: "sdpa.cu", Toggles: map[string]int{"USE_CP_ASYNC": 1, "NUM_STAGES": 2}, Flags: []string{"-O3", "--use_fast_math"},
				Arch: "sm_89", Compiler: "nvcc 12.2", OK: true, Code: "sha256:5d03e1f4c2a87b90", Seconds: 9.4},
		},
		Measuring: &gates.Measuring{Rounds: 12, MaxRounds: 20, Interim: 2, Interims: 3, Attempts: 1, Confidence: 0.9834, Policy: 0.95, Pairs: 1800, Disturbed: 4, Seconds: 71.3},
		Notes:     []string{"The pull request edits `kernel.yaml`: it was judged by the base's manifest."},
	}
}

func origin() gates.Provenance {
	return gates.Provenance{
		Time:       time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC),
		Repository: "example/attention", Program: "v0.4.0", Host: "l4-runner-2",
		Base:     gates.Commit{SHA: "4f1d0b6a9c3e7788a0b1c2d3e4f5061728394a5b", Branch: "main"},
		Head:     gates.Commit{SHA: "a97c52e0d1b84f6f9e3321c0ffee112233445566", Branch: "cp-async", Dirty: true, Variant: "cp_async"},
		Tools:    map[string]string{"nvcc": "12.2.140", "ncu": "2023.2.2"},
		Manifest: "sha256:0badc0de0badc0de0badc0de", Policy: "sha256:feedface00feedface00feed",
		Command: "git fetch origin a97c52e0d1b8 && git checkout a97c52e0d1b8\nkernelgate check sdpa_fp8 --base 4f1d0b6a9c3e --policy policies/l4.yaml",
	}
}

// deferred is passing's evidence up to a gate that did not pass; what comes
// after that gate was not run.
func deferred(gate gates.Gate, status gates.Status, reason gates.Reason, found string, toPass ...string) *gates.Verdict {
	v := passing()
	v.Outcome, v.Reason, v.Summary, v.ToPass = gates.Defer, reason, found, toPass
	v.Notes = nil
	behind := false
	for i := range v.Gates {
		g := &v.Gates[i]
		if behind {
			*g = gates.GateResult{Gate: g.Gate, Status: gates.NotRun, Required: g.Required, Text: "an earlier gate did not pass"}
		}
		if g.Gate == gate {
			g.Status, g.Reason, g.Text, g.ToPass = status, reason, found, toPass
			behind = true
		}
	}
	v.Profile = nil
	order := map[gates.Gate]int{"build": 0, "ptxas": 1, "correctness": 2, "performance": 3}
	if order[gate] < 3 {
		v.Comparisons, v.Measuring = nil, nil
	}
	if order[gate] < 2 {
		v.Correctness = nil
	}
	if order[gate] < 1 {
		v.Resources = nil
	}
	return v
}

// verdicts are all that the golden files show, by name.
func verdicts() map[string]*gates.Verdict {
	return map[string]*gates.Verdict{
		"pass-existing":           existingFindings(),
		"pass":                    passing(),
		"defer-build":             unbuilt(),
		"defer-resources":         overBudget(),
		"defer-correctness":       wrong(),
		"defer-too-slow":          tooSlow(),
		"explained":               explained(),
		"defer-regression":        regressed(),
		"defer-secret-shape":      regressedOnSecret(),
		"defer-inconclusive":      inconclusive(),
		"defer-suspicious":        suspicious(),
		"error-runner":            faulty(),
		"defer-same-machine-code": sameCode(),
		"pass-attempts":           attempts(),
		"pass-rivals":             withRivals(),
		"defer-sanitize":          raced(),
		"pass-machine-code":       otherCode(),
		"shadow-too-slow":         shadowed(),
		"pass-warn":               warned(),
	}
}

// otherCode has a kernel whose instructions are others, one that is new, and a diff with what could be markup.
func otherCode() *gates.Verdict {
	v := passing()
	v.MachineCode = &gates.MachineCode{
		Tool: "nvdisasm 13.4.92",
		Changes: []gates.CodeChange{
			{
				Kernel: "sdpa", Baseline: &gates.Instructions{Memory: 48, Barrier: 6, Special: 20, Other: 883}, Candidate: &gates.Instructions{Tensor: 64, Memory: 32, Barrier: 8, Special: 20, Other: 510},
				Diff: "@@ -12,3 +12,4 @@ sdpa.cu:118\n LDS R4, [R10+UR4]\n-FFMA R4, R4, 3.5, R11\n+HMMA.16816.F32 R4, R8, R2, R4\n+LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64]\n BRA `(.L)", Cut: 311,
				Hottest: &gates.HottestLoop{Baseline: gates.CodeLoop{First: 12, Last: 90}, Candidate: gates.CodeLoop{First: 12, Last: 60, File: "sdpa.cu", Line: 118, LastLine: 131}},
			},
			{Kernel: "combine<64, true>", Shapes: []string{"long"}, Candidate: &gates.Instructions{Memory: 9, Other: 120}},
		},
		More: 1,
	}
	return v
}

func unbuilt() *gates.Verdict {
	v := deferred("build", gates.Failed, gates.ReasonBuild, "The candidate does not build: 2 errors in sdpa.cu",
		"make the kernel compile with the manifest's flags")
	c := &v.Builds[1]
	c.OK, c.Error, c.Code = false, "2 errors in sdpa.cu", ""
	for i := range 21 {
		c.Diagnostics = append(c.Diagnostics, gates.Diagnostic{File: "sdpa.cu", Line: 40 + i, Severity: "warning", Message: fmt.Sprintf("variable \"lane%d\" was declared but never referenced", i)})
	}
	c.Diagnostics = append(c.Diagnostics,
		gates.Diagnostic{File: "sdpa.cu", Line: 118, Column: 23, Severity: "error", Message: "no instance of function template \"std::vector<float>::at\" matches the argument list"},
		gates.Diagnostic{File: "sdpa.cu", Line: 131, Severity: "error", Message: "identifier \"cp_async_wait\" is undefined"})
	v.Gates[0].Details = quotes("sdpa.cu:118:23: error: no instance of function template")
	return v
}

func overBudget() *gates.Verdict {
	v := deferred("ptxas", gates.Failed, gates.ReasonResources, "Over budget: registers 152 (at most 128); static shared memory 48.008KiB (at most 48KiB)",
		"cut registers by 24, to at most 128", "cut static shared memory by 8B, to at most 48KiB")
	v.Resources[0].Candidate, v.Resources[0].Status = ptr(152.0), gates.Failed
	v.Resources[1].Candidate, v.Resources[1].Status = ptr(49160.0), gates.Failed
	return v
}

func wrong() *gates.Verdict {
	v := deferred("correctness", gates.Failed, gates.ReasonCorrectness,
		"The output is wrong in 10 of 12 cases; first: small, seed 0, normal inputs: 17 of 2048 elements are NaN",
		"make every case agree with the reference; reproduce the first one: shape small (B=1 H=1 S=32 D=64), seed 0, normal inputs")
	v.Correctness = []gates.CaseRow{
		{Shape: "small", Dims: "B=1 H=1 S=32 D=64", Distribution: "normal", Passed: 0, Total: 3, MaxAbs: 4.1, MeanAbs: 0.713, Norm: 1.92, BadShare: 0.871,
			Problem: "seed 0: 17 of 2048 elements are NaN", Deterministic: ptr(false)},
		{Shape: "mission", Dims: "B=1 H=8 S=512 D=64", Distribution: "normal", Passed: 2, Total: 3, MaxAbs: 0.0596, MeanAbs: 0.0121, Norm: 0.0092,
			Problem: "seed 1: the kernel wrote to its input K", Deterministic: ptr(true), BitParity: ptr(true)},
		{Shape: "mission", Dims: "B=1 H=8 S=512 D=64", Distribution: "large", Passed: 0, Total: 3,
			Problem: "seed 0: an illegal memory access ended the launch (CUDA error 700)"},
		{Shape: "secret", Dims: "B=2 H=3 S=77 D=64", Distribution: "uniform", Secret: true, Passed: 0, Total: 3, MaxAbs: 2.4, MeanAbs: 0.0931, Norm: 0.66, BadShare: 0.12,
			Problem: "seed 9120: norm error 66% (asked <= 2%)", Deterministic: ptr(true)},
	}
	v.Gates[2].Details = quotes("small, seed 0, normal inputs: 17 of 2048 elements are NaN", "mission, seed 1, normal inputs: the kernel wrote to its input K")
	return v
}

func tooSlow() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonTooSlow,
		"Too slow: speedup +0.16\u00a0% [−0.18\u00a0%, +0.50\u00a0%] on mission (asked speedup >= +10%)",
		"bring `mission` to ≤\u00a0597.64\u00a0µs")
	v.Comparisons = []gates.Comparison{
		timed("small", "B=1 H=1 S=32 D=64", "guard", goalGuard, gates.Passed, 0.512, 0.5117, 0.0041),
		timed("mission", "B=1 H=8 S=512 D=64", "target", goalTarget, gates.Failed, 657.41, 656.38, 0.0034),
	}
	return v
}

func regressed() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonRegression,
		"Slower: speedup −6.3\u00a0% [−6.7\u00a0%, −5.9\u00a0%] on long (asked speedup >= -2%)",
		"bring `long` to ≤\u00a019023.3\u00a0µs")
	v.Comparisons[2] = timed("long", "B=1 H=8 S=2048 D=64", "guard", goalGuard, gates.Failed, 18642.9, 19896.1, 0.0039)
	return v
}

// regressedOnSecret is slower on the size that was drawn for the run only.
func regressedOnSecret() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonRegression,
		"Slower: speedup −89.8\u00a0% [−90.2\u00a0%, −89.4\u00a0%] on secret (B=2 H=3 S=157 D=64) (asked speedup >= -2%)",
		"bring `secret (B=2 H=3 S=157 D=64)` to ≤\u00a0214.69\u00a0µs: this size is random, so the kernel must also be fast on sizes that the manifest does not name",
		"time this size again with: kernelgate check --base 4f1d0b6a9c3e --head a97c52e0d1b8 sdpa_fp8 --secret-shape B=2,H=3,S=157,D=64")
	secret := timed("secret", "B=2 H=3 S=157 D=64", "guard", goalGuard, gates.Failed, 210.4, 2063.1, 0.0039)
	secret.Secret = true
	v.Comparisons = append(v.Comparisons, secret)
	return v
}

// inconclusive has a bound that would read like the goal if it were rounded as
// others are.
func inconclusive() *gates.Verdict {
	v := deferred("performance", gates.Open, gates.ReasonInconclusive,
		"Not decided after 20 rounds: speedup +11.3\u00a0% [+9.97\u00a0%, +12.6\u00a0%] on mission (asked speedup >= +10%)",
		"comment /rebench rounds=27, or gain more on mission")
	c := timed("mission", "B=1 H=8 S=512 D=64", "target", goalTarget, gates.Open, 1391.62, 1250.4, 0.01324)
	c.Detectable, c.RoundsNeeded = 0.0182, 47
	long := timed("long", "B=1 H=8 S=2048 D=64", "guard", goalGuard, gates.Open, 18642.9, 19031.8, 0.021)
	long.Detectable, long.RoundsNeeded = 0.0291, stats.Never
	v.Comparisons[1], v.Comparisons[2] = c, long
	v.Measuring.Rounds, v.Measuring.Interim, v.Measuring.Confidence, v.Measuring.Disturbed = 20, 3, 0.9712, 1
	v.Gates[3].Details = []facts.Detail{{Kind: "detectable", Shape: "mission", Text: "mission: with this noise, 20 rounds can show a difference of 1.8 % from the goal; about 47 rounds would decide"}}
	return v
}

func suspicious() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonSuspicious,
		"Too good to be true: mission takes 1.021 µs, and the device needs at least 2.219 µs for this work",
		"show that all of the work is done and timed, or ask a maintainer to comment /override with the reason")
	v.Comparisons[1] = timed("mission", "B=1 H=8 S=512 D=64", "target", goalTarget, gates.Passed, 1391.62, 1.021, 3.2)
	return v
}

func faulty() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonRunner,
		"The runner is not fit to measure: the A/A control on mission is +4.1\u00a0% [+3.6\u00a0%, +4.7\u00a0%] instead of 0: two copies of the baseline differ by more than the allowed 2%",
		"stop other work on the machine, then run again")
	v.Outcome = gates.Error
	v.Comparisons[1].Control = ptr(around(0.041, 0.0055))
	return v
}

func sameCode() *gates.Verdict {
	v := deferred("performance", gates.Failed, gates.ReasonTooSlow,
		"Too slow: the machine code is the same as the baseline's, so nothing was gained (asked speedup >= +10% on mission)",
		"change what the compiler emits: this change compiles to the baseline's machine code")
	v.Comparisons, v.Measuring = nil, nil
	v.Builds[1].Code = v.Builds[0].Code
	return v
}

func attempts() *gates.Verdict {
	v := passing()
	v.Measuring = &gates.Measuring{Rounds: 74, MaxRounds: 80, Interim: 9, Interims: 10, Attempts: 5, CodeNumber: 7, ErrorRate: 0.000892857, Confidence: 0.999961, Policy: 0.95, Pairs: 11100, Seconds: 431}
	return v
}

// withRivals has one that beats the candidate, one that does not know every
// shape, and two that could not be timed.
func withRivals() *gates.Verdict {
	v := passing()
	rival := func(name, shape string, p50 float64) gates.Rival {
		return gates.Rival{Name: name, Shape: shape, Stats: stats.Describe([]float64{p50 * 0.99, p50, p50 * 1.02})}
	}
	v.Rivals = []gates.Rival{
		rival("torch-flash-graph", "small", 5.64), rival("torch-flash-graph", "mission", 2206.4), rival("torch-flash-graph", "long", 38950),
		rival("torch-math-graph", "mission", 6360.2),
		{Name: "torch-cudnn-graph", Failure: "the bench command ended with status 1: No available kernel. Aborting execution. (run its command by hand; KERNELGATE_READ names further folders that it may read)"},
		{Name: "torch-math-graph", Shape: "long", Failure: "out of memory"},
	}
	return v
}

// existingFindings is a pass of a change whose baseline is wrong in one case and races.
func existingFindings() *gates.Verdict {
	v := passing()
	v.Existing = []string{"3 of 12 cases fail as before", "1 sanitizer finding as before"}
	v.Summary += v.Remaining()
	v.Notes = []string{
		"The baseline is wrong in 3 of 12 cases, and this change does not make them worse: fix the kernel on the base branch. The first: mission, seed 0, dominant inputs: 17 of 262144 elements (0.00648%) are beyond the manifest's tolerance (asked <= 0%).",
		"The baseline has a mistake that this change did not cause: racecheck: a race between write and read of shared memory in sdpa.cu:123 and :140 (6,144 hazards). Fix it on the base branch.",
	}
	row := &v.Correctness[1]
	row.Passed, row.Existing, row.Problem = 0, 3, "seed 0: 17 of 262144 elements (0.00648%) are beyond the manifest's tolerance (asked <= 0%)"
	v.Gates[2].Text = "9 of 12 cases agree with the reference; 3 fail as they did before this change (see below)"
	v.Gates[2].Details = quotes("as before: mission, seed 0, dominant inputs: 17 of 262144 elements (0.00648%) are beyond the manifest's tolerance (asked <= 0%) [--shape B=1,H=8,S=512,D=64 --seed 0 --inputs dominant]")
	v.Sanitizers = []gates.SanitizerRow{
		{Tool: "memcheck", With: "compute-sanitizer 2025.3.1", Status: gates.Passed},
		{Tool: "racecheck", With: "compute-sanitizer 2025.3.1", Status: gates.Informs, Findings: []gates.Finding{
			{Tool: "racecheck", Kind: gates.KindRace, Text: "a race between write and read of shared memory", File: "sdpa.cu", Line: 123, OtherFile: "sdpa.cu", OtherLine: 140, Count: 6144, Before: true},
		}},
	}
	found := gates.GateResult{Gate: "sanitize", Status: gates.Passed, Required: true, Text: "memcheck, racecheck found nothing new in 2 cases; as before this change: 1 finding (see below)"}
	v.Gates = slices.Insert(v.Gates, 3, found)
	return v
}

// quotes is details of no particular kind.
func quotes(texts ...string) []facts.Detail { return facts.Details(facts.Quotes(texts)) }

// explained is a verdict with the profiles of both sides on one shape, and without permission for them on another.
func explained() *gates.Verdict {
	v := passing()
	x := why.Explanation{
		Cause: why.Occupancy, Share: 0.8, Faster: true, Moved: true,
		Baseline: why.Side{Limiter: &why.Limiter{Name: "latency", Share: 61}}, Candidate: why.Side{Limiter: &why.Limiter{Name: "DRAM", Share: 71.2}},
		Rows: []why.Row{
			{ID: "occupancy", Name: "occupancy", Unit: "%", Baseline: ptr(24.9), Candidate: ptr(49.7), Noise: 4, Moved: true},
			{ID: "registers", Name: "registers a thread", Baseline: ptr(168.0), Candidate: ptr(84.0), Noise: 5, Moved: true},
			{ID: "dram_bytes", Name: "DRAM traffic", Unit: "B", Baseline: ptr(3.1e8), Candidate: ptr(2.0e8), Noise: 1e6, Moved: true},
			{ID: "instructions", Name: "instructions of warps", Baseline: ptr(6946816.0), Candidate: ptr(2654208.0), Moved: true},
			{ID: "conflicts", Name: "bank conflicts for each access to shared memory", Baseline: ptr(0.0347), Candidate: ptr(0.0346), Noise: 0.1, Claimed: true},
			{ID: "tensor", Name: "tensor cores", Unit: "%", Candidate: ptr(0.0), Claimed: true},
		},
		Stalls: []why.Stall{{Reason: "long_scoreboard", Words: "global or local memory", Baseline: 61.3, Candidate: 44}},
	}
	v.Why = []gates.Why{
		{Shape: "mission", Sentence: facts.Explained{Explanation: x}.Sentence(), Explanation: x, Unsampled: "ncu prints no source: it needs 2024.1 or later", Lift: facts.BlockLift{Limit: "registers", Used: 84, Blocks: 2, Most: 80}.Sentence()},
		{Shape: "long", Sentence: "nothing was counted, and no figure of the builds differs", Explanation: why.Explanation{Static: true}, Note: "ncu: no permission: run as root"},
	}
	return v
}
