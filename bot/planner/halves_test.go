package planner_test

import (
	"strings"
	"testing"
)

// What evidence depends on has the launch of both sides in it, as it comes out: a word in
// the manifest is no new chance, and another way to start the same code is another matter.
func TestAskedByLaunch(t *testing.T) {
	w := newWorld(t, usual())
	plan := func(edit tree) (asks, sources string) {
		t.Helper()
		p := w.plan(w.propose(edit.with(tree{folder + "/scale.c": "// head\n"})))
		if len(p.Kernels) != 1 {
			t.Fatalf("%+v", p.Plan)
		}
		return p.Kernels[0].Asks, p.Kernels[0].Sources
	}
	asks, sources := plan(tree{})
	for name, c := range map[string]struct {
		old, new          string
		sameAsks, sameAll bool
	}{
		"a comment":      {"entry: scale\n", "entry: scale # so\n", true, true},
		"flags":          {"entry: scale\n", "entry: scale\nflags: [-O3]\n", true, false},
		"another entry":  {"entry: scale\n", "entry: other\n", false, false},
		"the tolerance":  {"abs: 0.1", "abs: 9", true, true},
		"a toggle more":  {"entry: scale\n", "entry: scale\ntoggles: {T: {values: [1], default: 1, layer: micro}}\n", true, false},
		"a word for all": {"entry: scale\n", "entry: scale\ndescription: It scales.\n", true, true},
	} {
		a, s := plan(tree{folder + "/kernel.yaml": strings.Replace(manifest, c.old, c.new, 1)})
		if (a == asks) != c.sameAsks || (s == sources) != c.sameAll {
			t.Errorf("%s: the same is asked: %v, and the same built: %v", name, a == asks, s == sources)
		}
	}
}

// A head's manifest of rubbish needs no runner: it is deferred at the build.
func TestHeadsManifestOfRubbish(t *testing.T) {
	w := newWorld(t, usual())
	p := w.plan(w.propose(tree{folder + "/kernel.yaml": "]\n", folder + "/scale.c": "// head\n"}))
	if len(p.Problems) > 0 || len(p.Kernels) != 1 || p.Kernels[0].Bundle != "" {
		t.Fatalf("%+v", p.Plan)
	}
	e := p.Evidence[folder]
	if e == nil || e.Candidate == nil || e.Candidate.OK || !strings.HasPrefix(e.Candidate.Error, folder+"/kernel.yaml:1: is not valid YAML") {
		t.Errorf("%+v", e)
	}
}
