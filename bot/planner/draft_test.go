package planner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

func (w *world) draft(d planner.Draft) (planner.Drafted, error) {
	w.Helper()
	d.Kernel = folder
	return w.planner.Draft(w.Context(), planner.Branch{Repo: w.repo.FullName(), Name: "main"}, d)
}

// source of a side, as a runner gets it.
func (w *world) source(s runners.Side) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "scale.c"))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// A draft is compared with the tip, also if it is an old commit: whoever chose an old base would be compared
// with an old baseline.
func TestDraftOfAnOldCommit(t *testing.T) {
	w := newWorld(t, usual())
	old := w.push("old", tree{folder + "/scale.c": "// old draft\n"})
	tip := w.push("main", tree{folder + "/scale.c": "// newer base\n"})
	for name, d := range map[string]planner.Draft{"a commit": {Ref: old}, "a branch": {Ref: "old"}, "files": {Files: map[string]string{"scale.c": "// old draft\n"}}} {
		got, err := w.draft(d)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		job := w.read(got.Bundle)
		if w.source(job.Candidate) != "// old draft\n" || w.source(*job.Baseline) != "// newer base\n" || got.Base != tip || job.Provenance.Base.SHA != tip {
			t.Errorf("%s: %q is compared with %q at %s", name, w.source(job.Candidate), w.source(*job.Baseline), job.Provenance.Base.SHA)
		}
	}
}

// Files of a stranger change the implementation alone, and leave nothing in the mirror.
func TestDraftOfFiles(t *testing.T) {
	w := newWorld(t, usual())
	got, err := w.draft(planner.Draft{Part: runners.PartProbe, Files: map[string]string{"scale.c": "// draft\n", "kernel.yaml": replaced(t, manifest, "tolerance: {abs: 0.1}", "tolerance: {abs: 1000}")}})
	if err != nil {
		t.Fatal(err)
	}
	job := w.read(got.Bundle)
	if job.Manifest.Tolerance.Abs != 0.1 || job.Part != runners.PartProbe || w.source(job.Candidate) != "// draft\n" || w.source(*job.Baseline) != "// base\n" {
		t.Errorf("the job has the tolerance %v, part %q and source %q", job.Manifest.Tolerance, job.Part, w.source(job.Candidate))
	}
	if commit, err := checkout.OpenBare(w.repo.Dir()).Resolve(t.Context(), got.Head); err == nil {
		t.Errorf("the mirror has the draft %s", commit)
	}
	again, err := w.draft(planner.Draft{Part: runners.PartProbe, Files: map[string]string{"scale.c": "// draft\n", "kernel.yaml": replaced(t, manifest, "tolerance: {abs: 0.1}", "tolerance: {abs: 1000}")}})
	if err != nil || again.Head != got.Head {
		t.Errorf("the same draft is %s, and was %s: %v", again.Head, got.Head, err)
	}
	broken, err := w.draft(planner.Draft{Files: map[string]string{"kernel.yaml": "]\n"}})
	if err != nil || broken.Decided == nil || broken.Bundle != "" {
		t.Errorf("a draft with a manifest that cannot be read: %+v, %v", broken, err)
	}
}

// A draft is measured on the first device that blocks, and its evidence says so. A probe stays a probe, also where the plan depends
// on the device.
func TestDraftOnDevices(t *testing.T) {
	for devices, want := range map[string]string{"[l4, h200]": "", "{all: [l4, h200]}": "l4", "{inform: [l4], block: [h200]}": "h200"} {
		for _, baseline := range []string{"", "baseline: best, "} {
			t.Run(devices+" "+baseline, func(t *testing.T) {
				rules := strings.ReplaceAll(onDevices(t, devices), "performance: {target", "performance: {"+baseline+"target")
				w := newWorld(t, usual().with(tree{policyFile: replaced(t, rules, "seeds: [0]", "seeds: [0], secret_cases: 2")}))
				got, err := w.draft(planner.Draft{Part: runners.PartProbe, Files: map[string]string{"scale.c": "// draft\n"}})
				if err != nil {
					t.Fatal(err)
				}
				labels := []string{want}
				if want == "" {
					labels = []string{"l4", "h200"}
				}
				job := w.read(got.Bundle)
				if job.Provenance.Label != want || !slices.Equal(got.Labels, labels) {
					t.Errorf("a job for %q and runners with %v", job.Provenance.Label, got.Labels)
				}
				if job.Part != runners.PartProbe || job.Rule().Gates.Correctness.SecretCases != 0 {
					t.Errorf("a probe is part %q with %d secret cases", job.Part, job.Rule().Gates.Correctness.SecretCases)
				}
			})
		}
	}
}

func TestDraftsThatAreRefused(t *testing.T) {
	some := planner.Draft{Files: map[string]string{"scale.c": "// draft\n"}}
	for name, c := range map[string]struct {
		files tree
		draft planner.Draft
		want  string
	}{
		"forks never run":        {usual().with(tree{policyFile: replaced(t, policyYAML, "version: 1\n", "version: 1\nforks: {run: never}\n")}), some, "does not let code from forks run"},
		"no policy":              {kernel(folder, "// base\n"), some, "has no policy on main"},
		"a policy with mistakes": {usual().with(tree{policyFile: "version: 1\nrulez: []\n"}), some, policyFile + ": "},
		"no such commit":         {usual(), planner.Draft{Ref: strings.Repeat("a", 40)}, "no commit, branch or tag"},
		"git's own syntax":       {usual(), planner.Draft{Ref: "main~1"}, "names no commit"},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorld(t, c.files)
			if got, err := w.draft(c.draft); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v, want %s", got, err, c.want)
			}
		})
	}
}
