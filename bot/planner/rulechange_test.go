package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
)

const nothingAsked = "version: 1\ngates: {}\nrules: [{name: default}]\n"

// ways is a change of the rules, a line each.
func ways(r *change.RuleChange) string {
	if r == nil {
		return ""
	}
	var lines []string
	for _, d := range r.Differences {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s → %s", d.Direction, d.File, d.Path, d.Old, d.New))
	}
	return strings.Join(lines, "\n")
}

// Whatever the gate judges by is held against what it would become.
func TestRuleChange(t *testing.T) {
	includes := usual().with(tree{folder + "/reference.c": "#include \"truth.h\"\n#include <math.h>\n", folder + "/truth.h": "// truth\n", folder + "/other.h": "// other\n"})
	for _, tt := range []struct {
		name       string
		base, head tree
		loosens    bool
		want       string // in one of the lines; nothing is found where it is empty
	}{
		{"documents", usual(), tree{"README.md": "Better.\n"}, false, ""},
		{"a source", usual(), tree{folder + "/scale.c": "// head\n"}, false, ""},
		{"a comment in the policy", usual(), tree{policyFile: "# ours\n" + policyYAML}, false, ""},
		{"nothing is asked", usual(), tree{policyFile: nothingAsked}, true, "loosens .github/kernelgate.yaml rules[default].gates.performance: "},
		{"no policy", usual(), tree{policyFile: ""}, true, "loosens .github/kernelgate.yaml (the file): a policy → none"},
		{"a policy of rubbish", usual(), tree{policyFile: "]\n"}, true, "changes .github/kernelgate.yaml (the file): a policy → mistakes"},
		{"less speed", usual(), tree{policyFile: strings.Replace(policyYAML, "+10%", "+1%", 1)}, true, "rules[default].gates.performance.target.speedup: >= +10% → >= +1%"},
		{"more speed", usual(), tree{policyFile: strings.Replace(policyYAML, "+10%", "+20%", 1)}, false, "tightens .github/kernelgate.yaml"},
		{"tolerance", usual(), tree{folder + "/kernel.yaml": strings.Replace(manifest, "abs: 0.1", "abs: 99", 1)}, true, "loosens kernels/scale/kernel.yaml tolerance.abs: 0.1 → 99"},
		{"less tolerance", usual(), tree{folder + "/kernel.yaml": strings.Replace(manifest, "abs: 0.1", "abs: 0.01", 1)}, false, "tightens kernels/scale/kernel.yaml"},
		{"the implementation", usual(), tree{folder + "/kernel.yaml": strings.Replace(manifest, "entry: scale\n", "entry: faster\nflags: [-O3]\n", 1)}, false, ""},
		{"both halves", usual(), tree{folder + "/kernel.yaml": strings.Replace(strings.Replace(manifest, "entry: scale\n", "entry: faster\n", 1), "abs: 0.1", "abs: 99", 1)}, true, "loosens kernels/scale/kernel.yaml tolerance.abs: 0.1 → 99"},
		{"the variant that the policy compares with", usual().with(tree{policyFile: strings.Replace(policyYAML, "performance: {", "performance: {baseline: \"variant:default\", ", 1)}), tree{folder + "/kernel.yaml": strings.Replace(manifest, "entry: scale\n", "entry: scale\nflags: [-O0]\n", 1)}, true, "changes kernels/scale/kernel.yaml variants.default: "},
		{"a shape dropped", usual(), tree{folder + "/kernel.yaml": strings.Replace(manifest, "  small: {N: 10}\n", "", 1)}, true, "shapes.small: N=10 → none"},
		{"a shape added", usual(), tree{folder + "/kernel.yaml": strings.Replace(manifest, "  small: {N: 10}\n", "  small: {N: 10}\n  tiny: {N: 1}\n", 1)}, true, "changes kernels/scale/kernel.yaml shapes.tiny: none → N=1"},
		{"another kind of input", usual(), tree{policyFile: strings.Replace(policyYAML, "seeds: [0], norm", "seeds: [0], distributions: [normal, constant], norm", 1)}, true, "changes .github/kernelgate.yaml rules[*].gates.correctness.distributions: normal → normal, constant"},
		{"another seed", usual(), tree{policyFile: strings.Replace(policyYAML, "seeds: [0], norm", "seeds: [0, 1], norm", 1)}, true, "gates.correctness.seeds: 0 → 0, 1"},
		{"no manifest", usual(), tree{folder + "/kernel.yaml": ""}, true, "loosens kernels/scale/kernel.yaml (the file): a manifest → none"},
		{"reference", usual(), tree{folder + "/reference.c": "// a lie\n"}, true, "changes kernels/scale/reference.c"},
		{"what the reference includes", includes, tree{folder + "/truth.h": "// a lie\n"}, true, "changes kernels/scale/truth.h"},
		{"what it does not include", includes, tree{folder + "/other.h": "// better\n"}, false, ""},
		{"what a macro may include", includes.with(tree{folder + "/reference.c": "#include HEADER\n"}), tree{folder + "/other.h": "// better\n"}, true, "kernels/scale/other.h"},
		{"what the reference asks for", includes.with(tree{folder + "/reference.c": "#if __has_include(\"loose.h\")\n#endif\n"}), tree{folder + "/loose.h": "// x\n"}, true, "changes kernels/scale/loose.h (what kernels are judged by): none → "},
		{"what nobody asks for", includes, tree{folder + "/loose.h": "// x\n"}, false, ""},
		{"a second manifest's problem", usual().with(second), tree{folder + "/twice.kernel.yaml": strings.Replace(second[folder+"/twice.kernel.yaml"], "abs: 0.1", "abs: 99", 1)}, true, "loosens kernels/scale/twice.kernel.yaml tolerance.abs: 0.1 → 99"},
		{"no second manifest", usual().with(second), tree{folder + "/twice.kernel.yaml": ""}, true, "loosens kernels/scale/twice.kernel.yaml (the file): a manifest → none"},
		{"a second manifest's reference", usual().with(second), tree{folder + "/twice_reference.c": "// a lie\n"}, true, "changes kernels/scale/twice_reference.c"},
		{"a second manifest", usual(), second, false, ""},
		{"a new kernel", usual(), kernel("kernels/new", "// new\n"), false, ""},
		{"the first policy", usual().with(tree{policyFile: ""}), tree{policyFile: nothingAsked}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.base)
			p := w.plan(w.propose(tt.head))
			if got := ways(p.RuleChange); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			if p.RuleChange != nil && p.RuleChange.Loosens != tt.loosens {
				t.Errorf("loosens is %v: %s", p.RuleChange.Loosens, ways(p.RuleChange))
			}
		})
	}
}

