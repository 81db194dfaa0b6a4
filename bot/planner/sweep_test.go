package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
)

// A sweep measures all kernels, touched or not, by the rules of now, against what they were at the last one.
func TestSweep(t *testing.T) {
	w := newWorld(t, usual().with(kernel("kernels/other", "// another\n"), kernel("lab/third", "// a third\n")))
	before := w.repo.Head("main")
	after := w.push("main", tree{folder + "/scale.c": "// head\n", policyFile: policyYAML + "# of now\n", "lab/third/kernel.yaml": ""})
	id := change.ID{Kind: change.Sweep, Repo: w.repo.ID(), SHA: after}
	for name, c := range map[string]struct {
		since    string
		patterns []string
		base     string
		keys     []string
		baseline string // of the first
	}{
		"all":                    {before, nil, before, []string{"kernels/other", folder}, "// another\n"},
		"some":                   {before, []string{"kernels/s*"}, before, []string{folder}, "// base\n"},
		"by manifest":            {before, []string{"kernels/*/kernel.yaml"}, before, []string{"kernels/other", folder}, "// another\n"},
		"the first":              {"", []string{folder}, after, []string{folder}, "// head\n"},
		"since a commit of none": {strings.Repeat("1", 40), []string{folder}, after, []string{folder}, "// head\n"},
		"none":                   {before, []string{"elsewhere/*"}, before, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.plan(id, change.Facts{Repo: w.repo.FullName(), Head: after, Base: "main", BaseSHA: c.since, Kernels: c.patterns})
			var keys []string
			for _, k := range p.Kernels {
				keys = append(keys, k.Folder)
			}
			if p.Base != c.base || !strings.HasSuffix(p.Policy, "# of now\n") || !cmp.Equal(keys, c.keys) || len(p.Problems) > 0 {
				t.Fatalf("%q since %.8s, want %q since %.8s, by\n%s\n%v", keys, p.Base, c.keys, c.base, p.Policy, p.Problems)
			}
			if len(keys) > 0 {
				if got := w.files(w.read(p.Kernels[0].Bundle).Baseline.Dir)["scale.c"]; got != c.baseline {
					t.Errorf("the baseline is %q, want %q", got, c.baseline)
				}
			}
		})
	}
	tip, err := w.planner.Tip(t.Context(), w.repo.FullName(), "main")
	if err != nil || tip != after {
		t.Errorf("the tip is %q, %v", tip, err)
	}
	if _, err := w.planner.Tip(t.Context(), w.repo.FullName(), "gone"); !errors.Is(err, planner.ErrMoved) {
		t.Errorf("a branch that is gone: %v", err)
	}
}

// Patterns choose by folder or manifest, and bad ones choose nothing.
func FuzzSwept(f *testing.F) {
	for _, pattern := range []string{"kernels/*", "*", "[a", "kernels/scale", "kernels/scale/twice.kernel.yaml", ""} {
		f.Add(pattern, "kernels/scale")
	}
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if !planner.Swept(nil, key) {
			t.Errorf("%q is not one of all", key)
		}
		plain := !strings.ContainsAny(key, `*?[\`)
		if plain && !planner.Swept([]string{pattern, key}, key) || planner.Swept([]string{pattern}, key) && !planner.Swept(slices.Concat([]string{"x"}, []string{pattern}), key) {
			t.Errorf("%q: another pattern changes what %q chooses", key, pattern)
		}
	})
}
