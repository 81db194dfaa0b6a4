package plan_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

const (
	manifestYAML = `version: 1
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
	policyYAML = `version: 1
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
	dir  string
	repo *checkout.Repo // set once a plan was made from it
}

// newTree makes what git init makes, without starting a process, because the tests make a hundred
// of them.
func newTree(t *testing.T) *tree {
	r := &tree{T: t, dir: t.TempDir()}
	for _, folder := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(r.dir, ".git", folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write(".git/HEAD", "ref: refs/heads/main\n")
	r.write(".git/config", "[user]\nname = t\nemail = t@t.invalid\n[commit]\ngpgsign = false\n[maintenance]\nauto = false\n")
	return r
}

func (r *tree) git(args ...string) string {
	r.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// try runs git, which may fail.
func (r *tree) try(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	return string(out), err
}

func (r *tree) write(name, text string) {
	r.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// commit writes files, deletes those without content, and returns the commit.
func (r *tree) commit(files map[string]string) string {
	r.Helper()
	fresh := len(files) == 0 // or anything that git commit -a does not include
	for name, text := range files {
		file := filepath.Join(r.dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil {
				r.Fatal(err)
			}
			continue
		}
		_, err := os.Lstat(file)
		fresh = fresh || err != nil
		r.write(name, text)
	}
	if fresh {
		r.git("add", "--all")
	}
	r.git("commit", "--quiet", "-am", "x")
	head := strings.TrimSpace(r.read(r.dir, ".git/HEAD"))
	if branch, ok := strings.CutPrefix(head, "ref: "); ok {
		return strings.TrimSpace(r.read(r.dir, ".git/"+branch))
	}
	return head
}

func (r *tree) plan(opt plan.Options) *plan.Plan {
	r.Helper()
	var err error
	if r.repo == nil {
		if r.repo, err = checkout.Open(r.Context(), r.dir); err != nil {
			r.Fatal(err)
		}
	}
	opt.Repo, opt.Scratch = r.repo, r.TempDir()
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
	"k/kernel.yaml": manifestYAML, "k/scale.c": "// base\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policyYAML, "README.md": "x\n",
}

// TestHeadSuppliesTheImplementation checks that the head supplies only the implementation. Problem,
// reference and policy stay the base's, whatever the head does to them.
func TestHeadSuppliesTheImplementation(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	head := r.commit(map[string]string{
		"k/scale.c": "// head\n", "k/reference.c": "// a lie\n", "k/kernel.yaml": edited(t, manifestYAML, "abs: 0.1", "abs: 99", "one: {N: 10}", "one: {N: 1}", "source: scale.c", "source: scale.c\nsources: ['**']\nflags: [-O3]"),
		"k/new.h": "// new\n", ".github/kernelgate.yaml": strings.Replace(policyYAML, "1%", "99%", 1),
	})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"scale.c": "// head\n", "new.h": "// new\n", "reference.c": "// truth\n", "kernel.yaml": manifestYAML} {
		if got := r.read(job.Candidate.Dir, name); got != want {
			t.Errorf("the candidate's %s is %q, want %q", name, got, want)
		}
	}
	if job.Manifest.Tolerance.Abs != 0.1 || !strings.Contains(job.PolicyText, "<= 1%") {
		t.Error("manifest or policy are the head's")
	}
	m := job.Of(job.Candidate)
	if m.Tolerance.Abs != 0.1 || m.Shapes[0].Dims.String() != "N=10" || !slices.Equal(m.Flags, []string{"-O3"}) {
		t.Errorf("the candidate is built by %+v", m)
	}
	if b := job.Of(*job.Baseline); len(b.Flags) != 0 || b.Tolerance.Abs != 0.1 {
		t.Errorf("the baseline is built by %+v", b)
	}
	notes := strings.Join(job.Notes, "\n")
	for _, want := range []string{"edits the policy", "tolerance.abs: 0.1 → 99; shapes.one: N=10 → N=1."} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes say %q, and not %q", notes, want)
		}
	}
	if strings.Contains(notes, "flags") || strings.Contains(notes, "sources") {
		t.Errorf("the implementation is told as an edit of the problem: %q", notes)
	}
	if job.Provenance.Implementation == "" || job.Provenance.Implementation == job.Provenance.Manifest {
		t.Errorf("the record has the manifests %q and %q", job.Provenance.Manifest, job.Provenance.Implementation)
	}
}

