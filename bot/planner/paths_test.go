package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
)

// milder is the usual policy with rules that ask for no speed of some folders.
func milder(t *testing.T) string {
	return replaced(t, policyYAML, "rules:\n", `rules:
  - name: experiments
    when: {paths: ["experiments/**"]}
    gates: {performance: none}
  - name: shared
    when: {paths: ["common/**"]}
    gates: {performance: none}
`)
}

// A rule for paths is matched against the files of the kernel, not of the change: no other file can choose the rule.
func TestPathsOfTheKernel(t *testing.T) {
	manifests := func(more string) string { return replaced(t, manifest, "entry: scale\n", "entry: scale\n"+more) }
	base := usual().with(tree{policyFile: milder(t)})
	shared := base.with(tree{folder + "/kernel.yaml": manifests("include: [common]\n"), folder + "/scale.c": "#include <a.h>\n", "common/a.h": "// a\n", "common/b.h": "// b\n"})
	for _, tt := range []struct {
		name       string
		base, head tree
		rule       string
	}{
		{"its source alone", base, tree{folder + "/scale.c": "// head\n"}, "default"},
		{"one more file", base, tree{folder + "/scale.c": "// head\n", "experiments/notes.md": "hi\n"}, "default"},
		{"a header that it reads", shared, tree{"common/a.h": "// faster\n"}, "shared"},
		{"a header that it does not read", shared, tree{folder + "/scale.c": "#include <a.h>\n// head\n", "common/b.h": "// head\n"}, "default"},
		{"a new header in a folder of the base's manifest", shared, tree{folder + "/scale.c": "#include <c.h>\n", "common/c.h": "// c\n"}, "shared"},
		{
			"a folder that only the head's manifest names", base,
			tree{folder + "/kernel.yaml": manifests("include: [experiments]\n"), folder + "/scale.c": "#include <x.h>\n", "experiments/x.h": "// x\n"}, "default",
		},
		{
			"a root that only the head's manifest names", base,
			tree{folder + "/kernel.yaml": manifests("root: experiments\n"), "experiments/scale.c": "// head\n"}, "default",
		},
		{"the kernel itself is there", base.with(kernel("experiments/k", "// base\n")), tree{"experiments/k/scale.c": "// head\n"}, "experiments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.base)
			id, facts := w.propose(tt.head)
			p := w.plan(id, facts)
			if len(p.Problems) > 0 || len(p.Kernels) != 1 || p.Kernels[0].Rule != tt.rule {
				t.Fatalf("got %+v, %v, want the rule %s", p.Kernels, p.Problems, tt.rule)
			}
			if p.Kernels[0].Bundle == "" {
				return // the head's manifest is broken
			}
			if job := w.job(p); job.Rule().Name != tt.rule {
				t.Errorf("the runner's rule is %s, want %s", job.Rule().Name, tt.rule)
			}
			group := facts
			group.Members = []change.Member{{Number: id.Number, Head: facts.Head}}
			group.BaseSHA = w.repo.Head("main")
			if p := w.plan(change.ID{Repo: id.Repo, Kind: change.Group, SHA: facts.Head}, group); len(p.Kernels) != 1 || !slices.Equal(p.Kernels[0].Rules, []string{tt.rule}) {
				t.Errorf("in a group: %+v, %v", p.Kernels, p.Problems)
			}
		})
	}
}

// Two kernels of a change get their own rules.
func TestPathsOfTwoKernels(t *testing.T) {
	w := newWorld(t, usual().with(kernel("experiments/k", "// base\n")).with(tree{policyFile: milder(t)}))
	p := w.plan(w.propose(tree{"experiments/k/scale.c": "// head\n", folder + "/scale.c": "// head\n"}))
	var rules []string
	for _, k := range p.Kernels {
		rules = append(rules, k.Folder+" "+k.Rule+" "+strings.Join(k.Paths, " "))
	}
	slices.Sort(rules)
	if got := strings.Join(rules, "\n"); got != "experiments/k experiments experiments/k/scale.c\n"+folder+" default "+folder+"/scale.c" {
		t.Errorf("got\n%s", got)
	}
}
