package planner_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
)

func TestTouchedKernels(t *testing.T) {
	w := newWorld(t, usual().with(
		kernel("other", "// other\n"),
		tree{"other/kernel.yaml": replaced(t, manifest, "name: scale", "name: other"), folder + "/shared.h": "// 1\n", "include/shared.h": "// 1\n"},
	))
	scale, other := "scale in "+folder, "other in other"
	for name, c := range map[string]struct {
		edit tree
		want string
	}{
		"documents":                        {tree{"README.md": "More.\n"}, ""},
		"the policy alone":                 {tree{policyFile: policyYAML + "# mild\n"}, ""},
		"a source":                         {tree{folder + "/scale.c": "// head\n"}, scale},
		"the manifest alone":               {tree{folder + "/kernel.yaml": manifest + "# mild\n"}, scale},
		"a header that variants share":     {tree{folder + "/shared.h": "// 2\n"}, scale},
		"a header outside of every kernel": {tree{"include/shared.h": "// 2\n"}, ""}, // it reaches no compiler: see TestHeaders
		"a folder whose name goes on":      {tree{folder + "s/notes.txt": "x\n"}, ""},
		"two kernels":                      {tree{"other/scale.c": "// head\n", folder + "/scale.c": "// head\n"}, scale + ", " + other},
	} {
		t.Run(name, func(t *testing.T) {
			clear(w.bundles)
			p := w.plan(w.propose(c.edit))
			if got := strings.Join(folders(p), ", "); got != c.want {
				t.Errorf("the kernels are %q, want %q", got, c.want)
			}
			if len(w.bundles) != len(p.Kernels) || len(p.Problems) > 0 || p.NoPolicy || p.Policy != policyYAML {
				t.Errorf("there are %d bundles; the plan is %+v", len(w.bundles), p.Plan)
			}
			if len(p.Paths) != len(c.edit) {
				t.Errorf("the paths are %q", p.Paths)
			}
		})
	}
}

// A header of the kernel's folder is a source like any other; one outside is no part of
// the kernel, on neither side.
func TestHeaders(t *testing.T) {
	w := newWorld(t, usual().with(tree{folder + "/shared.h": "// 1\n", "include/shared.h": "// 1\n"}))
	job := w.job(w.plan(w.propose(tree{folder + "/shared.h": "// 2\n", "include/shared.h": "// 2\n"})))
	base := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// base\n", "shared.h": "// 1\n"}
	if d := cmp.Diff(base, w.files(job.Baseline.Dir)); d != "" {
		t.Errorf("the baseline: %s", d)
	}
	if d := cmp.Diff(base.with(tree{"shared.h": "// 2\n"}), w.files(job.Candidate.Dir)); d != "" {
		t.Errorf("the candidate: %s", d)
	}
}

// A kernel that the base does not have is judged by its own manifest, and has nothing to
// be compared with; the policy and its reference's rights stay the base's.
func TestNewKernel(t *testing.T) {
	w := newWorld(t, usual())
	p := w.plan(w.propose(kernel("added", "// new\n").with(tree{policyFile: "version: 1\ngates: {}\nrules: [{name: mild}]\n"})))
	job := w.job(p)
	if job.Baseline != nil || job.ManifestText != manifest || job.Key != "added" || job.PolicyText != policyYAML {
		t.Errorf("the baseline is %v, the folder %q, the policy\n%s", job.Baseline, job.Key, job.PolicyText)
	}
	want := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// new\n"}
	if d := cmp.Diff(want, w.files(job.Candidate.Dir)); d != "" {
		t.Errorf("the candidate: %s", d)
	}
	if notes := strings.Join(job.Notes, "\n"); !strings.Contains(notes, "The kernel is new") {
		t.Errorf("the notes are %q", notes)
	}
}

// Without a policy on the base nothing is required: the head's first one is tried for
// information, and cannot name the check.
func TestBaseWithoutPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		head     string
		policy   string
		kernels  int
		problems int
	}{
		"none at all":       {"", "", 0, 0},
		"the head's first":  {policyYAML + "check: mine\n", policyYAML + "check: mine\n", 1, 0},
		"the head's is bad": {"version: 1\n", "", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			first := usual()
			delete(first, policyFile)
			w := newWorld(t, first)
			p := w.plan(w.propose(tree{folder + "/scale.c": "// head\n", policyFile: c.head}))
			if !p.NoPolicy || p.Policy != c.policy || p.Check != planner.DefaultCheck || p.PolicyFile != policyFile {
				t.Errorf("the plan is %+v", p.Plan)
			}
			if len(p.Kernels) != c.kernels || len(w.bundles) != c.kernels || len(p.Problems) != c.problems {
				t.Errorf("there are the kernels %v and the problems %v", p.Kernels, p.Problems)
			}
			if c.kernels == 1 && w.job(p).PolicyText != c.policy {
				t.Error("the bundle has another policy")
			}
		})
	}
}

