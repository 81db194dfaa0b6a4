package planner_test

import (
	"strings"
	"testing"
)

// Attempts count together where the launches of both sides come out equal: a word in the
// manifest is no new chance. Evidence holds only where the dispatch is the same, to the letter.
func TestAskedByLaunch(t *testing.T) {
	w := newWorld(t, usual())
	plan := func(edit tree) (asks, sources, dispatch string) {
		t.Helper()
		p := w.plan(w.propose(edit.with(tree{folder + "/scale.c": "// head\n"})))
		if len(p.Kernels) != 1 {
			t.Fatalf("%+v", p.Plan)
		}
		return p.Kernels[0].RequirementsDigest, p.Kernels[0].Sources, p.Kernels[0].Dispatch
	}
	asks, sources, dispatch := plan(tree{})
	for name, c := range map[string]struct {
		old, new                        string
		sameAsks, sameAll, sameDispatch bool
	}{
		"a comment":           {"entry: scale\n", "entry: scale # so\n", true, false, true},
		"flags":               {"entry: scale\n", "entry: scale\nflags: [-O3]\n", true, false, true},
		"another entry":       {"entry: scale\n", "entry: other\n", false, false, false},
		"the tolerance":       {"abs: 0.1", "abs: 9", true, false, true},
		"a toggle more":       {"entry: scale\n", "entry: scale\ntoggles: {T: {values: [1], default: 1, layer: micro}}\n", true, false, true},
		"limits of all sizes": {"source: scale.c\n", "variants: {only: {source: scale.c, limits: {N: 1..100000}}}\n", true, false, false},
		"a word for all":      {"entry: scale\n", "entry: scale\ndescription: It scales.\n", true, false, true},
	} {
		a, s, d := plan(tree{folder + "/kernel.yaml": strings.Replace(manifest, c.old, c.new, 1)})
		if (a == asks) != c.sameAsks || (s == sources) != c.sameAll || (d == dispatch) != c.sameDispatch {
			t.Errorf("%s: the same is asked: %v, built: %v and dispatched: %v", name, a == asks, s == sources, d == dispatch)
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
