package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// What a runner reads is the job that was planned, with everything that its rule and its
// record depend on.
func TestBundleIsTheJob(t *testing.T) {
	w := newWorld(t, usual())
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"}, "refactoring")
	p := w.plan(id, facts)
	job := w.job(p)
	want := policy.Change{Labels: []string{"refactoring"}, Branch: "main", Title: "A change", Paths: []string{folder + "/scale.c"}}
	if d := cmp.Diff(want, job.Change); d != "" {
		t.Errorf("the change: %s", d)
	}
	at := job.Provenance
	if !at.Time.Equal(w.planner.Now()) || at.Program != "kernelgate test" || at.Repository != "olga/kernels" || at.Head.SHA != facts.Head || at.Base.SHA != p.Base {
		t.Errorf("the record is %+v", at)
	}
	if k := p.Kernels[0]; k.Folder != job.Key || k.Rule != job.Rule().Name || k.Rule != "refactoring" || job.PolicyFile != p.PolicyFile {
		t.Errorf("planned %+v, read %q and %q", k, job.Key, job.Rule().Name)
	}
	if job.Rounds != 0 || job.Shapes != nil || job.Seeds != nil || job.Profile || job.Noise {
		t.Errorf("a first attempt asks for more than its policy: %+v", job)
	}
	if again := w.plan(id, facts); again.Kernels[0].Bundle != p.Kernels[0].Bundle || len(w.bundles) != 1 {
		t.Error("the same job is stored twice")
	}
}

// Two plans share evidence when they build and measure the same, whatever is asked of
// it; then and only then.
func TestSources(t *testing.T) {
	base, head := usual(), tree{folder + "/scale.c": "// head\n"}
	digest := func(w *world, head tree, labels ...string) string {
		p := w.plan(w.propose(head, labels...))
		w.job(p)
		return p.Kernels[0].Sources
	}
	first := digest(makeWorld(t, base), head)
	for name, c := range map[string]struct {
		base, head tree
		labels     []string
		same       bool
	}{
		"another rule and policy": {base.with(tree{policyFile: policyYAML + "# other\n"}), head, []string{"refactoring"}, true},
		"what the head may not":   {base, head.with(tree{folder + "/reference.c": "// a lie\n", "README.md": "More.\n"}), nil, false}, // a build that asks for it is refused
		"another head":            {base, tree{folder + "/scale.c": "// other\n"}, nil, false},
		"one source more":         {base, head.with(tree{folder + "/more.h": "// more\n"}), nil, false},
		"another baseline":        {base.with(tree{folder + "/scale.c": "// other\n"}), head, nil, false},
		"another manifest":        {base.with(tree{folder + "/kernel.yaml": manifest + "# other\n"}), head, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := digest(newWorld(t, c.base), c.head, c.labels...)
			if same := got == first; same != c.same {
				t.Errorf("the digests are equal: %v, want %v", same, c.same)
			}
		})
	}
}

// What is merged into the base branch while a change is open concerns its evidence where
// it reaches what is built or compared, and not otherwise.
func TestSourcesWhenTheBaseMoves(t *testing.T) {
	for name, c := range map[string]struct {
		reference string
		tip       tree
		built     bool // the same is built
		asked     bool // the same is asked
	}{
		"notes":                     {"// truth\n", tree{"README.md": "// tip\n"}, true, true},
		"another source":            {"// truth\n", tree{folder + "/scale.c": "// tip\n"}, false, true},
		"another header":            {"#include <math.h>\n", tree{folder + "/shared.h": "// 2\n"}, false, true},
		"a header of the reference": {"  # include \"shared.h\"\n", tree{folder + "/shared.h": "// 2\n"}, false, false},
		"another reference":         {"// truth\n", tree{folder + "/reference.c": "// better truth\n"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(tree{folder + "/reference.c": c.reference, folder + "/shared.h": "// 1\n"}))
			id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
			before := w.plan(id, facts)
			w.push("main", c.tip)
			after := w.plan(id, facts)
			w.job(after)
			if same := before.Kernels[0].Sources == after.Kernels[0].Sources; same != c.built {
				t.Errorf("the digests are equal: %v, want %v", same, c.built)
			}
			if same := before.Kernels[0].RequirementsDigest == after.Kernels[0].RequirementsDigest; same != c.asked {
				t.Errorf("what is asked is the same: %v, want %v", same, c.asked)
			}
		})
	}
}

// What is asked of a kernel is the base's alone: nothing that a change brings makes
// it another question, and so a new chance.
func TestAsksAreTheBases(t *testing.T) {
	asked := func(t *testing.T, base, head tree) string {
		t.Helper()
		w := newWorld(t, base)
		id, facts := w.propose(head)
		return w.plan(id, facts).Kernels[0].RequirementsDigest
	}
	base, head := usual(), tree{folder + "/scale.c": "// head\n"}
	first := asked(t, base, head)
	for name, c := range map[string]struct {
		base, head tree
		same       bool
	}{
		"another head": {base, tree{
			folder + "/scale.c": "// other\n", folder + "/reference.c": "// a lie\n", folder + "/kernel.yaml": manifest + "# mild\n", folder + "/README.md": "More.\n",
		}, true},
		"documents of the base": {base.with(tree{folder + "/README.md": "More.\n"}), head, true},
		"another manifest":      {base.with(tree{folder + "/kernel.yaml": manifest + "# other\n"}), head, false},
		"another reference":     {base.with(tree{folder + "/reference.c": "// better\n"}), head, false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := asked(t, c.base, c.head) == first; same != c.same {
				t.Errorf("what is asked is the same: %v, want %v", same, c.same)
			}
		})
	}
}