// edited returns a text with some parts replaced.
func edited(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		was := text
		if text = strings.Replace(text, pairs[i], pairs[i+1], 1); text == was {
			t.Fatalf("%q is not there", pairs[i])
		}
	}
	return text
}

const staged = `version: 1
name: scale
mode: cpu
entry: scale
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}, two: {N: 64}}
secret: {N: 1..100}
variants:
  stage0: {source: stage0.c}
  stage1: {source: stage1.c}
default_variant: stage0
`

// TestShapesOutsideLimits checks that a policy that names a shape which one side cannot run is refused
// with the side, before anything is built.
func TestShapesOutsideLimits(t *testing.T) {
	r := newTree(t)
	narrow := edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 1..20}}")
	files := map[string]string{"k/kernel.yaml": narrow, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": edited(t, policyYAML, "shapes: all", "shapes: [one, two]")}
	base := r.commit(files)
	head := r.commit(map[string]string{"k/stage0.c": "// head\n"})
	wide := r.commit(map[string]string{"k/kernel.yaml": staged})
	all := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(all, []byte(policyYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	const outside = `.github/kernelgate.yaml: rule default: gates.correctness.shapes: the shape "two" (N=64) is outside the limits of the variant stage0 of scale, the `
	const repairs = "The change repairs this"
	for name, c := range map[string]struct {
		opt  plan.Options
		says string // "" where nothing is refused
	}{
		"both sides":          {plan.Options{Base: base, Head: head}, outside + "candidate (both sides take one: name those, or widen its limits)"},
		"the other variant":   {plan.Options{Base: head, Head: head, BaselineVariant: "stage0", Variant: "stage1"}, outside + "baseline (both sides take one: name those, or widen its limits)"},
		"a wider head":        {plan.Options{Base: head, Head: wide}, outside + "baseline (both sides take one: name those, or widen its limits)\n" + repairs},
		"all shapes":          {plan.Options{Base: base, Head: head, Policy: all}, ""},
		"for information":     {plan.Options{Base: head, Head: wide, Versus: base}, ""},
		"the head and itself": {plan.Options{Base: base, Head: head, Versus: plan.Self}, outside + "candidate"},
	} {
		_, err := r.plan(c.opt).Job(t.Context(), "k")
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantMistake(t, err, c.says)
		if err != nil && strings.Contains(err.Error(), repairs) != strings.Contains(c.says, repairs) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNewDefaultVariant plans the usual pull request of a stage: a new file becomes the default.
// The baseline is the base's default, built and launched as the base says.
func TestNewDefaultVariant(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policyYAML})
	head := r.commit(map[string]string{
		"k/stage2.c":    "// 2\n",
		"k/kernel.yaml": edited(t, staged, "  stage1:", "  stage2: {source: stage2.c, flags: [-O3], lesson: tiles do not fit}\n  stage1:", "default_variant: stage0", "default_variant: stage2"),
	})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil {
		t.Fatal(err)
	}
	if job.Baseline.Variant != "stage0" || job.Candidate.Variant != "stage2" || len(job.Broken) > 0 {
		t.Fatalf("%s is compared with %s (%v)", job.Candidate.Variant, job.Baseline.Variant, job.Broken)
	}
	if v, err := job.Of(job.Candidate).Variant("stage2"); err != nil || v.Source != "stage2.c" || r.read(job.Candidate.Dir, v.Source) != "// 2\n" {
		t.Errorf("the candidate is %+v (%v)", v, err)
	}
	if len(job.Notes) != 0 {
		t.Errorf("notes: %v", job.Notes)
	}
	if job.Provenance.Head.Lesson != "tiles do not fit" || job.Provenance.Base.Lesson != "" {
		t.Errorf("the lesson is %q", job.Provenance.Head.Lesson)
	}
}

// TestBrokenHead checks that mistakes in a head's manifest are the author's, and are reported with
// their place.
func TestBrokenHead(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		want string
	}{
		"rubbish":              {"]\n", "k/kernel.yaml:1: is not valid YAML: did not find expected node content"},
		"a flag":               {edited(t, staged, "source: stage1.c", "source: stage1.c, flags: [-fplugin=x]"), "k/kernel.yaml:14: variants.stage1.flags[0]: "},
		"an unknown variant":   {edited(t, staged, "default_variant: stage0", "default_variant: stage9"), "k/kernel.yaml:15: default_variant: "},
		"outside the problem":  {edited(t, staged, "secret: {N: 1..100}\n", "", "{source: stage0.c}", "{source: stage0.c, limits: {N: 101..200}}", "{N: 10}", "{N: 101}"), "k/kernel.yaml:12: variants.stage0.limits.N: "},
		"a shape shed":         {edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 1..63}}"), "k/kernel.yaml:13: variants.stage0.limits: leave out the shapes two, which the policy asks for"},
		"by another default":   {edited(t, staged, "{source: stage1.c}", "{source: stage1.c, limits: {N: 1..63}}", "default_variant: stage0", "default_variant: stage1"), "k/kernel.yaml:14: variants.stage1.limits: leave out the shapes two, "},
		"secret shapes shed":   {edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 10|64}}"), ""},
		"limits for all of it": {edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 1..100}}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(map[string]string{"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policyYAML})
			head := r.commit(map[string]string{"k/kernel.yaml": c.head})
			job, err := r.job(plan.Options{Base: base, Head: head})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(job.Broken) > 0 {
					t.Errorf("%v", job.Broken)
				}
				return
			}
			if len(job.Broken) == 0 {
				t.Fatal("it is taken")
			}
			e := job.BrokenEvidence()
			if !strings.HasPrefix(e.Candidate.Error, c.want) {
				t.Errorf("the build says %q, want %q", e.Candidate.Error, c.want)
			}
			v := gates.Judge(job.Policy, job.PolicyFile, e)
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild {
				t.Errorf("%s (%s)", v.Outcome, v.Reason)
			}
		})
	}
	// Shapes that the head supports and the base does not are reported.
	w := newTree(t)
	narrow := w.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 1..20}}"), "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policyYAML})
	wide, err := w.job(plan.Options{Base: narrow, Head: w.commit(map[string]string{"k/kernel.yaml": staged})})
	if err != nil || len(wide.Broken) > 0 || len(wide.Notes) != 1 || !strings.Contains(wide.Notes[0], "takes shapes that the base's does not: two.") {
		t.Errorf("%v %v %v", err, wide.Broken, wide.Notes)
	}
	// If the policy asks for secret cases, or a guard times a secret shape, none of those can be
	// shed either.
	for _, secret := range []string{
		edited(t, policyYAML, "seeds: [0],", "seeds: [0], secret_cases: 2,"),
		edited(t, policyYAML, "rules:", "  performance: {guard: {speedup: \">= -2%\"}}\nrules:"),
	} {
		r := newTree(t)
		base := r.commit(map[string]string{"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": secret})
		head := r.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "{source: stage0.c}", "{source: stage0.c, limits: {N: 10|64}}")})
		job, err := r.job(plan.Options{Base: base, Head: head})
		if err != nil || len(job.Broken) != 1 || !strings.Contains(job.Broken[0].Message, "leave out some of the secret shapes") {
			t.Errorf("%v, %v", err, job.Broken)
		}
	}
}