// What the base has changed since the head left it is not the head's doing; and what
// becomes of both together is what counts.
func TestRuleChangeOfAnOldBranch(t *testing.T) {
	overrides := strings.Replace(policyYAML, "  - name: default\n", "  - name: default\n    gates: {performance: {target: {speedup: \">= +15%\"}}}\n", 1)
	stricter := strings.Replace(policyYAML, "+10%", "+30%", 1)
	w := newWorld(t, usual())
	other, otherFacts := w.propose(tree{folder + "/scale.c": "// head\n"})
	id, facts := w.propose(tree{policyFile: overrides})
	if p := w.plan(id, facts); p.RuleChange == nil || p.RuleChange.Loosens {
		t.Fatalf("from +10%% to +15%%: %s", ways(p.RuleChange))
	}
	w.push("main", tree{policyFile: stricter})
	if p := w.plan(other, otherFacts); p.RuleChange != nil {
		t.Errorf("a change of a source on an old branch: %s", ways(p.RuleChange))
	}
	if p := w.plan(id, facts); p.RuleChange == nil || !p.RuleChange.Loosens || !strings.Contains(ways(p.RuleChange), ">= +30% → >= +15%") {
		t.Errorf("from +30%% to +15%%: %s", ways(p.RuleChange))
	}
	conflict, conflictFacts := w.propose(tree{policyFile: strings.Replace(policyYAML, "+10%", "+5%", 1)})
	w.push("main", tree{policyFile: strings.Replace(policyYAML, "+10%", "+40%", 1)})
	if p := w.plan(conflict, conflictFacts); p.RuleChange == nil || !p.RuleChange.Loosens {
		t.Errorf("what nobody can merge: %s", ways(p.RuleChange))
	}
}

// However much there is, a plan stays small, and what loosens comes first.
func TestRuleChangeIsBounded(t *testing.T) {
	many, edited := policyYAML[:strings.Index(policyYAML, "rules:")]+"rules:\n", strings.Builder{}
	edited.WriteString(many)
	var rules strings.Builder
	for i := range 60 {
		rule := fmt.Sprintf("  - name: r%d\n    when: {labels: [l%d]}\n    gates: {performance: {target: {speedup: \">= +%d%%\"}}}\n", i, i, i)
		rules.WriteString(rule)
		edited.WriteString(strings.NewReplacer(fmt.Sprintf("+%d%%", i), fmt.Sprintf("+%d%%", i+1), fmt.Sprintf("[l%d]", i), "["+strings.Repeat("x", 400)+"]").Replace(rule))
	}
	end := "  - name: default\n"
	w := newWorld(t, usual().with(tree{policyFile: many + rules.String() + end}))
	r := w.plan(w.propose(tree{policyFile: edited.String() + end})).RuleChange
	if r == nil || len(r.Differences) != 100 || r.More != 20 || !r.Loosens || r.Differences[0].Direction != "changes" {
		t.Fatalf("%+v", r)
	}
	for _, d := range r.Differences {
		if len(d.Old)+len(d.New) > 700 {
			t.Errorf("%d bytes", len(d.Old)+len(d.New))
		}
	}
}