// Somebody who asks for more gets it over the same job, and by the same rules.
func TestRerun(t *testing.T) {
	w := newWorld(t, usual().with(tree{folder + "/scale.c": "// older\n"}))
	w.push("older", tree{"README.md": "Old.\n"})
	w.push("main", tree{folder + "/scale.c": "// base\n"})
	id, facts := w.propose(tree{
		folder + "/scale.c": "// head\n", folder + "/reference.c": "// a lie\n", folder + "/kernel.yaml": manifest + "# mild\n", policyFile: policyYAML + "# mild\n",
	})
	for name, c := range map[string]struct {
		ask      planner.Rerun
		baseline string
		shapes   []string
	}{
		"more rounds":      {planner.Rerun{Rounds: 3}, "// base\n", nil},
		"other shapes":     {planner.Rerun{Shapes: []string{"small"}, Seeds: []int64{5, -1}, Profile: true}, "// base\n", []string{"small"}},
		"another baseline": {planner.Rerun{Versus: "older"}, "// older\n", []string{"mission", "small"}},
		"against itself":   {planner.Rerun{Versus: plan.Self}, "// head\n", []string{"mission", "small"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.ask.Folder = folder
			name, err := w.planner.Rerun(t.Context(), id, facts, c.ask)
			if err != nil {
				t.Fatal(err)
			}
			job := w.read(name)
			slices.Sort(job.Shapes)
			if job.Rounds != c.ask.Rounds || !slices.Equal(job.Shapes, c.shapes) || !slices.Equal(job.Seeds, c.ask.Seeds) || job.Profile != c.ask.Profile {
				t.Errorf("asked for %+v, got %+v", c.ask, job)
			}
			if job.Key != folder || job.ManifestText != manifest || job.PolicyText != policyYAML || job.Noise != (c.ask.Versus == plan.Self) {
				t.Errorf("the folder is %q, the manifest\n%s\nthe policy\n%s", job.Key, job.ManifestText, job.PolicyText)
			}
			want := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// head\n"}
			if d := cmp.Diff(want, w.files(job.Candidate.Dir)); d != "" {
				t.Errorf("the candidate: %s", d)
			}
			if d := cmp.Diff(want.with(tree{"scale.c": c.baseline}), w.files(job.Baseline.Dir)); d != "" {
				t.Errorf("the baseline: %s", d)
			}
		})
	}
}

// A folder is a whole path: the kernel that is measured again is the one that was.
func TestRerunOfANamesake(t *testing.T) {
	w := newWorld(t, kernel("scale", "// base\n").with(tree{policyFile: policyYAML}))
	id, facts := w.propose(kernel("added/scale", "// new\n").with(tree{"scale/scale.c": "// head\n"}))
	for _, folder := range []string{"scale", "added/scale"} {
		name, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		if job := w.read(name); job.Key != folder {
			t.Errorf("asked for %s, got %s", folder, job.Key)
		}
	}
}

// A kernel that came under the gate since can be measured again like any other.
func TestRerunOfAKernelGatedSince(t *testing.T) {
	w := newWorld(t, usual().with(tree{"late/scale.c": "// base\n"}))
	id, facts := w.propose(tree{"late/scale.c": "// head\n"})
	w.push("main", tree{"late/kernel.yaml": manifest, "late/reference.c": "// truth\n"})
	name, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: "late", Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.files(w.read(name).Candidate.Dir)["scale.c"]; got != "// head\n" {
		t.Errorf("the candidate is %q", got)
	}
}

// What does not exist is the asker's mistake, and says what does.
func TestRerunRefuses(t *testing.T) {
	w := newWorld(t, usual().with(kernel("gone", "// gone\n"), kernel("large", "// large\n"), tree{
		"large/kernel.yaml": replaced(t, replaced(t, manifest, "name: scale", "name: large"), "source: scale.c\n", "variants: {far: {source: scale.c, limits: {N: 500..2000}}, any: {source: scale.c}}\ndefault_variant: far\n"),
	}))
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n", "gone/kernel.yaml": ""})
	w.push("mistaken", tree{policyFile: replaced(t, policyYAML, "norm_error", "norm_eror")})
	for name, c := range map[string]struct {
		base string
		ask  planner.Rerun
		says string
	}{
		"a shape":             {"main", planner.Rerun{Folder: folder, Shapes: []string{"small", "huge"}}, `scale has no shape "huge" (it has mission, small)`},
		"a shape too small":   {"main", planner.Rerun{Folder: "large", Shapes: []string{"small"}}, `the shape "small" (N=10) is outside the limits of the variant far of large, the candidate (both sides take mission: name those, or widen its limits)`},
		"a baseline":          {"main", planner.Rerun{Folder: folder, Versus: "nowhere"}, `"nowhere" is not a commit of this repository`},
		"an option of git":    {"main", planner.Rerun{Folder: folder, Versus: "--all"}, `"--all" is not a commit of this repository`},
		"a folder":            {"main", planner.Rerun{Folder: "kernels/none"}, `no kernel named "kernels/none" (there are kernels/scale, large)`},
		"a part of a folder":  {"main", planner.Rerun{Folder: "scale"}, `no kernel named "scale"`},
		"a kernel that went":  {"main", planner.Rerun{Folder: "gone"}, `no kernel named "gone"`},
		"a mistake of policy": {"mistaken", planner.Rerun{Folder: folder}, policyFile + ":4:"},
	} {
		t.Run(name, func(t *testing.T) {
			facts.Base = c.base
			_, err := w.planner.Rerun(t.Context(), id, facts, c.ask)
			var bad usage.Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if len(w.bundles) > 0 {
				t.Error("a bundle was made")
			}
		})
	}
}
