package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
)

// Rules and baseline are those of the base branch as it is now: an old base brings no milder rules, and no slower kernel to be
// compared with.
func TestRulesAndBaselineOfTheTip(t *testing.T) {
	w := newWorld(t, usual())
	left := w.repo.Head("main")
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	tipManifest := replaced(t, manifest, "abs: 0.1", "abs: 0.001")
	tipPolicy := replaced(t, policyYAML, "<= 1%", "<= 0.5%")
	w.push("main", tree{
		folder + "/kernel.yaml": tipManifest, folder + "/reference.c": "// better truth\n", folder + "/scale.c": "// tip\n", policyFile: tipPolicy,
	})

	p := w.plan(id, facts)
	job := w.job(p)
	if p.Base != left || p.Head != facts.Head || p.Key != facts.PlanKey() {
		t.Errorf("the plan is of %s..%s (%s), want %s..%s", p.Base, p.Head, p.Key, left, facts.Head)
	}
	if p.Policy != tipPolicy || job.PolicyText != tipPolicy || p.PolicyFile != policyFile || p.NoPolicy {
		t.Errorf("the policy is not the tip's:\n%s", p.Policy)
	}
	if job.ManifestText != tipManifest || job.Manifest.Tolerance.Abs != 0.001 {
		t.Errorf("the manifest is not the tip's:\n%s", job.ManifestText)
	}
	side := func(source string) tree {
		return tree{"kernel.yaml": tipManifest, "reference.c": "// better truth\n", "scale.c": source}
	}
	got := map[string]tree{"trusted": w.files(job.Trusted), "baseline": w.files(job.Baseline.Dir), "candidate": w.files(job.Candidate.Dir)}
	want := map[string]tree{"trusted": side("// tip\n"), "baseline": side("// tip\n"), "candidate": side("// head\n")}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the sides: %s", d)
	}
	if at := job.Provenance; at.Base.SHA != left || at.Head.SHA != facts.Head {
		t.Errorf("the record says %s..%s", at.Base.SHA, at.Head.SHA)
	}
}

// Whatever the head does to policy, manifest and reference, and whatever it lays beside
// them, a runner gets the base's with the head's implementation.
func TestNothingIsSmuggledIntoABundle(t *testing.T) {
	w := newWorld(t, usual().with(tree{folder + "/bench.sh": "#!/bin/sh\n"}))
	for name, edit := range map[string]tree{
		"policy":           {policyFile: "version: 1\ncheck: another\ngates: {}\nrules: [{name: mild}]\n"},
		"no policy":        {policyFile: ""},
		"manifest":         {folder + "/kernel.yaml": replaced(t, replaced(t, manifest, "abs: 0.1", "abs: 99"), "name: scale", "name: other")},
		"reference":        {folder + "/reference.c": "// a lie\n"},
		"no reference":     {folder + "/reference.c": ""},
		"wider sources":    {folder + "/kernel.yaml": replaced(t, manifest, `["*.c", "*.h"]`, `["**"]`), folder + "/bench.sh": "#!/bin/sh\nexit 0\n"},
		"a manifest below": {folder + "/below/kernel.yaml": "]\n"},
		"files beside it":  {folder + "/GNUmakefile": "all:\n", folder + "/Reference.c": "// a lie\n", folder + "/KERNEL.yaml": "]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.plan(w.propose(edit.with(tree{folder + "/scale.c": "// head\n"})))
			if name == "a manifest below" { // it is a kernel of its own, and no good one
				if len(p.Problems) != 1 || p.Problems[0].File != folder+"/below/kernel.yaml" {
					t.Errorf("the problems are %+v", p.Problems)
				}
				p.Problems = nil
			}
			job := w.job(p)
			if p.Policy != policyYAML || job.PolicyText != policyYAML || p.Check != "kernelgate" || p.Kernels[0].Rule != "default" {
				t.Errorf("the policy is another: %+v", p.Plan)
			}
			if job.ManifestText != manifest || p.Kernels[0].Name != "scale" {
				t.Errorf("the manifest is another:\n%s", job.ManifestText)
			}
			trusted := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// base\n", "bench.sh": "#!/bin/sh\n"}
			if d := cmp.Diff(trusted, w.files(job.Trusted)); d != "" {
				t.Errorf("the trusted folder: %s", d)
			}
			if d := cmp.Diff(trusted.with(tree{"scale.c": "// head\n"}), w.files(job.Candidate.Dir)); d != "" {
				t.Errorf("the candidate: %s", d)
			}
			if d := cmp.Diff(trusted, w.files(job.Baseline.Dir)); d != "" {
				t.Errorf("the baseline: %s", d)
			}
		})
	}
}

