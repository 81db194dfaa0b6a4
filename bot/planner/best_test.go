package planner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/planner"
)

// A past is a history that a test writes down, of the kernel in one folder.
type past struct{ highwater.History }

func (p past) Merges(context.Context, int64, string) (highwater.History, error) {
	return p.History, nil
}

// merged is a push that made the kernel so fast, relative to the commit before it.
func (p *past) merged(commit, before, folder string, ratio float64) {
	p.Before[commit] = before
	p.History.Merges = append(p.History.Merges, highwater.Merge{
		Commit: commit, Folder: folder, Branch: "main", Against: before, Device: highwater.Device{Name: "L4", Arch: "sm_89"},
		Ratios: map[highwater.Shape]float64{{Name: "mission", Dims: "N=1000"}: ratio, {Name: "small", Dims: "N=10"}: 1 / ratio / ratio},
	})
}

// The baseline best is the fastest merged commit on the shapes that the rule times, if its code may and can be measured
// today. Else it is the next one, and in the end the merge base.
func TestBaselineBest(t *testing.T) {
	best := replaced(t, policyYAML, "performance: {target: {shapes: [mission], speedup: \">= +10%\"", "performance: {baseline: best, target: {shapes: [mission], speedup: \">= +10%\"")
	w := newWorld(t, usual().with(tree{policyFile: best}))
	start := w.repo.Head("main")
	fast := w.push("main", tree{folder + "/scale.c": "// fast\n"})
	tip := w.push("main", tree{folder + "/scale.c": "// slow\n"})
	evil := w.git("x", "commit-tree", "-p", start, w.git("", "rev-parse", start+"^{tree}"))
	w.git("", "update-ref", "refs/pull/9/head", evil)
	history := func(pushes func(*past)) *past {
		p := &past{highwater.History{Before: map[string]string{}, Unbuildable: map[highwater.OnBranch]bool{}}}
		pushes(p)
		return p
	}
	usually := func(p *past) {
		p.merged(fast, start, folder, 1.5)
		p.merged(tip, fast, folder, 0.5)
	}
	for _, c := range []struct {
		name, note string
		past       *past
		want       string
	}{
		{"nobody remembers", "The history of merges is not known here", nil, "// slow\n"},
		{"nothing is known", "No merged state is known to be faster", history(func(*past) {}), "// slow\n"},
		{"the best", "The baseline is the kernel's best, " + fast[:12], history(usually), "// fast\n"},
		{"the merge base is the best", "No merged state is known to be faster", history(func(p *past) {
			p.merged(fast, start, folder, 1.1)
			p.merged(tip, fast, folder, 1.1)
		}), "// slow\n"},
		{"it did not build", fast[:12] + " (it did not build)", history(func(p *past) {
			usually(p)
			p.Unbuildable[highwater.OnBranch{Commit: fast, Branch: "main"}] = true
		}), "// base\n"},
		{"it did not build for another branch", "The baseline is the kernel's best, " + fast[:12], history(func(p *past) {
			usually(p)
			p.Unbuildable[highwater.OnBranch{Commit: fast, Branch: "mine"}] = true // by a policy that somebody made for this
		}), "// fast\n"},
		{"it is a fork's", evil[:12] + " (no branch and no tag leads to it any more)", history(func(p *past) {
			p.merged(evil, start, folder, 2)
			p.merged(tip, evil, folder, 0.9/2)
		}), "// base\n"},
		{"nobody has it any more", "(the repository does not have it any more)", history(func(p *past) {
			p.merged(strings.Repeat("0", 39)+"1", start, folder, 2)
			p.merged(tip, strings.Repeat("0", 39)+"1", folder, 0.5)
		}), "// slow\n"},
		{"it is a kernel of another folder", "(it has no manifest in kernels/elsewhere)", history(func(p *past) {
			p.merged(fast, start, "kernels/elsewhere", 1.5)
			p.merged(tip, fast, folder, 0.5)
		}), "// slow\n"},
	} {
		w.planner.History = nil
		if c.past != nil {
			w.planner.History = c.past
		}
		job := w.job(w.plan(w.propose(tree{folder + "/scale.c": "// " + c.name + "\n"})))
		if got := w.files(job.Baseline.Dir)["scale.c"]; got != c.want {
			t.Errorf("%s: the baseline is %q, want %q", c.name, got, c.want)
		}
		if !slices.ContainsFunc(job.Notes, func(n string) bool { return strings.Contains(n, c.note) }) {
			t.Errorf("%s: the notes are %q", c.name, job.Notes)
		}
		if moved := c.want != "// slow\n"; (job.Provenance.Baseline != "") != moved {
			t.Errorf("%s: the record says %q", c.name, job.Provenance.Baseline)
		}
	}
}

