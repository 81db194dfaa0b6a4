package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A ruleText is a rule as a test writes it.
type ruleText struct{ name, when, enforce string }

// enforcing returns a policy with these rules.
func enforcing(rules ...ruleText) string {
	var b strings.Builder
	b.WriteString("version: 1\ngates: {build: {timeout: 1m}}\nrules:\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "  - name: %s\n", r.name)
		if r.when != "" {
			fmt.Fprintf(&b, "    when: %s\n", r.when)
		}
		if r.enforce != "" {
			fmt.Fprintf(&b, "    enforce: %s\n", r.enforce)
		}
	}
	return b.String()
}

// Whatever condition an author can choose, a rule that does not block takes no change away from one
// that does.
func TestRulesOnTrialTakeNothingAway(t *testing.T) {
	yes := true
	for _, enforce := range []string{"shadow", "warn"} {
		for _, c := range []struct {
			when string
			is   policy.Change
		}{
			{"{labels: [easy]}", policy.Change{Labels: []string{"easy"}}},
			{"{title: \"^perf:\"}", policy.Change{Title: "perf: anything"}},
			{"{draft: true}", policy.Change{Draft: yes}},
			{"{paths: [\"**\"]}", policy.Change{Paths: []string{"kernels/k/k.cu"}}},
			{"{kernels: [\"k*\"]}", policy.Change{Kernel: "k"}},
			{"{branches: [\"**\"]}", policy.Change{Branch: "side"}},
		} {
			p := parse(t, enforcing(ruleText{"easy", c.when, enforce}, ruleText{name: "default"}))
			if got := p.RuleFor(c.is); got.Name != "default" || !got.Enforce.Blocks() {
				t.Errorf("%s %s: rule %s applies", enforce, c.when, got.Name)
			}
			if trial := p.TrialFor(c.is); trial == nil || trial.Name != "easy" || string(trial.Enforce) != enforce {
				t.Errorf("%s %s: %+v is tried", enforce, c.when, trial)
			}
			if other := p.TrialFor(policy.Change{Branch: "", Kernel: "other"}); other != nil && !strings.Contains(c.when, "branches") {
				t.Errorf("%s %s: %s is tried on a change that it is not for", enforce, c.when, other.Name)
			}
		}
	}
}

func TestRuleForWithEnforce(t *testing.T) {
	perf := policy.Change{Labels: []string{"perf"}, Kernel: "sdpa"}
	for _, c := range []struct {
		name           string
		rules          []ruleText
		applies, trial string
	}{
		{"the default blocks", []ruleText{{"perf", "{labels: [perf]}", "shadow"}, {"default", "", "block"}}, "default", "perf"},
		{"a rule between them blocks", []ruleText{{"perf", "{labels: [perf]}", "warn"}, {"sdpa", "{kernels: [sdpa]}", ""}, {"default", "", ""}}, "sdpa", "perf"},
		{"the first of two is tried", []ruleText{{"perf", "{labels: [perf]}", "warn"}, {"sdpa", "{kernels: [sdpa]}", "shadow"}, {"default", "", ""}}, "default", "perf"},
		{"a rule behind the one that applies is not tried", []ruleText{{"perf", "{labels: [perf]}", ""}, {"sdpa", "{kernels: [sdpa]}", "shadow"}, {"default", "", ""}}, "perf", ""},
		{"nothing blocks", []ruleText{{"perf", "{labels: [perf]}", "shadow"}, {"default", "", "warn"}}, "perf", ""},
		{"nothing blocks this kernel", []ruleText{{"gemm", "{kernels: [gemm]}", "block"}, {"default", "", "shadow"}}, "default", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, enforcing(c.rules...))
			trial := ""
			if r := p.TrialFor(perf); r != nil {
				trial = r.Name
			}
			if got := p.RuleFor(perf).Name; got != c.applies || trial != c.trial {
				t.Errorf("rule %s applies and %q is tried, want %s and %q", got, trial, c.applies, c.trial)
			}
		})
	}
}