// Kernels in folders of the same name share nothing: a new one must not lay its files
// beside the reference of another.
func TestNamesakes(t *testing.T) {
	w := newWorld(t, usual())
	p := w.plan(w.propose(kernel("added/scale", "// new\n").with(tree{"added/scale/GNUmakefile": "all:\n", folder + "/scale.c": "// head\n"})))
	equal(t, "kernels", folders(p), []string{"scale in added/scale", "scale (kernels/scale) in kernels/scale"})
	if t.Failed() {
		return
	}
	job := w.read(p.Kernels[1].Bundle)
	want := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// base\n"}
	if d := cmp.Diff(want, w.files(job.Trusted)); d != "" {
		t.Errorf("the trusted folder: %s", d)
	}
	if d := cmp.Diff(want.with(tree{"scale.c": "// head\n"}), w.files(job.Candidate.Dir)); d != "" {
		t.Errorf("the candidate: %s", d)
	}
}

// A kernel whose manifest goes away, by whatever way, needs no runner to be deferred.
func TestManifestThatGoesAwayKeepsTheGate(t *testing.T) {
	w := newWorld(t, usual())
	moved := tree{folder + "/kernel.yaml": "", folder + "/scale.c": "", folder + "/reference.c": ""}
	gone, elsewhere := "scale in "+folder, "scale in elsewhere/scale"
	second := "scale (" + folder + ") in " + folder
	for name, c := range map[string]struct {
		edit tree
		want []string
	}{
		"manifest removed": {tree{folder + "/kernel.yaml": "", folder + "/scale.c": "// slow\n"}, []string{gone}},
		"manifest renamed": {tree{folder + "/kernel.yaml": "", folder + "/manifest.yml": manifest}, []string{gone}},
		"manifest moved":   {tree{folder + "/kernel.yaml": "", "kernels/kernel.yaml": manifest}, []string{"scale in kernels", second}},
		"folder removed":   {moved, []string{gone}},
		"folder moved":     {moved.with(kernel("elsewhere/scale", "// slow\n")), []string{elsewhere, second}},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.plan(w.propose(c.edit))
			equal(t, "kernels", folders(p), c.want)
			if t.Failed() {
				return
			}
			last := p.Kernels[len(p.Kernels)-1]
			e := p.Evidence[last.Folder]
			if last.Bundle != "" || e == nil || len(p.Evidence) != 1 {
				t.Fatalf("the kernel that is gone is %+v, with the evidence %+v", last, p.Evidence)
			}
			rules, err := p.ReadPolicy()
			if err != nil {
				t.Fatal(err)
			}
			if v := gates.Judge(rules, p.PolicyFile, e); v.Outcome != gates.Defer || v.Reason != gates.ReasonSuspicious {
				t.Errorf("it is judged %s (%s)", v.Outcome, v.Reason)
			}
		})
	}
}

// A kernel that came under the gate after the head had left is under it for that head
// too: an old base is no way round.
func TestKernelGatedSince(t *testing.T) {
	for name, c := range map[string]struct {
		edit, want string
	}{
		"its source":     {"late/scale.c", "scale in late"},
		"something else": {"README.md", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(tree{"late/scale.c": "// base\n"}))
			id, facts := w.propose(tree{c.edit: "// head\n"})
			w.push("main", tree{"late/kernel.yaml": manifest, "late/reference.c": "// truth\n"})
			p := w.plan(id, facts)
			if got := strings.Join(folders(p), ", "); got != c.want {
				t.Fatalf("the kernels are %q, want %q", got, c.want)
			}
			if c.want == "" {
				return
			}
			job := w.job(p)
			want := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// head\n"}
			if d := cmp.Diff(want, w.files(job.Candidate.Dir)); d != "" {
				t.Errorf("the candidate: %s", d)
			}
			if got := w.files(job.Baseline.Dir)["scale.c"]; got != "// base\n" {
				t.Errorf("the baseline is %q", got)
			}
		})
	}
}

// A fork's head is reached through the pull request alone, and is judged by the
// repository's rules and its word on forks, not by the fork's.
func TestForks(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: policyYAML + "forks: {run: never}\n"})).mirrored()
	fork, err := w.repo.Fork("eve")
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range []tree{
		{policyFile: policyYAML + "forks: {run: after-approval}\n", folder + "/reference.c": "// a lie\n"}, {folder + "/scale.c": "// head\n"},
	} {
		for _, branch := range []string{"main", "topic"} { // the fork's own main is no base
			if _, err := fork.Push(branch, files, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "A change", Head: "topic", HeadRepo: fork})
	if err != nil {
		t.Fatal(err)
	}
	p := w.plan(w.pull(pr.Number()), change.Facts{Repo: w.repo.FullName(), Open: true, Fork: true, Head: pr.HeadSHA(), Base: "main"})
	job := w.job(p)
	if p.Forks != "never" || job.PolicyText != p.Policy || !strings.HasSuffix(p.Policy, "forks: {run: never}\n") {
		t.Errorf("forks run %q by the policy\n%s", p.Forks, p.Policy)
	}
	candidate := w.files(job.Candidate.Dir)
	if candidate["scale.c"] != "// head\n" || candidate["reference.c"] != "// truth\n" {
		t.Errorf("the candidate is %v", candidate)
	}
	if p.Base != w.repo.Head("main") {
		t.Errorf("the base is %s, want the repository's main", p.Base)
	}
}