// The baseline best is another commit on each device, where another one is the fastest there. A commit that does not build for one
// device may be the best on another.
func TestBestOfEachDevice(t *testing.T) {
	best := replaced(t, onDevices(t, "{block: [l4, h200, a100], inform: [t4]}"), "performance: {target: {shapes: [mission], speedup: \">= +10%\"", "performance: {baseline: best, target: {shapes: [mission], speedup: \">= +10%\"")
	w := newWorld(t, usual().with(tree{policyFile: best}))
	start := w.repo.Head("main")
	first := w.push("main", tree{folder + "/scale.c": "// fast on the L4\n"})
	second := w.push("main", tree{folder + "/scale.c": "// fast on the H200\n"})
	tip := w.push("main", tree{folder + "/scale.c": "// slow\n"})
	p := &past{highwater.History{
		Before:      map[string]string{first: start, second: first, tip: second},
		Unbuildable: map[highwater.OnBranch]bool{{Commit: second, Branch: "main", Label: "l4"}: true},
	}}
	merged := func(commit, before, label, device string, ratio float64) {
		p.History.Merges = append(p.History.Merges, highwater.Merge{
			Commit: commit, Folder: folder, Branch: "main", Against: before, Label: label, Device: highwater.Device{Name: device}, Ratios: map[highwater.Shape]float64{{Name: "mission", Dims: "N=1000"}: ratio},
		})
	}
	for label, ratios := range map[string][]float64{"l4": {1.5, 0.8, 0.8}, "h200": {0.9, 3, 0.5}, "t4": {1, 1, 1.1}} {
		for i, ratio := range ratios {
			merged([]string{first, second, tip}[i], []string{start, first, second}[i], label, "the "+label, ratio)
		}
	}
	w.planner.History = p
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	sources := map[string]bool{}
	wants := map[string]struct{ text, note string }{
		"l4": {"// fast on the L4\n", "It was found on the l4."}, "h200": {"// fast on the H200\n", "It was found on the h200."},
		"a100": {"// slow\n", "No merged state is known to be faster"}, "t4": {"// slow\n", "No merged state is known to be faster"},
	}
	plan := w.plan(id, facts)
	if len(plan.Kernels) != len(wants) {
		t.Fatalf("the plan has %d runs", len(plan.Kernels))
	}
	for _, k := range plan.Kernels {
		again, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder, Device: k.Device})
		if err != nil {
			t.Fatal(err)
		}
		for when, bundle := range map[string]string{"at first": k.Bundle, "measured again": again} {
			job, want := w.read(bundle), wants[k.Device]
			if got := w.files(job.Baseline.Dir)["scale.c"]; got != want.text || job.Provenance.Label != k.Device {
				t.Errorf("%s, %s: the baseline is %q for %q, want %q", k.Device, when, got, job.Provenance.Label, want.text)
			}
			if notes := strings.Join(job.Notes, "\n"); !strings.Contains(notes, want.note) {
				t.Errorf("%s, %s: the notes are %q", k.Device, when, notes)
			}
		}
		sources[k.Sources] = true
	}
	if len(sources) != 3 {
		t.Errorf("evidence against three baselines has %d digests", len(sources))
	}
}

// A best commit that takes other arguments cannot be launched as today: it would make every change an error.
func TestBestOfOtherArguments(t *testing.T) {
	best := replaced(t, policyYAML, "performance: {target: {shapes: [mission], speedup: \">= +10%\"", "performance: {baseline: best, target: {shapes: [mission], speedup: \">= +10%\"")
	w := newWorld(t, usual().with(tree{policyFile: best}))
	start := w.repo.Head("main")
	tip := w.push("main", tree{folder + "/scale.c": "// slow\n", folder + "/kernel.yaml": replaced(t, manifest, "{name: y, dtype: f32", "{name: y, dtype: f16")})
	p := &past{highwater.History{Before: map[string]string{}}}
	p.merged(tip, start, folder, 0.5)
	w.planner.History = p
	job := w.job(w.plan(w.propose(tree{folder + "/scale.c": "// head\n"})))
	if got := w.files(job.Baseline.Dir)["scale.c"]; got != "// slow\n" || !strings.Contains(strings.Join(job.Notes, "\n"), "it takes other arguments than today") {
		t.Errorf("the baseline is %q: %q", got, job.Notes)
	}
}

// A kernel that moves or is renamed goes on where it was; a new one beside it does not.
func TestRenames(t *testing.T) {
	gone := tree{folder + "/kernel.yaml": "", folder + "/scale.c": "", folder + "/reference.c": ""}
	other := replaced(t, replaced(t, manifest, "name: scale", "name: better"), "abs: 0.1", "abs: 0.2")
	for name, c := range map[string]struct {
		edit tree
		want string
	}{
		"moved":                     {gone.with(kernel("other/scale", "// slow\n")), folder},
		"moved and renamed":         {gone.with(kernel("other/scale", "// slow\n"), tree{"other/scale/kernel.yaml": replaced(t, manifest, "name: scale", "name: better")}), folder},
		"moved, with a new problem": {gone.with(kernel("other/scale", "// slow\n"), tree{"other/scale/kernel.yaml": replaced(t, manifest, "abs: 0.1", "abs: 0.2")}), folder},
		"another kernel":            {gone.with(kernel("other/scale", "// slow\n"), tree{"other/scale/kernel.yaml": other}), ""},
		"a copy":                    {kernel("other/scale", "// slow\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual())
			p := w.plan(w.propose(c.edit))
			for _, k := range p.Kernels {
				if k.Folder == "other/scale" && k.Was != c.want || k.Folder == folder && k.Was != "" {
					t.Errorf("%s was %q, want %q", k.Folder, k.Was, c.want)
				}
			}
		})
	}
}