// A mistake is told with its file, line and field, and nothing is measured by half a
// policy. A kernel with a mistake does not hide the others.
func TestMistakes(t *testing.T) {
	other := kernel("other", "// other\n").with(tree{"other/kernel.yaml": replaced(t, manifest, "name: scale", "name: other")})
	for name, c := range map[string]struct {
		base    tree
		want    []gates.Diagnostic
		kernels []string
	}{
		"policy: unknown field": {
			tree{policyFile: replaced(t, policyYAML, "norm_error", "norm_eror")},
			[]gates.Diagnostic{{File: policyFile, Line: 4, Message: "gates.correctness.norm_eror: unknown field"}}, nil,
		},
		"policy: two at once": {
			tree{policyFile: replaced(t, replaced(t, policyYAML, ">= +10%", "fast"), "version: 1", "version: 9")},
			[]gates.Diagnostic{{File: policyFile, Line: 1, Message: "version: "}, {File: policyFile, Line: 5, Message: "gates.performance.target.speedup: "}}, nil,
		},
		"policy: no YAML": {
			tree{policyFile: "version: 1\n\t]\n"}, []gates.Diagnostic{{File: policyFile, Line: 2, Message: ""}}, nil,
		},
		"a file that cannot be sent": {
			tree{folder + "/odd\\name.txt": "x\n"},
			[]gates.Diagnostic{{File: folder + "/kernel.yaml", Line: 1, Message: "the kernel's folder cannot be sent to a runner: file name "}}, []string{"other in other"},
		},
		"a shape that the kernel does not have": {
			tree{folder + "/kernel.yaml": replaced(t, manifest, "  mission: {N: 1000}\n", "")},
			[]gates.Diagnostic{{File: folder + "/kernel.yaml", Line: 1, Message: policyFile + `: rule default: gates.performance.target.shapes: scale has no shape "mission" (it has small)`}},
			[]string{"other in other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(other, c.base))
			// The head mends everything, which helps when it is merged and not before.
			p := w.plan(w.propose(usual().with(tree{folder + "/scale.c": "// head\n", "other/scale.c": "// head\n"})))
			if len(p.Problems) != len(c.want) {
				t.Fatalf("the problems are %+v", p.Problems)
			}
			for i, got := range p.Problems {
				if want := c.want[i]; got.File != want.File || got.Line != want.Line || !strings.HasPrefix(got.Message, want.Message) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			equal(t, "kernels", folders(p), c.kernels)
			if len(w.bundles) != len(c.kernels) {
				t.Errorf("%d bundles were made", len(w.bundles))
			}
		})
	}
}

// succeed lets a commit into the merge queue.
func (w *world) succeed(sha string) {
	w.Helper()
	url := fmt.Sprintf("%s/repos/%s/statuses/%s", w.hub.URL(), w.repo.FullName(), sha)
	rq, err := http.NewRequestWithContext(w.Context(), "POST", url, strings.NewReader(`{"state": "success", "context": "kernelgate"}`))
	if err != nil {
		w.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+w.hub.CreateToken("olga"))
	answer, err := http.DefaultClient.Do(rq)
	if err != nil {
		w.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusCreated {
		w.Fatalf("the status was answered %s", answer.Status)
	}
}

// A merge group is compared with what it stands on, which is neither the base branch nor
// where its pull request left that; its rules are those that will hold once it is merged.
func TestMergeGroup(t *testing.T) {
	w := newWorld(t, usual()).mirrored()
	w.repo.ProtectBranch("main", embedded.Protection{Queue: true, Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}})
	strictPolicy := replaced(t, policyYAML, "<= 1%", "<= 0.5%")
	for branch, files := range map[string]tree{
		"first": {policyFile: strictPolicy, folder + "/scale.h": "// first\n"}, "second": {folder + "/scale.c": "// second\n", folder + "/reference.c": "// a lie\n"},
	} {
		w.push(branch, files)
	}
	for _, branch := range []string{"first", "second"} {
		pr, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: branch, Head: branch})
		if err != nil {
			t.Fatal(err)
		}
		w.succeed(pr.HeadSHA())
		if err := w.repo.Enqueue("olga", pr); err != nil {
			t.Fatal(err)
		}
	}
	heads := w.repo.QueueHeads()
	if len(heads) != 2 {
		t.Fatalf("the queue holds %v", heads)
	}
	facts := change.Facts{Repo: w.repo.FullName(), Open: true, Head: heads[1], Base: "main", BaseSHA: heads[0], Pulls: []int{2}}
	p := w.plan(change.ID{Kind: change.Group, Repo: w.repo.ID(), SHA: heads[1]}, facts)
	job := w.job(p)
	if p.Base != heads[0] || p.Policy != strictPolicy || job.PolicyText != strictPolicy {
		t.Errorf("it is compared with %s, want %s, by\n%s", p.Base, heads[0], p.Policy)
	}
	base := tree{"kernel.yaml": manifest, "reference.c": "// truth\n", "scale.c": "// base\n", "scale.h": "// first\n"}
	if d := cmp.Diff(base, w.files(job.Baseline.Dir)); d != "" {
		t.Errorf("the baseline: %s", d)
	}
	if d := cmp.Diff(base.with(tree{"scale.c": "// second\n"}), w.files(job.Candidate.Dir)); d != "" {
		t.Errorf("the candidate: %s", d)
	}
	if want := []string{folder + "/reference.c", folder + "/scale.c"}; !cmp.Equal(p.Paths, want) {
		t.Errorf("the paths are %q, want %q: the first one's are not its own", p.Paths, want)
	}
}

