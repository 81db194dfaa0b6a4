package report

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
)

// Every kind of verdict is headed by the one thing that matters.
func TestHeadline(t *testing.T) {
	guarded := func(edit func(v *gates.Verdict)) *gates.Verdict {
		v := passing()
		for i := range v.Comparisons {
			v.Comparisons[i].Role, v.Comparisons[i].Goal = gates.RoleGuard, goalGuard
		}
		if edit != nil {
			edit(v)
		}
		return v
	}
	tailed := func(kind, detail string) *gates.Verdict {
		v := tooSlow()
		v.Comparisons[1] = timed("mission", "", gates.RoleTarget, goalTarget, gates.Failed, 100, 80, 0.01)
		v.Gates[3].Details = []facts.Detail{{Kind: kind, Shape: "mission", Text: detail}}
		return v
	}
	kind := tailed("", "")
	kind.Comparisons[1].KindLimit = ptr(-0.02)
	kind.Comparisons[1].Kinds = []gates.KindTime{{Kind: "normal", Baseline: 100, Candidate: 70, Speedup: around(0.43, 0.01)}, {Kind: "large", Baseline: 100, Candidate: 110, Speedup: around(-0.091, 0.01)}}
	several := regressed()
	several.Comparisons[0].Status = gates.Failed
	newKernel := passing()
	for i := range newKernel.Comparisons {
		newKernel.Comparisons[i].Baseline = nil
	}
	large := passing()
	large.Comparisons[1] = timed("mission", "", gates.RoleTarget, goalTarget, gates.Passed, 640, 100, 0.01)
	nameless := passing()
	nameless.Kernel = ""
	backticks := passing()
	backticks.Kernel = "a`b"
	for _, c := range []struct {
		name string
		v    *gates.Verdict
		want string // "_" is a space that does not break
	}{
		{"pass", passing(), "PASS · `sdpa_fp8` is 16.1_% faster on `mission`: 1.39 → 1.20_ms"},
		{"large", large, "PASS · `sdpa_fp8` is 6.40× faster on `mission`: 640 → 100_µs"},
		{"existing", existingFindings(), "PASS · `sdpa_fp8` is 16.1_% faster on `mission`: 1.39 → 1.20_ms; 3 of 12 cases fail as before, 1 sanitizer finding as before"},
		{"guards", guarded(nil), "PASS · `sdpa_fp8` is not slower on 3 shapes; the least gain is on `small`: 9.15 → 9.15_µs (0.0_%, limit 2_%_slower)"},
		{"one guard", guarded(func(v *gates.Verdict) { v.Comparisons = v.Comparisons[:1] }), "PASS · `sdpa_fp8` is not slower on `small`: 9.15 → 9.15_µs (0.0_%, limit 2_%_slower)"},
		{"new", newKernel, "PASS · `sdpa_fp8` is new: `mission` takes 1.20_ms"},
		{"slower", regressed(), "DEFER · `sdpa_fp8` is 6.3_%_slower on `long`: 18.6 → 19.9_ms (limit 2_%_slower)"},
		{"slower on several", several, "DEFER · `sdpa_fp8` is 6.3_%_slower on `long`: 18.6 → 19.9_ms (limit 2_%_slower); also on `small`"},
		{"too slow", tooSlow(), "DEFER · `sdpa_fp8` is too slow on `mission`: 657 → 656_µs (+0.2_%, goal +10_%)"},
		{"kind", kind, "DEFER · `sdpa_fp8` is 9.1_%_slower on `mission` with large inputs: 100 → 110_µs (each kind must reach −2_%)"},
		{"tail", tailed("slow-tail", "mission: the speedup of the p90 is −4.0_%"), "DEFER · `sdpa_fp8` on `mission`: the speedup of the p90 is −4.0_%"},
		{"carried", tailed(facts.DetailCapped, "mission: of which a kind of input counts for at most +15.4_%"), "DEFER · `sdpa_fp8` gains +25.0_% on `mission`, of which a kind of input counts for at most +15.4_%"},
		{"undecided", inconclusive(), "DEFER · `sdpa_fp8` is not decided on `mission` after 20 rounds: +11.3_% [+9.97_%,_+12.6_%], goal +10_%"},
		{"budget", overBudget(), "DEFER · `sdpa_fp8` is over budget: registers 152, limit ≤ 128, increase ≤_8; and 1 more"},
		{"build", unbuilt(), "DEFER · `sdpa_fp8` does not build: 2 errors in sdpa.cu"},
		{"correctness", wrong(), "DEFER · `sdpa_fp8`: the output is wrong in 10 of 12 cases; first: small, seed 0, normal inputs: 17 of 2048 elements are NaN"},
		{"sanitizer", raced(), "DEFER · `sdpa_fp8`: racecheck: a race between write and read of shared memory in sdpa.cu:123 and :140 (6,144 hazards); 1 more"},
		{"suspicious", suspicious(), "DEFER · `sdpa_fp8`: too good to be true: mission takes 1.021 µs, and the device needs at least 2.219 µs for this work"},
		{"same code", sameCode(), "DEFER · `sdpa_fp8`: too slow: the machine code is the same as the baseline's, so nothing was gained (asked speedup ≥_+10_% on mission)"},
		{"runner", faulty(), "ERROR · `sdpa_fp8`: the runner is not fit to measure: the A/A control on mission is +4.1_% [+3.6_%, +4.7_%] instead of 0: two copies of the baseline differ by more than the allowed 2_%"},
		{"no name", nameless, "PASS · the kernel is 16.1_% faster on `mission`: 1.39 → 1.20_ms"},
		{"a name with a backtick", backticks, "PASS · `a'b` is 16.1_% faster on `mission`: 1.39 → 1.20_ms"},
	} {
		if got := strings.ReplaceAll(Headline(c.v), string(nbsp), "_"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