// TestHostileLaunch checks that a launch that no device accepts never reaches one.
func TestHostileLaunch(t *testing.T) {
	const cuda = `version: 1
name: scale
mode: cuda
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}, two: {N: 64}}
entry: scale
arch: [sm_90]
source: scale.cu
launch: {grid: [N], block: [32]}
`
	r := newTree(t)
	base := r.commit(map[string]string{"k/kernel.yaml": cuda, "k/scale.cu": "// 0\n", "k/reference.cu": "// truth\n", ".github/kernelgate.yaml": policyYAML})
	for launch, want := range map[string]string{
		"{grid: [0 - N], block: [32]}":                       `launch.grid[0]: "0 - N" is -10 at shape one`,
		"{grid: [N*1000000000], block: [32]}":                "launch.grid[0]: ",
		"{grid: [N], block: [4096]}":                         "launch.block[0]: ",
		"{grid: [N], block: [32], shared_memory: 1000000*N}": "launch.shared_memory: ",
		"{grid: [N/0], block: [32]}":                         "launch.grid[0]: ",
	} {
		head := r.commit(map[string]string{"k/kernel.yaml": strings.Replace(cuda, "{grid: [N], block: [32]}", launch, 1)})
		job, err := r.job(plan.Options{Base: base, Head: head})
		if err != nil || len(job.Broken) == 0 || !strings.HasPrefix(job.BrokenEvidence().Candidate.Error, "k/kernel.yaml:11: "+want) {
			t.Errorf("%s: %v %v", launch, err, job.Broken)
		}
		r.git("checkout", "--quiet", base)
	}
	// A valid launch is the candidate's own.
	head := r.commit(map[string]string{"k/kernel.yaml": strings.Replace(cuda, "block: [32]}\n", "block: [64]}\n", 1)})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil || len(job.Notes) > 0 {
		t.Fatalf("%v, %v", err, job.Notes)
	}
	was, _ := job.Dispatch(*job.Baseline)
	if is, known := job.Dispatch(job.Candidate); was == is || !known {
		t.Fatalf("both sides have %s", is)
	}
	for side, want := range map[*runners.Side]int{job.Baseline: 32, &job.Candidate: 64} {
		if steps, err := job.Of(*side).Steps(side.Variant, job.Manifest.Shapes[0].Dims, nil); err != nil || steps[0].Block[0] != want {
			t.Errorf("the launch is %+v, want %d threads a block (%v)", steps, want, err)
		}
	}
}

