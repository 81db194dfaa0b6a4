package policy_test

var gateMistakes = []mistake{
	{"a gate that is not known", "  ptxas:", "  ptx:", []string{"8:3: gates.ptx: unknown field (did you mean ptxas?)"}},
	{"build that does not decide", "{timeout: 5m}", "{required: false}", []string{"7:21: gates.build.required: a kernel that does not compile passes nothing (delete it)"}},
	{"no time at all", "timeout: 5m", "timeout: 0s", []string{`7:20: gates.build.timeout: "0s" is not a time (write e.g. 30s)`}},
	{"build taken away", "build: {timeout: 5m}", "build: none", []string{`7:10: gates.build: is "none" (write a mapping with required, timeout)`}},

	{"energy: a lower limit", "  ptxas:", "  energy: '>= 5%'\n  ptxas:", []string{`8:11: gates.energy: ">= +5%" asks for an increase (write "<=")`}},
	{"energy: a word", "  ptxas:", "  energy: low\n  ptxas:", []string{`8:11: gates.energy: "low" has no comparison (write e.g. "<= 10%" or ">= 10%")`}},
	{"energy: in a mapping", "  ptxas:", "  energy: {increase: '<= -100%', confidence: 20%}\n  ptxas:", []string{`8:22: gates.energy.increase: "<= -100%" cannot be met (write e.g. "<= 5%")`, `8:46: gates.energy.confidence: 20% is outside 80% to 99.9% (write e.g. 95%)`}},
	{"cubin_growth: a lower limit", "  ptxas:", "  cubin_growth: {increase: '>= 5%'}\n  ptxas:", []string{`8:28: gates.cubin_growth.increase: ">= +5%" asks for an increase (write "<=")`}},
	{"precision: a lower limit", "  ptxas:", "  precision: {loss: '>= 4'}\n  ptxas:", []string{`8:21: gates.precision.loss: ">= 4" asks for a loss (write "<=")`}},
	{"precision: a limit that equal outputs miss", "  ptxas:", "  precision: {loss: '< 1'}\n  ptxas:", []string{
		`8:21: gates.precision.loss: "< 1" defers a change that computes what the baseline computes (write at least "<= 1")`}},
	{"ptxas: a budget without a limit", "{max: 128}", "{}", []string{"9:16: gates.ptxas.registers: sets no limit (write max or increase)"}},
	{"ptxas: a budget without its limits", "{max: 128}", "{max: none, increase: ~}", []string{"9:16: gates.ptxas.registers: sets no limit (write max or increase)"}},
	{"ptxas: a lower limit", `spill_stores: "<= 0B"`, `spill_stores: "< 8"`, []string{`10:19: gates.ptxas.spill_stores: "< 8B" is not an upper limit (write "<= 8B")`}},
	{"ptxas: a limit without its operator", `spill_stores: "<= 0B"`, "spill_stores: 0", []string{`10:19: gates.ptxas.spill_stores: "0" has no comparison (write e.g. "<= 48KiB" or ">= 48KiB")`}},
	{"ptxas: an increase that is asked for", "{max: 128}", `{increase: ">= 8"}`, []string{`9:27: gates.ptxas.registers.increase: ">= 8" asks for an increase (write "<=")`}},
	{"ptxas: low occupancy", `blocks_per_sm: ">= 2"`, `blocks_per_sm: "<= 2"`, []string{`11:20: gates.ptxas.blocks_per_sm: "<= 2" asks for low occupancy (write ">=")`}},
	{"ptxas: a list", "{max: 128}", "[128]", []string{"9:16: gates.ptxas.registers: is a list (write a mapping with max, increase)"}},
	{"ptxas: a typo in a budget", "{max: 128}", "{maximum: 128}", []string{"9:17: gates.ptxas.registers.maximum: unknown field (did you mean max?)"}},

	{"correctness: no shape", "[small, mission]", "[]", []string{"13:13: gates.correctness.shapes: is empty (write all, or [mission, long])"}},
	{"correctness: a shape twice", "[small, mission]", "[small, small]", []string{`13:21: gates.correctness.shapes[1]: "small" is named twice (delete one)`}},
	{"correctness: all in brackets", "[small, mission]", "[all, '', [a]]", []string{
		"13:14: gates.correctness.shapes[0]: all is not the name of a shape (write shapes: all, without brackets)",
		"13:19: gates.correctness.shapes[1]: is empty (write the name of a shape)",
		"13:23: gates.correctness.shapes[2]: is a list (write a text)"}},
	{"correctness: shapes in a mapping", "[small, mission]", "{small: 1}", []string{"13:13: gates.correctness.shapes: is a mapping (write a list: [a, b])"}},
	{"correctness: no seed", "[0, 1]", "[]", []string{"14:12: gates.correctness.seeds: is empty (write e.g. [0, 1, 2])"}},
	{"correctness: seeds twice, and negative", "[0, 1]", "[0, -1, 0]", []string{
		"14:16: gates.correctness.seeds[1]: -1 is negative (write e.g. [0, 1, 2])",
		"14:20: gates.correctness.seeds[2]: 0 is named twice (delete one)"}},
	{"correctness: no distribution", "[normal]", "[]", []string{"15:20: gates.correctness.distributions: is empty (write e.g. [normal, uniform, dominant])"}},
	{"correctness: the tolerance taken away", `norm_error: "<= 1%"`, "norm_error: \"<= 1%\"\n    bad_elements: none", []string{
		`17:19: gates.correctness.bad_elements: takes the manifest's tolerance away, and nothing else bounds an element (add e.g. max_abs_error: "<= 0.06", or delete it)`}},
	{"correctness: distributions twice, and unknown", "[normal]", "[normal, gauss]", []string{
		`15:29: gates.correctness.distributions[1]: "gauss" is not one of normal, uniform, dominant, large, constant, zero, ones, peaks, edges, infinite, recorded`}},
	{"correctness: a distribution twice", "[normal]", "[normal, normal]", []string{`15:29: gates.correctness.distributions[1]: "normal" is named twice (delete one)`}},
	{"correctness: more secrets than time", "distributions: [normal]", "secret_cases: 100000", []string{"15:19: gates.correctness.secret_cases: 100000 is more than 1000"}},
	{"correctness: no relative bound", `norm_error: "<= 1%"`, `max_abs_error: "<= 0.06"`, []string{
		`13:5: gates.correctness.norm_error: is required: an absolute bound alone passes a kernel that writes zeros (write e.g. norm_error: "<= 1%")`}},
	{"correctness: a relative bound that zeros pass", `norm_error: "<= 1%"`, `norm_error: "<= 100%"`, []string{
		`16:17: gates.correctness.norm_error: "<= 100%" passes a kernel that writes zeros (write e.g. "<= 1%")`}},
	{"correctness: large errors are asked for", `norm_error: "<= 1%"`, `norm_error: ">= 1%"`, []string{
		`16:17: gates.correctness.norm_error: ">= +1%" asks for a large error (write "<=")`}},
	{"correctness: exact results fail", `norm_error: "<= 1%"`, `norm_error: "< 0%"`, []string{
		`16:17: gates.correctness.norm_error: "< 0%" can never be met: no error is below 0 (write e.g. "<= 0")`}},
	{"correctness: large errors end to end", `{max_abs_error: "<= 0.12"}`, `{max_abs_error: "> 0.12", mean_abs_error: "<= -1"}`, []string{
		`17:33: gates.correctness.end_to_end.max_abs_error: "> 0.12" asks for a large error (write "<=")`,
		`17:59: gates.correctness.end_to_end.mean_abs_error: "<= -1" can never be met: no error is below 0 (write e.g. "<= 0")`}},
	{"correctness: nothing end to end", `{max_abs_error: "<= 0.12"}`, "{}", []string{
		`17:17: gates.correctness.end_to_end: bounds nothing (write e.g. max_abs_error: "<= 0.06", or end_to_end: none)`}},

	{"profile: nothing", `    any:
      - dram__throughput.avg.pct_of_peak_sustained_elapsed: "< 50%"
`, "", []string{"28:5: gates.profile: asks for no metric (write all or any)"}},
	{"profile: two metrics in one", `: "< 50%"`, `: "< 50%"
        sm__throughput: "> 1"`, []string{
		`30:9: gates.profile.any[0]: is not one metric with its condition (write e.g. - sm__throughput.avg.pct_of_peak_sustained_elapsed: ">= 50%")`}},
	{"profile: a name alone", `dram__throughput.avg.pct_of_peak_sustained_elapsed: "< 50%"`, "dram__throughput", []string{
		`30:9: gates.profile.any[0]: is not one metric with its condition (write e.g. - sm__throughput.avg.pct_of_peak_sustained_elapsed: ">= 50%")`}},
	{"profile: no metric's name", "dram__throughput.avg.", "--dram,", []string{
		"30:9: gates.profile.any[0].--dram,pct_of_peak_sustained_elapsed: is not a metric name (write e.g. sm__throughput.avg.pct_of_peak_sustained_elapsed)"}},
	{"profile: no condition", `"< 50%"`, "50", []string{
		`30:61: gates.profile.any[0].dram__throughput.avg.pct_of_peak_sustained_elapsed: "50" has no comparison (write e.g. "<= 0.06" or ">= 0.06")`}},
}

