package policy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const compared = `version: 1
check: kernelgate
devices: [l4]
toolchains: {triton: {version: 3.6.0}}
commands: {override: maintain}
forks: {run: after-approval}
gates:
  build: {timeout: 5m}
  ptxas: {registers: {max: 128, increase: "<= 8"}, spill_stores: "<= 0B", blocks_per_sm: ">= 2"}
  correctness: {shapes: [small, mission], seeds: [0, 1], distributions: [normal, large], secret_cases: 4, norm_error: "<= 1%", determinism: true, end_to_end: {max_abs_error: "<= 0.1"}}
  precision: {loss: "<= 4"}
  sanitize: {shapes: [small], tools: [memcheck, racecheck], secret_cases: 2, timeout: 5m}
  performance:
    baseline: base
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: [small, long], speedup: ">= -2%"}
    tails: {mean: 3%}
    confidence: 95%
    rounds: {min: 6, max: 20}
    interims: [6, 12, 20]
    pairs: 50
    control: 2%
    budget: 5m
  profile: {shapes: [mission], all: [{dram: "< 50%"}], any: [{sm: "> 1"}, {l2: "> 2"}]}
rules:
  - name: tidy
    when: {labels: [tidy]}
    gates: {performance: {target: {speedup: ">= +1%"}}}
  - name: default
`

// An edit is an edit of the policy, and the difference that it makes.
type edit struct {
	old, new string
	path     string
	is, back compare.Direction // back: from new to old
}