// TestImplementationOfAnOldBranch checks that a head that did not touch its manifest is built by
// the base branch's, as a merge would be. If both have edited it, the result of a merge is unknown.
func TestImplementationOfAnOldBranch(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "k/reference.c": "// truth\n", ".github/kernelgate.yaml": policyYAML})
	tip := r.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "default_variant: stage0", "default_variant: stage1", "abs: 0.1", "abs: 0.01")})
	r.git("checkout", "--quiet", base)
	head := r.commit(map[string]string{"k/stage0.c": "// 0, faster\n"})
	job, err := r.job(plan.Options{Base: base, Head: head, Trusted: tip})
	if err != nil {
		t.Fatal(err)
	}
	if job.Baseline.Variant != "stage1" || job.Candidate.Variant != "stage1" || r.read(job.Candidate.Dir, "stage0.c") != "// 0, faster\n" {
		t.Errorf("%s is compared with %s", job.Candidate.Variant, job.Baseline.Variant)
	}
	if job.Of(job.Candidate).Tolerance.Abs != 0.01 || len(job.Broken) > 0 || len(job.Notes) > 0 {
		t.Errorf("%+v %v %v", job.Of(job.Candidate).Tolerance, job.Broken, job.Notes)
	}
	r.git("checkout", "--quiet", base)
	job, err = r.job(plan.Options{Base: base, Head: r.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "stage0.c}", "stage0.c, limits: {N: 1..1000}}")}), Trusted: tip})
	if err != nil || len(job.Broken) != 1 || !strings.Contains(job.Broken[0].Message, "update the branch") {
		t.Errorf("%v %v", err, job.Broken)
	}
	// An old manifest that no longer fits today's problem is nobody's mistake.
	other := r.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "name: x,", "name: z,", "shapes: {one: {N: 10}, two: {N: 64}}", "shapes: {one: {M: 10}}", "secret: {N: 1..100}\n", "", "[N]}\n  - {name: y", "[M]}\n  - {name: y", "out, shape: [N]", "out, shape: [M]")})
	stale := r.commit(map[string]string{"k/kernel.yaml": edited(t, staged, "stage0.c}", "stage0.c, limits: {N: 1..1000}}")})
	job, err = r.job(plan.Options{Base: stale, Head: stale, Trusted: other, Kernels: []string{"k"}})
	if err != nil || len(job.Broken) > 0 || job.Candidate.Manifest != nil || len(job.Notes) != 0 {
		t.Errorf("%v %v %v", err, job.Broken, job.Notes)
	}
}

