package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// fuller is the compared policy with every optional field that it lacks.
var fuller = strings.NewReplacer(
	`blocks_per_sm: ">= 2"`, `blocks_per_sm: ">= 2", spill_loads: "<= 4B", static_shared_memory: "<= 48KiB", dynamic_shared_memory: "<= 48KiB", shared_memory: {max: 64KiB, increase: "<= 1KiB"}, stack: "<= 8B", code_size: "<= 9KiB"`,
	"determinism: true,", `determinism: true, timeout: 5m, max_abs_error: "<= 0.5", mean_abs_error: "<= 0.5", bad_elements: "<= 2%", bit_parity: true,`,
	`end_to_end: {max_abs_error: "<= 0.1"}`, `end_to_end: {max_abs_error: "<= 0.1", mean_abs_error: "<= 0.2", bad_elements: "<= 3%", norm_error: "<= 4%"}`,
	`guard: {shapes: [small, long], speedup: ">= -2%"}`, `guard: {shapes: [small, long], speedup: ">= -2%", latency_reduction: ">= -3%", p50: "<= 8us", p90: "<= 9us"}`,
	"tails: {mean: 3%}", "tails: {mean: 3%, p90: 6%}\n    timeout: 7m\n    solo_shift: 4%",
	"profile: {shapes: [mission],", "profile: {shapes: [mission], timeout: 5m,",
	"secret_cases: 2, timeout", "secret_cases: 2, distributions: [normal, large], timeout",
).Replace(compared)

