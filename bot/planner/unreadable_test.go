package planner_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// apart is a kernel whose manifest lies apart from its sources.
func apart(t *testing.T, edits ...string) tree {
	t.Helper()
	own := replaced(t, replaced(t, manifest, "source: scale.c\n", "root: src\nsource: scale.c\n"), "sources: [\"*.c\", \"*.h\"]\n", "")
	for i := 0; i < len(edits); i += 2 {
		own = replaced(t, own, edits[i], edits[i+1])
	}
	return tree{policyFile: policyYAML, "README.md": "Kernels.\n", "src/scale.c": "// base\n", "gate/k/reference.c": "// truth\n", "gate/k/kernel.yaml": own}
}

// linked puts a link at a path of main: no API does that.
func (w *world) linked(path, to string) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", "-C", w.repo.Dir(), "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader("commit refs/heads/main\ncommitter t <t@t.invalid> 0 +0000\ndata 1\nx\nfrom refs/heads/main^0\n" +
		"M 120000 inline " + path + "\ndata <<end\n" + to + "\nend\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// While a manifest of the base cannot be read, nobody can tell which files its kernel is built
// from. So every change has the problem, and none "changes no kernel".
func TestUnreadableManifestOfTheBase(t *testing.T) {
	const file = "gate/k/kernel.yaml"
	for name, c := range map[string]struct {
		base tree
		link [2]string
		want gates.Diagnostic
	}{
		"a misspelled field":   {base: apart(t, "mode: cpu\n", "mode: cpu\nflavor: mild\n"), want: gates.Diagnostic{File: file, Line: 4, Message: "flavor: unknown field"}},
		"a link":               {base: usual(), link: [2]string{"linked/kernel.yaml", "../" + folder + "/kernel.yaml"}, want: gates.Diagnostic{File: "linked/kernel.yaml", Line: 1, Message: "it is a link or a submodule"}},
		"the policy is a link": {base: usual().with(tree{"real.yaml": policyYAML}), link: [2]string{policyFile, "../real.yaml"}, want: gates.Diagnostic{File: policyFile, Line: 1, Message: "it is a link or a submodule"}},
		"the policy's name": {base: func() tree {
			f := usual().with(tree{".github/kernelgate.yml": policyYAML})
			delete(f, policyFile)
			return f
		}(), want: gates.Diagnostic{File: ".github/kernelgate.yml", Line: 1, Message: "this file is not read"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.base)
			if c.link[0] != "" {
				w.linked(c.link[0], c.link[1])
			}
			for _, edit := range []string{"src/scale.c", "README.md", folder + "/scale.c"} {
				p := w.plan(w.propose(tree{edit: "// head\n"}))
				if len(p.Problems) != 1 || len(p.Kernels) > 0 || p.NoPolicy || p.Refused {
					t.Fatalf("%s: the plan is %+v", edit, p.Plan)
				}
				if got := p.Problems[0]; got.File != c.want.File || got.Line != c.want.Line || !strings.HasPrefix(got.Message, c.want.Message) {
					t.Errorf("%s: got %+v, want %+v", edit, got, c.want)
				}
			}
		})
	}
}

// The change that repairs the manifest is measured by the repaired one, and waits for approval like
// every change of the rules, with the reference that it brings. If it leaves another mistake, it
// has that problem.
func TestRepairOfTheBasesManifest(t *testing.T) {
	const file = "gate/k/kernel.yaml"
	bad, good := apart(t, "mode: cpu\n", "mode: cpu\nflavor: mild\n"), apart(t)
	w := newWorld(t, bad)
	p := w.plan(w.propose(tree{file: good[file], "src/scale.c": "// head\n", "gate/k/reference.c": "// a lie\n"}))
	job := w.job(p)
	if job.ManifestText != good[file] || w.files(job.Trusted)["reference.c"] != "// truth\n" || w.files(job.Baseline.Dir)[".repository/src/scale.c"] != "// base\n" {
		t.Errorf("the job is %+v", job)
	}
	got := ways(p.RuleChange)
	if !p.RuleChange.Loosens || !strings.Contains(got, "changes "+file+" (the file): mistakes: flavor: unknown field") || !strings.Contains(got, "gate/k/reference.c (what kernels are judged by)") {
		t.Errorf("the change of the rules is %s", got)
	}
	lax := w.plan(w.propose(tree{file: replaced(t, good[file], "abs: 0.1", "abs: 99")}))
	if lax.RuleChange.Digest == w.plan(w.propose(tree{file: good[file]})).RuleChange.Digest {
		t.Error("an approval of one repair is good for another")
	}
	w.push("main", tree{"other/kernel.yaml": "]\n"})
	if p := w.plan(w.propose(tree{file: good[file]})); len(p.Problems) != 1 || p.Problems[0].File != "other/kernel.yaml" {
		t.Errorf("a repair of one of two: %+v", p.Problems)
	}
	p = w.plan(w.propose(tree{file: good[file], "other/kernel.yaml": ""}))
	if len(p.Problems) > 0 || strings.Join(folders(p), ", ") != "scale in gate/k, other in other" || !p.Evidence["other"].Removed {
		t.Errorf("a repair and a removal: %v with the problems %v", folders(p), p.Problems)
	}
}

// What takes the place of a link was not there to be read before, so it is approved like a repair.
func TestManifestInPlaceOfALink(t *testing.T) {
	w := newWorld(t, usual().with(tree{"linked/scale.c": "// base\n", "linked/reference.c": "// truth\n"}))
	w.linked("linked/kernel.yaml", "../"+folder+"/kernel.yaml")
	p := w.plan(w.propose(tree{"linked/kernel.yaml": manifest}))
	if w.job(p); p.RuleChange == nil || !p.RuleChange.Loosens || !strings.Contains(ways(p.RuleChange), "linked/kernel.yaml (the file): no regular file → a manifest") {
		t.Errorf("the change of the rules is %q", ways(p.RuleChange))
	}
}