// TestTrustedRevision checks that an old base brings neither its old rules nor an old kernel to
// compare with: those of the trusted revision apply. The candidate is what a merge would have, and
// files that both sides have edited since are reported.
func TestTrustedRevision(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	tip := r.commit(map[string]string{
		"k/scale.c": "// tip\n", "k/helper.c": "// tip's\n", "k/kernel.yaml": strings.Replace(manifestYAML, "abs: 0.1", "abs: 0.01", 1), ".github/kernelgate.yaml": strings.Replace(policyYAML, "1%", "0.1%", 1),
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
	if b, c := r.read(job.Baseline.Dir, "scale.c"), r.read(job.Candidate.Dir, "scale.c"); b != "// tip\n" || c != "// head\n" {
		t.Errorf("baseline %q and candidate %q, want the tip's and the head's", b, c)
	}
	if got := r.read(job.Candidate.Dir, "helper.c"); got != "// tip's\n" {
		t.Errorf("a merge has %q in helper.c", got)
	}
	if d := job.Candidate.Differs; len(d) != 1 || d[0].Path != "k/scale.c" || !strings.Contains(d[0].Why, "update the branch") {
		t.Errorf("%+v", d)
	}
	if job.Provenance.Baseline != tip || len(job.Baseline.Differs) > 0 {
		t.Errorf("%s %v", job.Provenance.Baseline, job.Baseline.Differs)
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
	var bad usage.Error
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
		"a new kernel":    {map[string]string{"n/kernel.yaml": manifestYAML, "n/scale.c": "// n\n", "n/reference.c": "// n\n"}, "n", false},
		"a removed one":   {map[string]string{"k/kernel.yaml": "", "k/scale.c": ""}, "k", true},
		"a moved one":     {map[string]string{"k/kernel.yaml": "", "m/kernel.yaml": manifestYAML, "m/scale.c": "// m\n", "m/reference.c": "// m\n"}, "m k", true},
		"beside a kernel": {map[string]string{"kk/notes.txt": "x\n"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(first)
			head := r.commit(c.edit)
			p := r.plan(plan.Options{Base: base, Head: head, Change: policy.Change{Branch: "main"}})
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

// TestSameNameElsewhere checks that two kernels whose folders have the same name do not get each
// other's files.
func TestSameNameElsewhere(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{
		".github/kernelgate.yaml": policyYAML,
		"a/k/kernel.yaml":         manifestYAML, "a/k/scale.c": "// a\n", "a/k/reference.c": "// truth\n", "a/k/only.h": "// a's alone\n",
		"b/k/kernel.yaml": manifestYAML, "b/k/scale.c": "// b\n", "b/k/reference.c": "// truth\n",
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

// TestGatedSinceAndNamesakes checks that a kernel that the base branch has put under the gate since
// the head branched off is gated, and that an ambiguous name selects no kernel.
func TestGatedSinceAndNamesakes(t *testing.T) {
	r := newTree(t)
	base := r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, "a/k/scale.c": "// free\n", "b/k/kernel.yaml": manifestYAML, "b/k/scale.c": "// b\n", "b/k/reference.c": "// truth\n"})
	trusted := r.commit(map[string]string{"a/k/kernel.yaml": manifestYAML, "a/k/reference.c": "// truth\n"})
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
	var bad usage.Error
	if _, err := kernels("k"); !errors.As(err, &bad) || !strings.Contains(err.Error(), `"k" is several kernels (write one of b/k, a/k)`) {
		t.Errorf("two kernels of one name: %v", err)
	}
}