var performanceMistakes = []mistake{
	{"nothing is asked", `    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
`, "", []string{"19:5: gates.performance: asks for nothing (write target, guard or both)"}},
	{"a goal without a metric", `, speedup: ">= +10%"`, "", []string{`20:13: gates.performance.target: names no metric (write e.g. speedup: ">= +10%")`}},
	{"a slow kernel is asked for", `speedup: ">= +10%"`, `speedup: "<= 10%", latency_reduction: "< 9%", p50: ">= 5us", p90: "> 6us"`, []string{
		`20:42: gates.performance.target.speedup: "<= 10%" asks for a slow kernel (write ">=")`,
		`20:71: gates.performance.target.latency_reduction: "< 9%" asks for a slow kernel (write ">=")`,
		`20:84: gates.performance.target.p50: ">= 5us" asks for a slow kernel (write "<=")`,
		`20:99: gates.performance.target.p90: "> 6us" asks for a slow kernel (write "<=")`}},
	{"what can never fail, or never be met", `speedup: ">= +10%"`, `speedup: ">= -100%", latency_reduction: ">= 100%", p50: "<= 0us"`, []string{
		`20:42: gates.performance.target.speedup: ">= -100%" can never fail: a speedup is always above -100% (write e.g. ">= -2%")`,
		`20:73: gates.performance.target.latency_reduction: ">= +100%" can never be met: a reduction is always below 100% (write e.g. ">= 9%")`,
		`20:89: gates.performance.target.p50: "<= 0us" can never be met: every kernel takes time (write e.g. "<= 5us")`}},
	{"below_best: a slow kernel", `speedup: ">= +10%"`, `speedup: ">= +10%", below_best: ">= 8%"`, []string{
		`20:65: gates.performance.target.below_best: ">= +8%" asks for a slow kernel (write "<=")`}},
	{"below_best: above the best", `speedup: ">= +10%"`, `speedup: ">= +10%", below_best: "<= -8%"`, []string{
		`20:65: gates.performance.target.below_best: "<= -8%" can never be met: a kernel at its best is 0% below it (write e.g. "<= 8%")`}},
	{"below_best: everything", `speedup: ">= +10%"`, `speedup: ">= +10%", below_best: "<= 100%"`, []string{
		`20:65: gates.performance.target.below_best: "<= 100%" can never fail: every kernel is less than 100% below its best (write e.g. "<= 8%")`}},
	{"below_best: alone", `speedup: ">= +10%"`, `below_best: "<= 8%"`, []string{
		`20:13: gates.performance.target: names no metric (write e.g. speedup: ">= +10%")`}},
	{"weighted: of named shapes", `speedup: ">= +10%"`, `weighted: ">= +3%"`, []string{
		`20:22: gates.performance.target.shapes: selects shapes for conditions that are not here: weighted counts every shape that has a weight (delete it, or add e.g. speedup: ">= +10%")`}},
	{"weighted: a slow kernel", `speedup: ">= +10%"`, `speedup: ">= +10%", weighted: "<= 3%"`, []string{
		`20:63: gates.performance.target.weighted: "<= 3%" asks for a slow kernel (write ">=")`}},
	{"weighted: everything", `speedup: ">= +10%"`, `speedup: ">= +10%", weighted: ">= -100%"`, []string{
		`20:63: gates.performance.target.weighted: ">= -100%" can never fail: a speedup is always above -100% (write e.g. ">= -2%")`}},
	{"weighted: no per cent", `speedup: ">= +10%"`, `speedup: ">= +10%", weighted: ">= 3"`, []string{
		`20:63: gates.performance.target.weighted: ">= 3": "3" is not a percentage (write ">= 3%")`}},
	{"weighted: twice", `    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
`, `    target: {weighted: ">= +3%"}
    guard: {shapes: all, speedup: ">= -2%", weighted: ">= -1%"}
`, []string{`21:55: gates.performance.guard.weighted: ">= -1%" bounds the same figure as the target (delete one)`}},
	{"weighted: below_best of no shape", `shapes: [mission], speedup: ">= +10%"`, `weighted: ">= +3%", below_best: "<= 8%"`, []string{
		`20:13: gates.performance.target: names no metric (write e.g. speedup: ">= +10%")`}},
	{"baseline: two commits", "baseline: base", "baseline: ref:a..b", []string{
		`19:15: gates.performance.baseline: "ref:a..b" is not a baseline (write base, best, ref:main, tag:v1.2 or variant:stage1)`}},
	{"baseline: an option", "baseline: base", "baseline: ref:--all", []string{
		`19:15: gates.performance.baseline: "ref:--all" is not a baseline (write base, best, ref:main, tag:v1.2 or variant:stage1)`}},
	{"confidence: too low", "confidence: 95%", "confidence: 50%", []string{"22:17: gates.performance.confidence: 50% is outside 80% to 99.9% (write e.g. 95%)"}},
	{"confidence: zero is no default", "confidence: 95%", "confidence: 0%", []string{"22:17: gates.performance.confidence: 0% is outside 80% to 99.9% (write e.g. 95%)"}},
	{"confidence: without its sign", "confidence: 95%", "confidence: 0.95", []string{`22:17: gates.performance.confidence: "0.95" is not a percentage (write 95% or 0.95%)`}},
	{"control: zero is no default", "control: 2%", "control: 0%", []string{"26:14: gates.performance.control: 0% is outside 0.1% to 50% (write e.g. 2%)"}},
	{"solo shift: negative", "control: 2%", "solo_shift: -1%", []string{"26:17: gates.performance.solo_shift: -1% is outside 0.1% to 1000% (write e.g. 2%)"}},
	{"pairs: zero is no default", "pairs: 50", "pairs: 0", []string{"25:12: gates.performance.pairs: 0 is outside 4 to 100000 (write e.g. 50)"}},
	{"pairs: too many", "pairs: 50", "pairs: 1000000", []string{"25:12: gates.performance.pairs: 1000000 is outside 4 to 100000 (write e.g. 50)"}},
	{"rounds: one too few", "{min: 6, max: 20}", "{min: 5, max: 20}", []string{
		"23:19: gates.performance.rounds.min: 5 rounds cannot show the noise between processes (write at least 6)"}},
	{"tails: negative", "control: 2%", "tails: {mean: -1%}", []string{"26:19: gates.performance.tails.mean: -1% is outside 0% to 50% (write e.g. 3%, or none)"}},
	{"tails: a word that is not none", "control: 2%", "tails: {p90: off}", []string{`26:18: gates.performance.tails.p90: "off" is not a percentage (write e.g. 10%)`}},
	{"rounds: too few", "{min: 6, max: 20}", "{min: 0, max: 20}", []string{
		"23:19: gates.performance.rounds.min: 0 rounds cannot show the noise between processes (write at least 6)"}},
	{"rounds: the default end gives way", "rounds: {min: 6, max: 20}\n    interims: [6, 12, 20]", "rounds: {max: 2}", []string{
		"23:13: gates.performance.rounds.min: 2 rounds cannot show the noise between processes (write at least 6)"}},
	{"rounds: the wrong way round", "{min: 6, max: 20}", "{min: 20, max: 6}", []string{
		"23:28: gates.performance.rounds.max: 6 is less than rounds.min 20 (write at least 20)"}},
	{"rounds: too many", "{min: 6, max: 20}", "{min: 6, max: 2000}", []string{"23:27: gates.performance.rounds.max: 2000 rounds are too many (write at most 1000)"}},
	{"interims: none", "[6, 12, 20]", "[]", []string{"24:15: gates.performance.interims: is empty (write e.g. [6, 13, 20], or delete it)"}},
	{"interims: not ascending", "[6, 12, 20]", "[6, 6, 20]", []string{"24:15: gates.performance.interims: do not ascend (write e.g. [6, 13, 20])"}},
	{"interims: before the first round", "[6, 12, 20]", "[4, 12, 20]", []string{
		"24:15: gates.performance.interims: run from 4 to 20, but rounds from 6 to 20 (the first is not before rounds.min, the last is rounds.max)"}},
	{"interims: not to the last round", "[6, 12, 20]", "[6, 12]", []string{
		"24:15: gates.performance.interims: run from 6 to 12, but rounds from 6 to 20 (the first is not before rounds.min, the last is rounds.max)"}},
	{"without correctness", `  correctness:
    shapes: [small, mission]
    seeds: [0, 1]
    distributions: [normal]
    norm_error: "<= 1%"
    end_to_end: {max_abs_error: "<= 0.12"}
`, "", []string{"13:5: gates.performance: a kernel's speed is judged only after its output (add a required correctness gate, or write performance: none)"}},
	{"with correctness that informs only", "shapes: [small, mission]", "required: false", []string{
		"13:5: gates.correctness: a kernel's speed is judged only after its output (add a required correctness gate, or write performance: none)"}},
	{"a rule that takes correctness away", "{labels: [perf]}", "{labels: [perf]}\n    gates: {correctness: none}", []string{
		"34:26: rules[0].gates.correctness: a kernel's speed is judged only after its output (add a required correctness gate, or write performance: none)"}},
	{"a rule that takes both goals away", "{labels: [perf]}", "{labels: [perf]}\n    gates: {performance: {target: none, guard: none}}", []string{
		"34:26: rules[0].gates.performance: asks for nothing (write target, guard or both)"}},
	{"a rule whose interims do not fit the shared rounds", "{labels: [perf]}", "{labels: [perf]}\n    gates: {performance: {interims: [6, 30]}}", []string{
		"34:37: rules[0].gates.performance.interims: run from 6 to 30, but rounds from 6 to 20 (the first is not before rounds.min, the last is rounds.max)"}},
	{"a rule that asks for zero where the shared gates do not", "{labels: [perf]}", "{labels: [perf]}\n    gates: {performance: {confidence: 0%}}", []string{
		"34:39: rules[0].gates.performance.confidence: 0% is outside 80% to 99.9% (write e.g. 95%)"}},
	{"a shared mistake is told once, whatever rules lie over it", "control: 2%", "control: 0%\n    timeout: 1s", []string{
		"26:14: gates.performance.control: 0% is outside 0.1% to 50% (write e.g. 2%)"}},
}
