package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withRules returns a policy whose rules have the given conditions, in order, and the names a, b, c
// and so on.
func withRules(t testing.TB, conditions ...string) *policy.Policy {
	t.Helper()
	var b strings.Builder
	b.WriteString("version: 1\ngates: {build: {timeout: 1m}}\nrules:\n")
	for i, when := range conditions {
		b.WriteString("  - {name: " + string(rune('a'+i)) + ", when: " + when + "}\n")
	}
	b.WriteString("  - name: default\n")
	return parse(t, b.String())
}

func TestRuleFor(t *testing.T) {
	type change = policy.Change
	for _, tt := range []struct {
		name  string
		rules []string
		is    change
		want  string
	}{
		{"a label", []string{"{labels: [perf]}"}, change{Labels: []string{"bug", "perf"}}, "a"},
		{"one of two labels", []string{"{labels: [perf, fast]}"}, change{Labels: []string{"fast"}}, "a"},
		{"no label", []string{"{labels: [perf]}"}, change{}, "default"},
		{"labels are no globs", []string{`{labels: ["perf*"]}`}, change{Labels: []string{"perf-gpu"}}, "default"},
		{"labels are told apart by case", []string{"{labels: [perf]}"}, change{Labels: []string{"Perf"}}, "default"},

		{"a branch", []string{"{branches: [main]}"}, change{Branch: "main"}, "a"},
		{"a branch's glob", []string{"{branches: [main, release/*]}"}, change{Branch: "release/1.2"}, "a"},
		{"a branch's glob stays in its folder", []string{"{branches: [release/*]}"}, change{Branch: "release/1/2"}, "default"},
		{"another branch", []string{"{branches: [main]}"}, change{Branch: "maintenance"}, "default"},
		{"no branch", []string{"{branches: ['*']}"}, change{Branch: ""}, "a"},

		{"a path deep down", []string{"{paths: [kernels/**]}"}, change{Paths: []string{"README.md", "kernels/sdpa/stage1.cu"}}, "a"},
		{"a path by its end", []string{`{paths: ["**/*.cu"]}`}, change{Paths: []string{"a/b/c.cu"}}, "a"},
		{"a path at the root by its end", []string{`{paths: ["**/*.cu"]}`}, change{Paths: []string{"c.cu"}}, "a"},
		{"a folder in the middle", []string{`{paths: ["kernels/**/stage?.cu"]}`}, change{Paths: []string{"kernels/a/b/stage1.cu"}}, "a"},
		{"a path elsewhere", []string{"{paths: [kernels/*]}"}, change{Paths: []string{"kernels/sdpa/stage1.cu", "docs/kernels/x"}}, "default"},
		{"no path", []string{"{paths: ['**']}"}, change{}, "default"},

		{"a kernel", []string{`{kernels: ["sdpa_*"]}`}, change{Kernel: "sdpa_fp8"}, "a"},
		{"another kernel", []string{`{kernels: ["sdpa_*"]}`}, change{Kernel: "gemm"}, "default"},

		{"a title", []string{`{title: "^perf(\\(.*\\))?:"}`}, change{Title: "perf(sdpa): use cp.async"}, "a"},
		{"a title, anywhere", []string{"{title: tensor}"}, change{Title: "Use tensor cores"}, "a"},
		{"another title", []string{"{title: ^perf}"}, change{Title: "Make it perfect"}, "default"},

		{"a draft", []string{"{draft: true}"}, change{Draft: true}, "a"},
		{"no draft", []string{"{draft: true}"}, change{}, "default"},
		{"not a draft", []string{"{draft: false}"}, change{}, "a"},
		{"not not a draft", []string{"{draft: false}"}, change{Draft: true}, "default"},

		{"all conditions", []string{"{labels: [perf], branches: [main], paths: ['**.cu'], kernels: [k], title: x, draft: false}"},
			change{Labels: []string{"perf"}, Branch: "main", Paths: []string{"a.cu"}, Kernel: "k", Title: "x"}, "a"},
		{"all but one", []string{"{labels: [perf], branches: [main], paths: ['**.cu'], kernels: [k], title: x, draft: false}"},
			change{Labels: []string{"perf"}, Branch: "main", Paths: []string{"a.cu"}, Kernel: "k", Title: "y"}, "default"},
		{"a label on another branch", []string{"{labels: [perf], branches: [main]}"}, change{Labels: []string{"perf"}, Branch: "dev"}, "default"},

		{"the first of two that match", []string{"{labels: [x]}", "{branches: [main]}"}, change{Labels: []string{"x"}, Branch: "main"}, "a"},
		{"the order of the rules, not of the labels", []string{"{labels: [x]}", "{labels: [y]}"}, change{Labels: []string{"y", "x"}}, "a"},
		{"the second", []string{"{labels: [x]}", "{branches: [main]}", "{draft: false}"}, change{Branch: "main"}, "b"},
		{"default alone", nil, change{Labels: []string{"x"}}, "default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := withRules(t, tt.rules...)
			if got := p.RuleFor(tt.is).Name; got != tt.want {
				t.Errorf("rule %s applies, want %s", got, tt.want)
			}
			if want := len(tt.rules) + 1; len(p.RuleNames()) != want || p.RuleNames()[want-1] != "default" {
				t.Errorf("rules %q", p.RuleNames())
			}
		})
	}
}

func TestRoleAllows(t *testing.T) {
	order := []policy.Role{"read", "triage", "write", "maintain", "admin"}
	for i, needed := range order {
		for j, has := range order {
			if got := needed.Allows(has); got != (j >= i) {
				t.Errorf("what needs %s allows %s: %v", needed, has, got)
			}
		}
		for _, nobody := range []policy.Role{"", "none", "owner", "Admin"} {
			if needed.Allows(nobody) || nobody.Allows(needed) || nobody.Allows(nobody) {
				t.Errorf("%q and %s: a role that GitHub does not have gives a right", nobody, needed)
			}
		}
	}
}

func TestShapes(t *testing.T) {
	known := []string{"small", "mission", "long"}
	for _, tt := range []struct {
		name          string
		shapes        policy.Shapes
		pick, unknown []string
		show          string
	}{
		{"all", policy.Shapes{All: true}, known, nil, "all shapes"},
		{"in the manifest's order", policy.Shapes{Names: []string{"long", "small"}}, []string{"small", "long"}, nil, "long, small"},
		{"unknown", policy.Shapes{Names: []string{"wide", "small"}}, []string{"small"}, []string{"wide"}, "wide, small"},
		{"none", policy.Shapes{}, nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.shapes.Pick(known); !slices.Equal(got, tt.pick) {
				t.Errorf("picked %q", got)
			}
			if got := tt.shapes.Unknown(known); !slices.Equal(got, tt.unknown) {
				t.Errorf("unknown %q", got)
			}
			if got := tt.shapes.String(); got != tt.show {
				t.Errorf("shown as %q", got)
			}
		})
	}
}