var edits = []edit{
	{"check: kernelgate", "check: other", "check", "changes", "changes"},
	{"devices: [l4]", "devices: [l4, cpu]", "devices", "changes", "changes"},
	{"triton: {version: 3.6.0}", "triton: {version: 3.9.0}", "toolchains.triton", "changes", "changes"},
	{"triton: {version: 3.6.0}", "triton: {version: 3.6.0}, nvcc: {version: 13.0.88}", "toolchains.nvcc", "changes", "changes"},
	{"version: 3.6.0}", "version: 3.6.0, digest: \"sha256:" + strings.Repeat("0", 64) + "\"}", "toolchains.triton", "changes", "changes"},
	{"override: maintain", "override: write", "commands.override", "loosens", "tightens"},
	{"commands: {", "commands: {approve-policy: admin, ", "commands.approve-policy", "tightens", "loosens"},
	{"run: after-approval", "run: never", "forks.run", "tightens", "loosens"},
	{`loss: "<= 4"`, `loss: "<= 10"`, "rules[*].gates.precision.loss", "loosens", "tightens"},
	{"precision: {", "precision: {required: false, ", "rules[*].gates.precision.required", "loosens", "tightens"},
	{"{timeout: 5m}", "{timeout: 6m}", "rules[*].gates.build.timeout", "loosens", "tightens"},
	{"max: 128", "max: 100", "rules[*].gates.ptxas.registers.max", "tightens", "loosens"},
	{`increase: "<= 8"`, "increase: none", "rules[*].gates.ptxas.registers.increase", "loosens", "tightens"},
	{`spill_stores: "<= 0B"`, `spill_stores: "<= 4B"`, "rules[*].gates.ptxas.spill_stores.max", "loosens", "tightens"},
	{`blocks_per_sm: ">= 2"`, `blocks_per_sm: "> 2"`, "rules[*].gates.ptxas.blocks_per_sm", "tightens", "loosens"},
	{"  ptxas: {reg", "  ptxas: {required: false, reg", "rules[*].gates.ptxas.required", "loosens", "tightens"},
	{"shapes: [small, mission]", "shapes: [mission]", "rules[*].gates.correctness.shapes", "loosens", "changes"},
	{"seeds: [0, 1]", "seeds: [0, 1, 2]", "rules[*].gates.correctness.seeds", "changes", "loosens"},
	{"distributions: [normal, large]", "distributions: [normal, zero]", "rules[*].gates.correctness.distributions", "changes", "changes"},
	{"secret_cases: 4", "secret_cases: 0", "rules[*].gates.correctness.secret_cases", "loosens", "tightens"},
	{`norm_error: "<= 1%"`, `norm_error: "<= 99%"`, "rules[*].gates.correctness.norm_error", "loosens", "tightens"},
	{"determinism: true", "determinism: false", "rules[*].gates.correctness.determinism", "loosens", "tightens"},
	{"determinism: true", "determinism: true, existing: defer", "rules[*].gates.correctness.existing", "tightens", "loosens"},
	{"secret_cases: 2,", "secret_cases: 2, existing: defer,", "rules[*].gates.sanitize.existing", "tightens", "loosens"},
	{`end_to_end: {max_abs_error: "<= 0.1"}`, "end_to_end: none", "rules[*].gates.correctness.end_to_end.max_abs_error", "loosens", "tightens"},
	{"tools: [memcheck, racecheck]", "tools: [memcheck]", "rules[*].gates.sanitize.tools", "loosens", "tightens"},
	{"secret_cases: 2,", "secret_cases: 2, missing_tool: inform,", "rules[*].gates.sanitize.missing_tool", "loosens", "tightens"},
	{">= +10%", ">= +5%", "rules[default].gates.performance.target.speedup", "loosens", "tightens"},
	{">= +1%", "> +1%", "rules[tidy].gates.performance.target.speedup", "tightens", "loosens"},
	{"shapes: [mission], speedup", "shapes: [mission, wide], speedup", "rules[*].gates.performance.target.shapes", "changes", "loosens"},
	{"shapes: [small, long]", "shapes: all", "rules[*].gates.performance.guard.shapes", "changes", "loosens"},
	{`>= -2%"`, `>= -2%", p50: "<= 9us"`, "rules[*].gates.performance.guard.p50", "changes", "loosens"},
	{`>= -2%"`, `>= -2%", below_best: "<= 8%"`, "rules[*].gates.performance.guard.below_best", "tightens", "loosens"},
	{`>= -2%"`, `>= -2%", weighted: ">= -1%"`, "rules[*].gates.performance.guard.weighted", "changes", "loosens"},
	{"baseline: base", "baseline: best", "rules[*].gates.performance.baseline", "changes", "changes"},
	{"mean: 3%", "mean: 9%", "rules[*].gates.performance.tails.mean", "loosens", "tightens"},
	{"confidence: 95%", "confidence: 80%", "rules[*].gates.performance.confidence", "loosens", "changes"},
	{"pairs: 50", "pairs: 20", "rules[*].gates.performance.pairs", "loosens", "changes"},
	{"interims: [6, 12, 20]", "interims: [6, 20]", "rules[*].gates.performance.interims", "changes", "changes"},
	{"control: 2%", "control: 1%", "rules[*].gates.performance.control", "tightens", "loosens"},
	{"budget: 5m", "budget: 9m", "rules[*].gates.performance.budget", "loosens", "tightens"},
	{"budget: 5m", "budget: 5m\n    explain: none", "rules[*].gates.performance.explain", "changes", "changes"},
	{"budget: 5m", "budget: 5m\n    roofline: false", "rules[*].gates.performance.roofline", "loosens", "tightens"},
	{"budget: 5m", "budget: 5m\n    secret_shape: false", "rules[*].gates.performance.secret_shape", "loosens", "changes"},
	{"baseline: base", "baseline: ref:old", "rules[*].gates.performance.baseline", "changes", "changes"},
	{`dram: "< 50%"`, `dram: "< 60%"`, "rules[*].gates.profile.all[dram]", "loosens", "tightens"},
	{`{l2: "> 2"}`, `{l2: "> 2"}, {tex: "> 0"}`, "rules[*].gates.profile.any", "loosens", "tightens"},
	{"labels: [tidy]", "labels: [tidy, perf]", "rules[tidy].when", "changes", "changes"},
	{"labels: [tidy]", `labels: ["tidy, perf"]`, "rules[tidy].when", "changes", "changes"},
}

func TestCompare(t *testing.T) {
	old := parse(t, compared)
	for _, e := range edits {
		text := strings.Replace(compared, e.old, e.new, 1)
		if text == compared {
			t.Fatalf("%q is not in the policy", e.old)
		}
		edited := parse(t, text)
		if there := policy.Compare(old, edited); len(there) != 1 || there[0].Path != e.path || there[0].Direction != e.is || there.Loosens() != (e.is != compare.Tightens) {
			t.Errorf("%q → %q: %+v, want %s at %s", e.old, e.new, there, e.is, e.path)
		}
		if back := policy.Compare(edited, old); len(back) != 1 || back[0].Path != e.path || back[0].Direction != e.back {
			t.Errorf("%q → %q: %+v, want %s at %s", e.new, e.old, back, e.back, e.path)
		}
	}
}

