package plan_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/plan"
)

const (
	manifest = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}}
limits: {N: 1..100}
`
	policy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}
rules:
  - {name: docs, when: {labels: [docs]}}
  - {name: default}
`
)

// A tree is a repository that a test writes.
type tree struct {
	*testing.T
	dir string
}

func newTree(t *testing.T) *tree {
	r := &tree{T: t, dir: t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

func (r *tree) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, or deletes those without content, and returns the commit.
func (r *tree) commit(files map[string]string) string {
	r.Helper()
	for name, text := range files {
		file := filepath.Join(r.dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil {
				r.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

func (r *tree) plan(opt plan.Options) *plan.Plan {
	r.Helper()
	var err error
	if opt.Repo, err = checkout.Open(r.Context(), r.dir); err != nil {
		r.Fatal(err)
	}
	opt.Scratch = r.TempDir()
	p, err := plan.New(r.Context(), opt)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

func (r *tree) job(opt plan.Options) (runners.Job, error) {
	r.Helper()
	p := r.plan(opt)
	folders, err := p.Kernels(r.Context())
	if err != nil {
		return runners.Job{}, err
	}
	if len(folders) != 1 {
		r.Fatalf("the change touches %v, want one kernel", folders)
	}
	return p.Job(r.Context(), folders[0])
}

func (r *tree) read(dir, name string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

var first = map[string]string{
	"k/kernel.yaml": manifest, "k/scale.c": "// base\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policy, "README.md": "x\n",
}

// The head supplies sources alone: manifest, reference and policy stay the base's,
// whatever the head does to them.
func TestHeadSuppliesSourcesAlone(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	head := r.commit(map[string]string{
		"k/scale.c": "// head\n", "k/reference.c": "// a lie\n", "k/kernel.yaml": strings.Replace(manifest, "abs: 0.1", "abs: 99", 1),
		".github/kernelgate.yaml": strings.Replace(policy, "1%", "99%", 1),
	})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.read(job.Candidate.Dir, "scale.c"); got != "// head\n" {
		t.Errorf("the candidate's source is %q", got)
	}
	if got := r.read(job.Candidate.Dir, "reference.c"); got != "// truth\n" {
		t.Errorf("the candidate's reference is %q", got)
	}
	if job.Manifest.Tolerance.Abs != 0.1 || !strings.Contains(job.PolicyText, "<= 1%") {
		t.Error("manifest or policy are the head's")
	}
	if notes := strings.Join(job.Notes, "\n"); !strings.Contains(notes, "edits kernel.yaml") || !strings.Contains(notes, "edits the policy") {
		t.Errorf("the notes say %q", notes)
	}
}

// An old base does not bring its old rules: those of the trusted revision hold,
// while the baseline stays what the head was made from.
func TestTrustedRevision(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	tip := r.commit(map[string]string{
		"k/scale.c": "// tip\n", "k/kernel.yaml": strings.Replace(manifest, "abs: 0.1", "abs: 0.01", 1), ".github/kernelgate.yaml": strings.Replace(policy, "1%", "0.1%", 1),
	})
	r.git("checkout", "--quiet", base)
	head := r.commit(map[string]string{"k/scale.c": "// head\n"})
	job, err := r.job(plan.Options{Base: base, Head: head, Trusted: tip})
	if err != nil {
		t.Fatal(err)
	}
	if job.Manifest.Tolerance.Abs != 0.01 || !strings.Contains(job.PolicyText, "0.1%") {
		t.Error("manifest or policy are the old base's")
	}
	if b, c := r.read(job.Baseline.Dir, "scale.c"), r.read(job.Candidate.Dir, "scale.c"); b != "// base\n" || c != "// head\n" {
		t.Errorf("baseline %q and candidate %q, want the merge base's and the head's", b, c)
	}
}

func TestVersus(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	other := r.commit(map[string]string{"k/scale.c": "// other\n"})
	head := r.commit(map[string]string{"k/scale.c": "// head\n"})
	job, err := r.job(plan.Options{Base: base, Head: head, Versus: other})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.read(job.Baseline.Dir, "scale.c"); got != "// other\n" || job.Noise {
		t.Errorf("the baseline is %q", got)
	}
	if job, err = r.job(plan.Options{Base: base, Head: head, Versus: plan.Self}); err != nil {
		t.Fatal(err)
	}
	if got := r.read(job.Baseline.Dir, "scale.c"); got != "// head\n" || !job.Noise {
		t.Errorf("the head against itself has the baseline %q", got)
	}
	var bad strict.Mistake
	if _, err := r.job(plan.Options{Base: base, Head: head, Versus: "nowhere"}); !errors.As(err, &bad) {
		t.Errorf("an unknown revision: %v", err)
	}
}

func TestKernels(t *testing.T) {
	for name, c := range map[string]struct {
		edit    map[string]string
		folders string
		removed bool
	}{
		"documents":       {map[string]string{"README.md": "y\n"}, "", false},
		"a source":        {map[string]string{"k/scale.c": "// head\n"}, "k", false},
		"a new kernel":    {map[string]string{"n/kernel.yaml": manifest, "n/scale.c": "// n\n", "n/reference.c": "// n\n"}, "n", false},
		"a removed one":   {map[string]string{"k/kernel.yaml": "", "k/scale.c": ""}, "k", true},
		"a moved one":     {map[string]string{"k/kernel.yaml": "", "m/kernel.yaml": manifest, "m/scale.c": "// m\n", "m/reference.c": "// m\n"}, "m k", true},
		"beside a kernel": {map[string]string{"kk/notes.txt": "x\n"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(first)
			head := r.commit(c.edit)
			p := r.plan(plan.Options{Base: base, Head: head, Change: policies.Change{Branch: "main"}})
			folders, err := p.Kernels(t.Context())
			if err != nil || strings.Join(folders, " ") != c.folders {
				t.Fatalf("got %v (%v), want %s", folders, err, c.folders)
			}
			if !c.removed {
				return
			}
			job, err := p.Job(t.Context(), "k")
			if err != nil || !job.Removed || !job.RemovedEvidence().Removed {
				t.Errorf("the removed kernel's job is %+v (%v)", job.Removed, err)
			}
		})
	}
}

// Two kernels whose folders have one name do not find each other's files.
func TestSameNameElsewhere(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{
		".github/kernelgate.yaml": policy,
		"a/k/kernel.yaml":         manifest, "a/k/scale.c": "// a\n", "a/k/reference.c": "// truth\n", "a/k/only.h": "// a's alone\n",
		"b/k/kernel.yaml": manifest, "b/k/scale.c": "// b\n", "b/k/reference.c": "// truth\n",
	})
	head := r.commit(map[string]string{"a/k/scale.c": "// a, faster\n", "b/k/scale.c": "// b, faster\n"})
	p := r.plan(plan.Options{Base: base, Head: head})
	for folder, want := range map[string]string{"a/k": "// a, faster\n", "b/k": "// b, faster\n"} {
		job, err := p.Job(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.read(job.Candidate.Dir, "scale.c"); got != want {
			t.Errorf("%s is built from %q, want %q", folder, got, want)
		}
		_, err = os.Stat(filepath.Join(job.Candidate.Dir, "only.h"))
		if has := err == nil; has != (folder == "a/k") {
			t.Errorf("%s has a's header: %v", folder, has)
		}
	}
}

// A kernel that the base branch has put under the gate since the head left it is gated,
// and a name that several kernels bear is nobody's.
func TestGatedSinceAndNamesakes(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{".github/kernelgate.yaml": policy, "a/k/scale.c": "// free\n", "b/k/kernel.yaml": manifest, "b/k/scale.c": "// b\n", "b/k/reference.c": "// truth\n"})
	trusted := r.commit(map[string]string{"a/k/kernel.yaml": manifest, "a/k/reference.c": "// truth\n"})
	r.git("checkout", "--quiet", base)
	head := r.commit(map[string]string{"a/k/scale.c": "// head\n"})
	kernels := func(names ...string) (string, error) {
		t.Helper()
		folders, err := r.plan(plan.Options{Base: base, Trusted: trusted, Head: head, Kernels: names}).Kernels(t.Context())
		return strings.Join(folders, " "), err
	}
	if got, err := kernels(); err != nil || got != "a/k" {
		t.Errorf("the change touches %q (%v), want a/k", got, err)
	}
	if got, err := kernels("b/k"); err != nil || got != "b/k" {
		t.Errorf("a folder is %q (%v)", got, err)
	}
	var bad strict.Mistake
	if _, err := kernels("k"); !errors.As(err, &bad) || !strings.Contains(err.Error(), `"k" is several kernels (write one of b/k, a/k)`) {
		t.Errorf("two kernels of one name: %v", err)
	}
}