// TestCompareLists checks that removed entries and limits loosen, or change if the direction is
// unknown, and that flipped operators change. More entries of a list tighten, except for the inputs
// of the correctness gate, which are timed.
func TestCompareLists(t *testing.T) {
	old := parse(t, fuller)
	for _, e := range []edit{
		// A list, an alternative or a section that is removed.
		{`, any: [{sm: "> 1"}, {l2: "> 2"}]`, ``, "rules[*].gates.profile.any", "loosens", "tightens"},
		{`{sm: "> 1"}, {l2: "> 2"}`, `{sm: "> 1"}`, "rules[*].gates.profile.any", "tightens", "loosens"},
		{`{sm: "> 1"}, {l2: "> 2"}`, `{sm: "> 1"}, {l2: "> 3"}`, "rules[*].gates.profile.any", "changes", "changes"},
		{`any: [{sm: "> 1"}, {l2: "> 2"}]`, `any: [{tex: "> 0"}]`, "rules[*].gates.profile.any", "changes", "changes"},
		{`all: [{dram: "< 50%"}]`, `all: [{dram: "< 50%"}, {tex: "> 0"}]`, "rules[*].gates.profile.all[tex]", "tightens", "loosens"},
		{`all: [{dram: "< 50%"}]`, `all: [{dram: "< 50%"}, {dram: "> 0"}]`, "rules[*].gates.profile.all", "changes", "changes"},
		{"distributions: [normal, large], secret", "distributions: [normal, large, zero], secret", "rules[*].gates.correctness.distributions", "changes", "loosens"},
		{"distributions: [normal, large], secret", "distributions: [large, normal], secret", "rules[*].gates.correctness.distributions", "changes", "changes"},
		{"distributions: [normal, large], timeout", "distributions: [normal], timeout", "rules[*].gates.sanitize.distributions", "loosens", "tightens"},
		{"shapes: [small, mission]", "shapes: [small, long]", "rules[*].gates.correctness.shapes", "changes", "changes"},
		{"shapes: [small, mission]", "shapes: all", "rules[*].gates.correctness.shapes", "changes", "loosens"},
		{"shapes: [small, mission]", "shapes: first", "rules[*].gates.correctness.shapes", "changes", "changes"},
		{"sanitize: {shapes: [small]", "sanitize: {shapes: [small, mission]", "rules[*].gates.sanitize.shapes", "tightens", "loosens"},
		{"profile: {shapes: [mission]", "profile: {shapes: [mission, small]", "rules[*].gates.profile.shapes", "tightens", "loosens"},
		{"tails: {mean: 3%, p90: 6%}", "tails: none", "rules[*].gates.performance.tails", "loosens", "tightens"},
		{"tails: {mean: 3%, p90: 6%}", "tails: {mean: 3%, p90: none}", "rules[*].gates.performance.tails.p90", "loosens", "changes"},
		{"mean: 3%", "mean: none", "rules[*].gates.performance.tails.mean", "loosens", "changes"},

		// Operators: the opposite, and strict or not at the same value.
		{`dram: "< 50%"`, `dram: "> 60%"`, "rules[*].gates.profile.all[dram]", "changes", "changes"},
		{`dram: "< 50%"`, `dram: "> 50%"`, "rules[*].gates.profile.all[dram]", "changes", "changes"},
		{`dram: "< 50%"`, `dram: "<= 50%"`, "rules[*].gates.profile.all[dram]", "loosens", "tightens"},
		{`dram: "< 50%"`, `dram: "<= 49%"`, "rules[*].gates.profile.all[dram]", "tightens", "loosens"},
		{`blocks_per_sm: ">= 2"`, `blocks_per_sm: ">= 3"`, "rules[*].gates.ptxas.blocks_per_sm", "tightens", "loosens"},
		{`blocks_per_sm: ">= 2"`, `blocks_per_sm: "> 1"`, "rules[*].gates.ptxas.blocks_per_sm", "loosens", "tightens"},

		// Limits that are unset.
		{"max: 128, ", "", "rules[*].gates.ptxas.registers.max", "loosens", "tightens"},
		{`, spill_loads: "<= 4B"`, "", "rules[*].gates.ptxas.spill_loads.max", "loosens", "tightens"},
		{`, static_shared_memory: "<= 48KiB"`, "", "rules[*].gates.ptxas.static_shared_memory.max", "loosens", "tightens"},
		{`, dynamic_shared_memory: "<= 48KiB"`, "", "rules[*].gates.ptxas.dynamic_shared_memory.max", "loosens", "tightens"},
		{`, increase: "<= 1KiB"`, "", "rules[*].gates.ptxas.shared_memory.increase", "loosens", "tightens"},
		{`, stack: "<= 8B"`, "", "rules[*].gates.ptxas.stack.max", "loosens", "tightens"},
		{`, code_size: "<= 9KiB"`, "", "rules[*].gates.ptxas.code_size.max", "loosens", "tightens"},
		{`blocks_per_sm: ">= 2", `, "", "rules[*].gates.ptxas.blocks_per_sm", "loosens", "tightens"},
		{` max_abs_error: "<= 0.5",`, "", "rules[*].gates.correctness.max_abs_error", "loosens", "tightens"},
		{` mean_abs_error: "<= 0.5",`, "", "rules[*].gates.correctness.mean_abs_error", "loosens", "tightens"},
		// The default allows none.
		{` bad_elements: "<= 2%",`, "", "rules[*].gates.correctness.bad_elements", "tightens", "loosens"},
		{` bit_parity: true,`, "", "rules[*].gates.correctness.bit_parity", "loosens", "tightens"},
		{`, mean_abs_error: "<= 0.2"`, "", "rules[*].gates.correctness.end_to_end.mean_abs_error", "loosens", "tightens"},
		{`, bad_elements: "<= 3%"`, "", "rules[*].gates.correctness.end_to_end.bad_elements", "loosens", "tightens"},
		{`, norm_error: "<= 4%"`, "", "rules[*].gates.correctness.end_to_end.norm_error", "loosens", "tightens"},
		{`, latency_reduction: ">= -3%"`, "", "rules[*].gates.performance.guard.latency_reduction", "loosens", "changes"},
		{`, p90: "<= 9us"`, "", "rules[*].gates.performance.guard.p90", "loosens", "changes"},
		{`p50: "<= 8us", `, "", "rules[*].gates.performance.guard.p50", "loosens", "changes"},
		{`guard: {shapes: [small, long], speedup: ">= -2%", latency_reduction: ">= -3%", p50: "<= 8us", p90: "<= 9us"}`, "guard: none", "rules[*].gates.performance.guard", "loosens", "tightens"},
		{"solo_shift: 4%", "solo_shift: 5%", "rules[*].gates.performance.solo_shift", "loosens", "tightens"},
		{"secret_cases: 2,", "secret_cases: 1,", "rules[*].gates.sanitize.secret_cases", "loosens", "tightens"},
		{"secret_cases: 4,", "secret_cases: 5,", "rules[*].gates.correctness.secret_cases", "tightens", "loosens"},

		// A deadline that is unset has a different default, which this package does not know.
		{"true, timeout: 5m,", "true,", "rules[*].gates.correctness.timeout", "changes", "changes"},
		{"true, timeout: 5m,", "true, timeout: 4m,", "rules[*].gates.correctness.timeout", "tightens", "loosens"},
		{"[mission], timeout: 5m,", "[mission], timeout: 6m,", "rules[*].gates.profile.timeout", "loosens", "tightens"},
		{"large], timeout: 5m", "large], timeout: 6m", "rules[*].gates.sanitize.timeout", "loosens", "tightens"},
		{"timeout: 7m", "timeout: 8m", "rules[*].gates.performance.timeout", "loosens", "tightens"},

		// What a gate decides.
		{"sanitize: {shapes", "sanitize: {required: false, shapes", "rules[*].gates.sanitize.required", "loosens", "tightens"},
		{"profile: {shapes", "profile: {required: false, shapes", "rules[*].gates.profile.required", "loosens", "tightens"},
		{"  performance:\n", "  performance:\n    required: false\n", "rules[*].gates.performance.required", "loosens", "tightens"},
	} {
		t.Run(e.old+" to "+e.new, func(t *testing.T) {
			text := strings.Replace(fuller, e.old, e.new, 1)
			if text == fuller {
				t.Fatalf("%q is not in the policy", e.old)
			}
			edited := parse(t, text)
			for _, way := range []struct {
				old, new *policy.Policy
				is       compare.Direction
			}{{old, edited, e.is}, {edited, old, e.back}} {
				list := policy.Compare(way.old, way.new)
				if len(list) != 1 || list[0].Path != e.path || list[0].Direction != way.is {
					t.Errorf("got %+v, want %s at %s", list, way.is, e.path)
				}
			}
		})
	}
}

// TestCompareAnAddedTarget checks that an added target may remove a shape from the guard, whose
// bounds were different, so that the direction is unknown.
func TestCompareAnAddedTarget(t *testing.T) {
	const gate = "version: 1\ngates: {correctness: {norm_error: \"<= 1%%\"}, performance: {%s}}\nrules: [{name: default}]\n"
	const target, guard = `target: {shapes: [mission], speedup: ">= +10%"}`, `guard: {shapes: all, speedup: ">= -2%"}`
	other := `guard: {shapes: all, p50: "<= 5us"}`
	for _, c := range []struct {
		old, new string
		want     compare.Direction
	}{
		{guard, guard + ", " + target, compare.Changes},
		{other, other + ", " + target, compare.Changes},
	} {
		list := policy.Compare(parse(t, fmt.Sprintf(gate, c.old)), parse(t, fmt.Sprintf(gate, c.new)))
		i := slices.IndexFunc(list, func(d compare.Difference) bool { return strings.HasSuffix(d.Path, "performance.target") })
		if i < 0 || list[i].Direction != c.want {
			t.Errorf("%s: %+v, want %s", c.new, list, c.want)
		}
	}
}
