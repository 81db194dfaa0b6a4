package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// FuzzParse checks that for any file, Parse returns a policy that has a rule for every change, or
// says what is wrong.
func FuzzParse(f *testing.F) {
	for _, name := range policies.ShippedNames() {
		text, err := policies.Shipped(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "perf,tensor-cores", "main", "perf: faster", "kernels/a/b.cu", "sdpa", true)
	}
	f.Add([]byte(good), "perf", "release/1", "", "", "", false)
	f.Add([]byte(everything), "a", "main", "perf", "x.cu", "k1", false)
	for _, table := range [][]mistake{fileMistakes, ruleMistakes, gateMistakes, performanceMistakes} {
		for _, m := range table {
			f.Add([]byte(strings.Replace(good, m.old, m.new, 1)), "x", "y", "z", "a/b", "k", false)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, labels, branch, title, path, kernel string, draft bool) {
		p, err := policy.Parse("p.yaml", data)
		if err != nil {
			var problems strict.Problems
			if p != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("refused with %T: %v", err, err)
			}
			return
		}
		change := policy.Change{
			Labels: strings.Split(labels, ","), Branch: branch, Title: title, Paths: []string{path}, Kernel: kernel, Draft: draft,
		}
		rule := p.RuleFor(change)
		if rule.Name != "default" && !rule.When.Matches(change) {
			t.Fatalf("rule %s applies to %+v", rule.Name, change)
		}
		if got, want := p.Explain("p.yaml", change), "p.yaml: rule "+rule.Name+" applies.\n"; !strings.HasPrefix(got, want) || strings.Contains(got, "%!") {
			t.Fatalf("got %s", got)
		}
		for _, r := range p.Rules {
			checkResolved(t, r)
		}
	})
}

// checkResolved checks what package gates relies on.
func checkResolved(t *testing.T, r policy.Rule) {
	t.Helper()
	g := r.Gates
	if !g.Build.Decides() || g.Build.Timeout <= 0 {
		t.Fatalf("build %+v", g.Build)
	}
	if c := g.Correctness; c != nil && (len(c.Seeds) == 0 || len(c.Distributions) == 0 || c.Shapes.String() == "" || c.Norm == nil && c.Decides()) {
		t.Fatalf("correctness %+v", c)
	}
	p := g.Performance
	if p == nil {
		return
	}
	if g.Correctness == nil || p.Target == nil && p.Guard == nil || p.Confidence <= 0 || p.Confidence >= 1 || p.Budget <= 0 || p.Baseline.Kind == "" || p.Pairs == 0 {
		t.Fatalf("performance %+v", p)
	}
	if len(p.Interims) == 0 || p.Interims[0] < 3 || p.Interims[len(p.Interims)-1] != int(p.Rounds.Max) {
		t.Fatalf("interims %v in rounds %+v", p.Interims, p.Rounds)
	}
}