// A push is compared with what the branch was before, by the rules of then.
func TestPush(t *testing.T) {
	w := newWorld(t, usual())
	before := w.repo.Head("main")
	after := w.push("main", tree{folder + "/scale.c": "// head\n", policyFile: policyYAML + "# milder\n"})
	facts := change.Facts{Repo: w.repo.FullName(), Head: after, Base: "main", BaseSHA: before}
	p := w.plan(change.ID{Kind: change.Push, Repo: w.repo.ID(), SHA: after}, facts)
	if p.Base != before || p.Policy != policyYAML {
		t.Errorf("it is compared with %s, want %s, by\n%s", p.Base, before, p.Policy)
	}
	if got := w.files(w.job(p).Baseline.Dir)["scale.c"]; got != "// base\n" {
		t.Errorf("the baseline is %q", got)
	}
}

// What cannot be looked at now is an error, and no plan that lets anything pass.
func TestNotNow(t *testing.T) {
	w := newWorld(t, usual()).mirrored()
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	if _, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: facts.Title, Head: "topic-1"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*change.Facts, *change.ID)
		moved  bool
		says   string
	}{
		"a head that is not there yet": {func(f *change.Facts, _ *change.ID) { f.Head = strings.Repeat("a", 40) }, true, "aaaaaaaaaaaa: "},
		"no such base branch":          {func(f *change.Facts, _ *change.ID) { f.Base = "next" }, false, "the base branch next: "},
		"no such base commit":          {func(f *change.Facts, _ *change.ID) { f.BaseSHA = strings.Repeat("a", 40) }, false, "the base branch main: "},
		"no such repository":           {func(f *change.Facts, _ *change.ID) { f.Repo = "olga/none" }, false, "olga/none"},
		"no such pull request":         {func(_ *change.Facts, id *change.ID) { id.Number = 99 }, false, "refs/pull/99/head"},
	} {
		t.Run(name, func(t *testing.T) {
			id, facts := id, facts
			c.change(&facts, &id)
			_, err := w.planner.Plan(t.Context(), id, facts)
			_, again := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder})
			for _, err := range []error{err, again} {
				if err == nil || errors.Is(err, planner.ErrMoved) != c.moved || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "planning "+facts.Repo) {
					t.Errorf("got %v, moved %v, want %q, %v", err, errors.Is(err, planner.ErrMoved), c.says, c.moved)
				}
			}
			if len(w.bundles) > 0 {
				t.Errorf("%d bundles were made", len(w.bundles))
			}
		})
	}
}

// The check and the runners are the policy's, where it names any.
func TestCheckAndLabel(t *testing.T) {
	anywhere := replaced(t, policyYAML, "devices: [pool]\n", "")
	gpu := replaced(t, replaced(t, manifest, "mode: cpu", "mode: command"), manifest[strings.Index(manifest, "entry:"):strings.Index(manifest, "shapes:")], "")
	gpu = replaced(t, gpu, "limits: {N: 1..100000}\n", "command: {build: [make], bench: [./bench]}\n")
	for name, c := range map[string]struct {
		base         tree
		check, label string
	}{
		"another check":   {tree{policyFile: policyYAML + "check: gate\n"}, "gate", "pool"},
		"any of several":  {tree{policyFile: replaced(t, policyYAML, "[pool]", "[l4, pool]")}, "kernelgate", "l4 pool"},
		"on any CPU":      {tree{policyFile: anywhere}, "kernelgate", "cpu"},
		"its own harness": {tree{policyFile: anywhere, folder + "/kernel.yaml": gpu}, "kernelgate", "gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usual().with(c.base))
			p := w.plan(w.propose(tree{folder + "/scale.c": "// head\n"}))
			w.job(p)
			if label := strings.Join(p.Kernels[0].Labels, " "); label != c.label || p.Check != c.check {
				t.Errorf("got %q and %q, want %q and %q", p.Check, label, c.check, c.label)
			}
		})
	}
}

// A plan remembers the first paths of a huge change; its kernels are found beyond them.
func TestHugeChange(t *testing.T) {
	w := newWorld(t, usual())
	edit := tree{folder + "/scale.c": "// head\n"}
	for i := range 600 {
		edit[fmt.Sprintf("docs/%03d.txt", i)] = "x\n"
	}
	p := w.plan(w.propose(edit))
	if len(p.Paths) != 500 || p.Paths[0] != "docs/000.txt" || p.Paths[499] != "docs/499.txt" {
		t.Errorf("%d paths: %.60q …", len(p.Paths), p.Paths)
	}
	if job := w.job(p); !slices.Equal(job.Change.Paths, []string{folder + "/scale.c"}) {
		t.Errorf("the rules see the paths %.60q", job.Change.Paths)
	}
}
