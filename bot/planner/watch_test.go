package planner_test

import (
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/watch"
)

// A watch measures against the release, even if the policy compares pull requests with something else. The
// digest of the head's sources does not depend on the release.
func TestWatch(t *testing.T) {
	w := newWorld(t, usual())
	first := w.repo.Head("main")
	must(t, w.repo.Tag("v1.0.0", first, "notes"))
	w.push("main", tree{folder + "/scale.c": "// second\n", policyFile: policyYAML + "# of now\n"})
	second := w.push("main", tree{folder + "/README.md": "words\n"})
	must(t, w.repo.Tag("v1.1.0", second, "notes"))
	third := w.push("main", tree{"README.md": "words\n"})
	fourth := w.push("main", tree{folder + "/scale.c": "// fourth\n"})
	digests := map[string]string{}
	for _, c := range []struct {
		name, head, since, baseline string
		against                     watch.Against
	}{
		{"a release", third, first, "// base\n", watch.Release},
		{"another release", third, second, "// second\n", watch.Release},
		{"the release itself", second, second, "// second\n", watch.Release},
		{"other sources", fourth, first, "// base\n", watch.Release},
		{"the best, of which nobody knows", fourth, "", "// fourth\n", watch.Best},
	} {
		p := w.plan(change.ID{Kind: change.Watch, Repo: w.repo.ID(), SHA: c.head}, change.Facts{
			Repo: w.repo.FullName(), Head: c.head, Base: "main", BaseSHA: c.since, Watch: &change.Watching{Against: c.against},
		})
		if len(p.Kernels) != 1 || len(p.Problems) > 0 {
			t.Fatalf("%s: %+v", c.name, p.Plan)
		}
		if got := w.files(w.read(p.Kernels[0].Bundle).Baseline.Dir)["scale.c"]; got != c.baseline {
			t.Errorf("%s: the baseline is %q, want %q", c.name, got, c.baseline)
		}
		digests[c.name] = p.Kernels[0].HeadSources
	}
	if d := digests; d["a release"] == "" || d["a release"] != d["another release"] || d["a release"] != d["the release itself"] || d["a release"] == d["other sources"] || d["other sources"] != d["the best, of which nobody knows"] {
		t.Errorf("the sources are %v", digests)
	}
	for head, want := range map[string]string{first: "v1.0.0", second: "v1.1.0", fourth: "v1.1.0"} {
		if got, err := w.planner.Release(t.Context(), w.repo.FullName(), head, nil); err != nil || got.Name != want {
			t.Errorf("the release of %.8s is %+v (%v), want %s", head, got, err, want)
		}
	}
}

// A watch measures on every device that blocks. One of them may be compared with an earlier release.
func TestWatchOnEachDevice(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: onDevices(t, "{block: [l4, h200], inform: [a100]}")}))
	first := w.repo.Head("main")
	second := w.push("main", tree{folder + "/scale.c": "// second\n"})
	third := w.push("main", tree{folder + "/scale.c": "// third\n"})
	p := w.plan(change.ID{Kind: change.Watch, Repo: w.repo.ID(), SHA: third}, change.Facts{
		Repo: w.repo.FullName(), Head: third, Base: "main", BaseSHA: second,
		Watch: &change.Watching{Against: watch.Release, Pinned: []watch.Pin{{Folder: folder, Device: "h200", Tag: "v1.0.0", Base: first}}},
	})
	want := map[string]string{"l4": "// second\n", "h200": "// base\n"}
	if len(p.Kernels) != len(want) {
		t.Fatalf("the runs are %+v", p.Kernels)
	}
	for _, k := range p.Kernels {
		job := w.read(k.Bundle)
		if got := w.files(job.Baseline.Dir)["scale.c"]; got != want[k.Device] || job.Provenance.Label != k.Device {
			t.Errorf("%s: the baseline is %q for %q, want %q", k.Device, got, job.Provenance.Label, want[k.Device])
		}
	}
}

// The policy's own baseline is for pull requests.
func TestWatchIgnoresThePolicysBaseline(t *testing.T) {
	for name, baseline := range map[string]string{"a tag": "tag:old", "the best": "best", "a branch": "ref:main"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(tree{policyFile: "version: 1\ndevices: [pool]\ngates: {correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}, performance: {baseline: \"" + baseline + "\", guard: {speedup: \">= -2%\"}}}\nrules: [{name: default}]\n"}))
			must(t, w.repo.Tag("old", w.repo.Head("main"), ""))
			release := w.push("main", tree{folder + "/scale.c": "// release\n"})
			head := w.push("main", tree{folder + "/scale.c": "// head\n"})
			p := w.plan(change.ID{Kind: change.Watch, Repo: w.repo.ID(), SHA: head}, change.Facts{
				Repo: w.repo.FullName(), Head: head, Base: "main", BaseSHA: release, Watch: &change.Watching{Against: watch.Release},
			})
			if len(p.Kernels) != 1 || len(p.Problems) > 0 {
				t.Fatalf("%+v", p.Plan)
			}
			job := w.read(p.Kernels[0].Bundle)
			if got := w.files(job.Baseline.Dir)["scale.c"]; got != "// release\n" || job.Provenance.Base.SHA != release || job.Provenance.Baseline != "" {
				t.Errorf("the baseline is %q, %+v", got, job.Provenance)
			}
		})
	}
}

// A watch against the best measures each kernel against the fastest commit that was merged.
func TestWatchBest(t *testing.T) {
	w := newWorld(t, usual())
	start := w.repo.Head("main")
	fast := w.push("main", tree{folder + "/scale.c": "// fast\n"})
	tip := w.push("main", tree{folder + "/scale.c": "// slow\n"})
	p := &past{highwater.History{Before: map[string]string{}, Unbuildable: map[highwater.OnBranch]bool{}}}
	p.merged(fast, start, folder, 1.5)
	p.merged(tip, fast, folder, 0.5)
	w.planner.History = p
	plan := w.plan(change.ID{Kind: change.Watch, Repo: w.repo.ID(), SHA: tip}, change.Facts{
		Repo: w.repo.FullName(), Head: tip, Base: "main", Watch: &change.Watching{Against: watch.Best},
	})
	job := w.job(plan)
	if got := w.files(job.Baseline.Dir)["scale.c"]; got != "// fast\n" || job.Provenance.Baseline != fast || !slices.ContainsFunc(job.Notes, func(n string) bool {
		return n == "The baseline is the kernel's best, "+fast[:12]+". It was found on L4."
	}) {
		t.Errorf("the baseline is %q, %+v, %q", got, job.Provenance, job.Notes)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
