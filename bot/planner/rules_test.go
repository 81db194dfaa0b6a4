package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner"
)

const harness = `version: 1
name: harness
mode: command
shapes: {small: {N: 8}}
sources: ["*.c"]
command: {build: [make], bench: [./bench]}
`

// The digest follows what a branch asks, and nothing else.
func TestRules(t *testing.T) {
	w := newWorld(t, usual().with(tree{
		folder + "/shared.h": "// 1\n", "bench/kernel.yaml": harness, "bench/bench": "#!/bin/sh\n", "bench/k.c": "// base\n",
	}))
	rules := func(t *testing.T, branch string) string {
		t.Helper()
		digest, _, err := w.planner.Rules(t.Context(), w.repo.FullName(), branch)
		if err != nil || digest == "" {
			t.Fatalf("the rules of %s are %q, %v", branch, digest, err)
		}
		return digest
	}
	main := rules(t, "main")
	id, facts := w.propose(tree{policyFile: "", folder + "/scale.c": "// head\n"})
	if got := w.plan(id, facts).Rules; got != main {
		t.Errorf("a plan is by the rules %s, those of main are %s", got, main)
	}
	for name, c := range map[string]struct {
		edit tree
		same bool
	}{
		"documents":            {tree{"README.md": "More.\n"}, true},
		"a source":             {tree{folder + "/scale.c": "// tip\n", "bench/k.c": "// tip\n"}, true},
		"a header":             {tree{folder + "/shared.h": "// 2\n"}, true},
		"policy":               {tree{policyFile: policyYAML + "# other\n"}, false},
		"no policy":            {tree{policyFile: ""}, false},
		"manifest":             {tree{folder + "/kernel.yaml": manifest + "# other\n"}, false},
		"a manifest's mistake": {tree{folder + "/kernel.yaml": "]\n"}, false},
		"reference":            {tree{folder + "/reference.c": "// better truth\n"}, false},
		"harness":              {tree{"bench/bench": "#!/bin/sh\nexit 1\n"}, false},
		"one kernel more":      {kernel("added", "// new\n"), false},
		"one kernel less":      {tree{folder + "/kernel.yaml": ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			branch := strings.NewReplacer(" ", "-", "'", "").Replace(name)
			w.push(branch, c.edit)
			asks, _, _ := strings.Cut(rules(t, branch), "-")
			if same := strings.HasPrefix(main, asks+"-"); same != c.same {
				t.Errorf("the rules are the same: %v, want %v", same, c.same)
			}
			if same := rules(t, branch) == main; same != (name == "documents" || strings.HasSuffix(name, "policy")) && c.same {
				t.Errorf("the same is compared with: %v", same)
			}
		})
	}
	w.push("including", tree{folder + "/reference.c": "#include \"shared.h\"\n"})
	before := rules(t, "including")
	w.push("including", tree{folder + "/shared.h": "// 3\n"})
	if rules(t, "including") == before {
		t.Error("a header that the reference includes changed, and the rules did not")
	}
	if _, _, err := w.planner.Rules(t.Context(), w.repo.FullName(), "gone"); !errors.Is(err, planner.ErrBaseGone) {
		t.Errorf("a branch that is gone: %v", err)
	}
}