// A blocking rule that an author can avoid, in front of a default rule that does not block, blocks
// nobody.
func TestEnforceMistakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []ruleText
		want  string // "" for none
	}{
		{"labels", []ruleText{{"perf", "{labels: [perf]}", "block"}, {"default", "", "shadow"}},
			`p.yaml:5:11: rules[0].when: a change avoids this rule by its labels, because the default rule does not block (let the default rule block, or use only branches and kernels here)`},
		{"title and draft", []ruleText{{"perf", "{title: \"^perf\", draft: false, kernels: [k]}", ""}, {"default", "", "warn"}},
			`p.yaml:5:11: rules[0].when: a change avoids this rule by its title and draft state, because the default rule does not block (let the default rule block, or use only branches and kernels here)`},
		{"paths", []ruleText{{"attention", "{paths: [kernels/attention/**]}", ""}, {"default", "", "warn"}},
			`p.yaml:5:11: rules[0].when: a change avoids this rule by its paths, because the default rule does not block (let the default rule block, or use only branches and kernels here)`},
		{"branches and kernels", []ruleText{{"perf", "{branches: [main], kernels: [k]}", "block"}, {"default", "", "shadow"}}, ""},
		{"a rule on trial", []ruleText{{"perf", "{labels: [perf]}", "warn"}, {"default", "", "shadow"}}, ""},
		{"a blocking default", []ruleText{{"perf", "{labels: [perf]}", "block"}, {"default", "", "block"}}, ""},
		{"a word of GitHub's", []ruleText{{"default", "", "evaluate"}}, `p.yaml:5:14: rules[0].enforce: "evaluate" is not one of shadow, warn, block`},
		{"nothing", []ruleText{{"default", "", "none"}}, `p.yaml:5:14: rules[0].enforce: "none" is not one of shadow, warn, block`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(mistakes(t, "p.yaml", enforcing(c.rules...)), "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCompareEnforce(t *testing.T) {
	of := func(perf, last string) *policy.Policy {
		return parse(t, enforcing(ruleText{"perf", "{kernels: [k]}", perf}, ruleText{"default", "", last}))
	}
	for _, c := range []struct {
		rule, old, new string
		want           compare.Direction
	}{
		{"perf", "block", "warn", compare.Loosens}, {"perf", "block", "shadow", compare.Loosens}, {"perf", "warn", "shadow", compare.Loosens},
		{"perf", "shadow", "warn", compare.Tightens},
		// It takes changes away from the default rule, which may ask for more.
		{"perf", "shadow", "block", compare.Changes}, {"perf", "warn", "block", compare.Changes},
		{"default", "block", "warn", compare.Loosens}, {"default", "block", "shadow", compare.Loosens}, {"default", "warn", "shadow", compare.Loosens},
		{"default", "shadow", "warn", compare.Tightens}, {"default", "shadow", "block", compare.Tightens}, {"default", "warn", "block", compare.Tightens},
	} {
		old, new := of(c.old, "block"), of(c.new, "block")
		if c.rule == "default" {
			old, new = of("block", c.old), of("block", c.new)
		}
		list := policy.Compare(old, new)
		if len(list) != 1 || list[0].Path != "rules["+c.rule+"].enforce" || list[0].Direction != c.want {
			t.Errorf("%s: %s → %s: %+v, want %s", c.rule, c.old, c.new, list, c.want)
		}
	}
}

// An edit of enforce alone that needs no approval leaves every change that a rule blocks to the same
// rule.
func TestTighteningEnforceTakesNothingAway(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	words := []string{"shadow", "warn", "block"}
	conditions := []string{"{kernels: [a]}", "{kernels: [b]}", "{kernels: [a, b]}", "{branches: [main]}"}
	draw := func() string { return words[rng.IntN(3)] }
	tightened := 0
	for range 2000 {
		var before, after []ruleText
		for i := range 3 {
			r := ruleText{fmt.Sprintf("r%d", i), conditions[rng.IntN(len(conditions))], draw()}
			before = append(before, r)
			if rng.IntN(2) == 0 {
				r.enforce = draw()
			}
			after = append(after, r)
		}
		before, after = append(before, ruleText{"default", "", draw()}), append(after, ruleText{"default", "", draw()})
		old, new := parse(t, enforcing(before...)), parse(t, enforcing(after...))
		list := policy.Compare(old, new)
		if len(list) == 0 || list.Loosens() {
			continue
		}
		tightened++
		for _, kernel := range []string{"a", "b", "c"} {
			for _, branch := range []string{"main", "side"} {
				c := policy.Change{Kernel: kernel, Branch: branch}
				was, is := old.RuleFor(c), new.RuleFor(c)
				if was.Enforce.Blocks() && (is.Name != was.Name || !is.Enforce.Blocks()) {
					t.Fatalf("%s on %s: rule %s blocked, now %s (%s):\n%v", kernel, branch, was.Name, is.Name, is.Enforce, list)
				}
			}
		}
	}
	if tightened < 50 {
		t.Errorf("%d policies were tightened: that is no test", tightened)
	}
}

func TestExplainEnforce(t *testing.T) {
	trial := parse(t, enforcing(ruleText{"attention", "{kernels: [\"sdpa*\"]}", "warn"}, ruleText{"perf", "{labels: [perf]}", ""}, ruleText{"default", "", ""}))
	adopt := parse(t, enforcing(ruleText{"default", "", "shadow"}))
	change := policy.Change{Kernel: "sdpa"}
	golden(t, "explain_enforce.txt", trial.Explain("p.yaml", change)+"\n"+adopt.Explain("p.yaml", change))
}