// TestCompareWithNothing compares with a policy that asks for nothing.
func TestCompareWithNothing(t *testing.T) {
	list := policy.Compare(parse(t, compared), parse(t, "version: 1\ngates: {}\nrules: [{name: default}]\n"))
	var lines []string
	for _, d := range list {
		lines = append(lines, fmt.Sprintf("%s %s: %.40s → %s", d.Direction, d.Path, d.Old, d.New))
	}
	want := `changes devices: l4 → none
changes toolchains.triton: 3.6.0 → none
changes rules: tidy, default → default
loosens rules[default].gates.build.timeout: 5m → 10m
loosens rules[default].gates.ptxas: registers <= 128, registers increase <=  → none
loosens rules[default].gates.correctness: small, mission × seeds 0, 1 × normal, la → none
loosens rules[default].gates.precision: norm error of every output <= 4 times th → none
loosens rules[default].gates.sanitize: memcheck, racecheck find nothing on smal → none
loosens rules[default].gates.performance: against base: speedup >= +10% on mission → none
loosens rules[default].gates.profile: on mission: dram < 50, and one of sm > 1 → none`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestCompareBackAndForth checks for any two policies made from the edits that a policy equals
// itself, and that a difference that tightens one way loosens the other.
func TestCompareBackAndForth(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	some := func() string {
		text := compared
		for _, e := range edits {
			if rng.IntN(6) == 0 {
				text = strings.Replace(text, e.old, e.new, 1)
			}
		}
		return text
	}
	for range 40 {
		a, b := some(), some()
		old, edited := parse(t, a), parse(t, b)
		if same := policy.Compare(old, parse(t, a)); len(same) != 0 {
			t.Fatalf("a policy differs from itself: %v", same)
		}
		there, back := policy.Compare(old, edited), policy.Compare(edited, old)
		if len(there) != len(back) {
			t.Fatalf("%d differences there, %d back:\n%v\n%v", len(there), len(back), there, back)
		}
		for i, d := range there {
			r := back[i]
			if r.Path != d.Path || r.Old != d.New || r.New != d.Old {
				t.Fatalf("%+v there, %+v back", d, r)
			}
			if d.Direction == compare.Tightens && r.Direction != compare.Loosens || r.Direction == compare.Tightens && d.Direction != compare.Loosens {
				t.Errorf("%s: %s there and %s back", d.Path, d.Direction, r.Direction)
			}
		}
	}
}

// TestCompareSeesEveryField checks that no field can change silently, including fields that the
// language gets later.
func TestCompareSeesEveryField(t *testing.T) {
	fields := 0
	for _, text := range []string{compared, everything} {
		var visit func(v reflect.Value, path string, at func(*policy.Policy) reflect.Value)
		visit = func(v reflect.Value, path string, at func(*policy.Policy) reflect.Value) {
			child := func(get func(reflect.Value) reflect.Value) func(*policy.Policy) reflect.Value {
				return func(p *policy.Policy) reflect.Value { return get(at(p)) }
			}
			switch v.Kind() {
			case reflect.Struct:
				if path == "gates" || v.Type() == reflect.TypeFor[policy.Regexp]() {
					return // what rules start from; rules are compared as they hold
				}
				for i := range v.NumField() {
					f := v.Type().Field(i)
					name := strings.Trim(path+"."+strings.ToLower(f.Name), ".")
					visit(v.Field(i), name, child(func(v reflect.Value) reflect.Value { return v.Field(i) }))
				}
			case reflect.Pointer:
				if !v.IsNil() {
					visit(v.Elem(), path, child(reflect.Value.Elem))
				}
			case reflect.Slice:
				for i := range v.Len() {
					visit(v.Index(i), fmt.Sprintf("%s[%d]", path, i), child(func(v reflect.Value) reflect.Value { return v.Index(i) }))
				}
			default:
				fields++
				edited := parse(t, text)
				switch f := at(edited); f.Kind() {
				case reflect.String:
					f.SetString(f.String() + "x")
				case reflect.Bool:
					f.SetBool(!f.Bool())
				case reflect.Int, reflect.Int64:
					f.SetInt(f.Int() + 1)
				case reflect.Float64:
					f.SetFloat(f.Float() + 0.001)
				default:
					t.Fatalf("%s is a %s", path, f.Kind())
				}
				if list := policy.Compare(parse(t, text), edited); len(list) == 0 {
					t.Errorf("%s was changed in silence", path)
				}
			}
		}
		p := parse(t, text)
		visit(reflect.ValueOf(p).Elem(), "", func(p *policy.Policy) reflect.Value { return reflect.ValueOf(p).Elem() })
	}
	if fields < 120 {
		t.Errorf("%d fields were visited: that is not all", fields)
	}
}
