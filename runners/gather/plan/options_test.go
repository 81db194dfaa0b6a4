package plan_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// wantMistake expects an error that is reported to users as their mistake.
func wantMistake(t *testing.T, err error, text string) {
	t.Helper()
	if _, mistake := errors.AsType[usage.Error](err); !mistake || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want a mistake that says %q", err, text)
	}
}

// TestVariants checks that two variants are built from the files of one state.
func TestVariants(t *testing.T) {
	r := newTree(t)
	files := with(map[string]string{"k/kernel.yaml": edited(t, staged, "entry: scale", "entry: scale\ninclude: [common]"), "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "common/a.h": "// a\n"})
	base := r.commit(files)
	opt := plan.Options{Base: base, Head: base, Variant: "stage1", BaselineVariant: "stage0"}
	job, err := r.job(opt)
	if err != nil {
		t.Fatal(err)
	}
	if job.Candidate.Variant != "stage1" || job.Baseline.Variant != "stage0" || job.Candidate.Dir != job.Baseline.Dir || r.read(job.Candidate.Dir, ".repository/common/a.h") != "// a\n" {
		t.Errorf("%+v is compared with %+v", job.Candidate, job.Baseline)
	}
	if p := job.Provenance; p.Base.Variant != "stage0" || p.Head.Variant != "stage1" || p.Command != "kernelgate check --baseline-variant stage0 --variant stage1 k" {
		t.Errorf("the record is %+v", p)
	}
	for _, unknown := range []plan.Options{{Variant: "stage9", BaselineVariant: "stage0"}, {Variant: "stage1", BaselineVariant: "stage9"}} {
		unknown.Base, unknown.Head = base, base
		_, err := r.job(unknown)
		wantMistake(t, err, "stage9")
	}
	opt.Head = r.commit(map[string]string{"other/kernel.yaml": manifestYAML})
	_, err = r.plan(opt).Kernels(t.Context())
	wantMistake(t, err, "the repository has 2 kernels: name the one whose variants to compare (there are k, other)")
	opt.Kernels = []string{"k"}
	if keys, err := r.plan(opt).Kernels(t.Context()); err != nil || strings.Join(keys, " ") != "k" {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestWhichPolicy checks that a policy comes from the named file or shipped policy, from a
// different revision, or from the trusted one.
func TestWhichPolicy(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	head := r.commit(map[string]string{"k/scale.c": "// head\n", ".github/kernelgate.yaml": edited(t, policyYAML, "1%", "5%")})
	r.git("rm", "--quiet", ".github/kernelgate.yaml")
	r.git("commit", "--quiet", "-m", "x")
	without := r.git("rev-parse", "HEAD")
	last := r.commit(map[string]string{"k/scale.c": "// last\n"})
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte(edited(t, policyYAML, "1%", "7%")), 0o600); err != nil {
		t.Fatal(err)
	}
	const edits, none = "The change edits the policy", "The base has no .github/kernelgate.yaml: the shipped policy default is used."
	for name, c := range map[string]struct {
		opt                    plan.Options
		file, has, note, lacks string
	}{
		"the base's":      {plan.Options{Base: base, Head: head}, plan.PolicyFile, "<= 1%", edits, ""},
		"the head's":      {plan.Options{Base: base, Head: head, PolicyAt: head}, plan.PolicyFile, "<= 5%", "", edits},
		"a file":          {plan.Options{Base: base, Head: head, Policy: own}, own, "<= 7%", "", edits},
		"a shipped one":   {plan.Options{Base: base, Head: head, Policy: "default"}, "default.yaml", "version: 1", "", "The"},
		"none":            {plan.Options{Base: without, Head: last}, "default.yaml", "version: 1", none, edits},
		"none of another": {plan.Options{Base: base, Head: head, PolicyAt: without}, "default.yaml", "version: 1", none, edits},
	} {
		c.opt.Kernels = []string{"k"}
		job, err := r.job(c.opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		notes := strings.Join(job.Notes, "\n")
		if job.PolicyFile != c.file || !strings.Contains(job.PolicyText, c.has) || !strings.Contains(notes, c.note) || c.lacks != "" && strings.Contains(notes, c.lacks) {
			t.Errorf("%s: %s, notes %q:\n%s", name, job.PolicyFile, notes, job.PolicyText)
		}
		if job.Policy == nil || len(job.Provenance.Policy) != 64 {
			t.Errorf("%s: it is recorded as %q", name, job.Provenance.Policy)
		}
	}
	for name, want := range map[string]string{filepath.Join(t.TempDir(), "none.yaml"): "name a file, or one of ", "": "no policy was named"} {
		_, _, err := plan.PolicyNamed(name)
		wantMistake(t, err, want)
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	_, err := r.plan(plan.Options{Base: base, Head: head, Policy: missing}).Job(t.Context(), "k")
	wantMistake(t, err, "none.yaml")
	wrong := r.commit(map[string]string{".github/kernelgate.yaml": "version: 2\n"})
	_, err = r.plan(plan.Options{Base: wrong, Head: wrong}).Job(t.Context(), "k")
	wantMistake(t, err, plan.PolicyFile+":1")
}

// TestPinsOfANamedPolicy checks that the pins of a named policy hold on both sides, whatever the
// change does to its own policy.
func TestPinsOfANamedPolicy(t *testing.T) {
	r := newTree(t)
	base := r.commit(compiled("toolchains: {nvcc: {version: 13.0.88}}\n"))
	head := r.commit(map[string]string{".github/kernelgate.yaml": compiled("toolchains: {nvcc: {version: 12.9.86}}\n")[".github/kernelgate.yaml"], "fill/fill.cu": "// head\n"})
	named := filepath.Join(t.TempDir(), "named.yaml")
	if err := os.WriteFile(named, []byte("version: 1\ntoolchains: {nvcc: {version: 12.8.93}}\ngates: {}\nrules: [{name: default}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const own = "the runner's own"
	for name, c := range map[string]struct {
		opt  plan.Options
		want string
	}{
		"a named policy":      {plan.Options{Base: base, Head: head, Policy: named}, "12.8.93, " + own + "; 12.8.93, " + own},
		"of another revision": {plan.Options{Base: base, Head: head, PolicyAt: head}, "12.9.86, " + own + "; 12.9.86, " + own},
		"one of them by hand": {plan.Options{Base: base, Head: head, Kernels: []string{"fill"}, Before: policy.Toolchains{NVCC: &policy.Toolchain{Version: "12.6.85"}}}, "12.6.85, " + own + "; 13.0.88, " + own},
		"with itself":         {plan.Options{Base: base, Head: head, Versus: plan.Self}, "12.9.86, " + own + "; 12.9.86, " + own},
	} {
		job, err := r.plan(c.opt).Job(t.Context(), "fill")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := pinsOf(job); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCommandOfARecord checks that the record says how to run a check again, with all options.
func TestCommandOfARecord(t *testing.T) {
	r := newTree(t)
	base := r.commit(with(map[string]string{".github/kernelgate.yaml": edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}}\nrules:")}))
	head := r.commit(map[string]string{"k/scale.c": "// head\n"})
	r.write("k/scale.c", "// work tree\n")
	pin := func(version string) policy.Toolchains {
		return policy.Toolchains{Triton: &policy.Toolchain{Version: version}}
	}
	for name, c := range map[string]struct {
		opt  plan.Options
		want string
	}{
		"commits":       {plan.Options{Base: base, Head: head}, "--base " + base + " --head " + head + " k"},
		"the work tree": {plan.Options{Base: base}, "--base " + base + " k"},
		"labels":        {plan.Options{Base: base, Head: head, Change: policy.Change{Labels: []string{"docs", "fast"}}}, "--base " + base + " --head " + head + " --label docs --label fast k"},
		"hostile names": {plan.Options{Base: base, Head: head, Change: policy.Change{Labels: []string{"good first issue", "'; id"}}}, "--base " + base + " --head " + head + ` --label 'good first issue' --label ''\''; id' k`},
		"a policy":      {plan.Options{Base: base, Head: head, Policy: "default"}, "--base " + base + " --head " + head + " --policy default k"},
		"compilers":     {plan.Options{Base: base, Head: head, Before: pin("3.6.0"), After: pin("3.9.0")}, "--toolchain old=triton@3.6.0 --toolchain new=triton@3.9.0 k"},
	} {
		job, err := r.plan(c.opt).Job(t.Context(), "k")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := job.Provenance.Command; got != "kernelgate check "+c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if dirty := c.opt.Head == ""; job.Provenance.Head.Dirty != dirty || job.Provenance.Repository != filepath.Base(r.dir) {
			t.Errorf("%s: the record is %+v", name, job.Provenance)
		}
	}
	job, err := r.plan(plan.Options{Base: base, Head: head, Rounds: 7}).Job(t.Context(), "k")
	if err != nil || slices.Max(job.Rule().Gates.Performance.Interims) != 7 || !slices.Equal(job.Notes, []string{"At most 7 rounds were allowed on the command line."}) {
		t.Errorf("%v, %+v, %v", err, job.Rule().Gates.Performance, job.Notes)
	}
	most := int(job.Rule().Gates.Performance.Rounds.Max)
	for rounds, want := range map[int][]string{most: nil, most + 1: {fmt.Sprintf("The command line has raised the maximum to %d rounds.", most+1)}} {
		job, err := r.plan(plan.Options{Base: base, Head: head, Rounds: rounds}).Job(t.Context(), "k")
		if err != nil || slices.Max(job.Rule().Gates.Performance.Interims) != rounds || !slices.Equal(job.Notes, want) {
			t.Errorf("%d rounds: %v, %+v, %v", rounds, err, job.Rule().Gates.Performance, job.Notes)
		}
	}
	job, err = r.plan(plan.Options{Base: base, Head: head, Repository: "olga/kernels", Rounds: 3, Static: true}).Job(t.Context(), "k")
	if err != nil || job.Provenance.Repository != "olga/kernels" {
		t.Errorf("%v, %+v", err, job.Provenance)
	}
	if g := job.Policy.Rules[0].Gates; g.Correctness != nil || g.Performance != nil || len(job.Notes) != 2 || !strings.Contains(job.Notes[0], "At most 6 rounds") || !strings.Contains(job.Notes[1], "nothing was run") {
		t.Errorf("%+v, %v", g, job.Notes)
	}
}

// TestPolicyIsParsedOnce checks that all kernels of a change share one policy, whatever the caller
// asks of each, and that nothing changes it.
func TestPolicyIsParsedOnce(t *testing.T) {
	r := newTree(t)
	asked := edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}}\nrules:")
	pinned := "toolchains: {triton: {version: 3.6.0}}\n" + asked
	base := r.commit(with(map[string]string{
		"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", ".github/kernelgate.yaml": pinned,
		"n/kernel.yaml": edited(t, staged, "name: scale", "name: new"), "n/stage0.c": "// n0\n", "n/stage1.c": "// n1\n", "n/reference.c": "// truth\n",
	}))
	head := r.commit(map[string]string{"k/stage0.c": "// head\n", "n/stage0.c": "// head\n"})
	parsed := 0
	opt := plan.Options{Base: base, Head: head, Rounds: 7, Static: true, ParsePolicy: func(file string, text []byte) (*policy.Policy, error) {
		parsed++
		return policy.Parse(file, text)
	}}
	p := r.plan(opt)
	for _, key := range []string{"k", "n"} {
		for _, p := range []*plan.Plan{p, p.As(policy.Change{Labels: []string{"docs"}})} {
			job, err := p.Job(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if g := job.Rule().Gates; g.Performance != nil || job.Candidate.Toolchains.Triton == nil {
				t.Errorf("%s: gates %+v, toolchains %+v", key, g, job.Candidate.Toolchains)
			}
		}
	}
	if parsed != 1 {
		t.Errorf("the policy was parsed %d times", parsed)
	}
}

// TestOtherBaselines checks that a policy may name any variant of the baseline, and that a new
// kernel has a baseline if the caller names one.
func TestOtherBaselines(t *testing.T) {
	r := newTree(t)
	asked := edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}, baseline: \"variant:stage1\"}\nrules:")
	base := r.commit(with(map[string]string{"k/kernel.yaml": staged, "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", ".github/kernelgate.yaml": asked}))
	head := r.commit(map[string]string{"k/stage0.c": "// head\n", "n/kernel.yaml": edited(t, staged, "name: scale", "name: new"), "n/stage0.c": "// n0\n", "n/stage1.c": "// n1\n", "n/reference.c": "// truth\n"})
	job, err := r.plan(plan.Options{Base: base, Head: head}).Job(t.Context(), "k")
	if err != nil || job.Baseline.Variant != "stage1" || job.Candidate.Variant != "stage0" {
		t.Errorf("%+v (%v)", job.Baseline, err)
	}
	for _, kind := range []string{"ref", "tag"} {
		r.git(map[string]string{"ref": "branch", "tag": "tag"}[kind], "old-"+kind, base)
		asks := r.commit(map[string]string{"k/stage0.c": "// later\n", ".github/kernelgate.yaml": edited(t, asked, "variant:stage1", kind+":old-"+kind)})
		job, err := r.plan(plan.Options{Base: asks, Head: r.commit(map[string]string{"k/stage0.c": "// latest " + kind + "\n"})}).Job(t.Context(), "k")
		if err != nil || job.Provenance.Baseline != base || r.read(job.Baseline.Dir, "stage0.c") != "// 0\n" || job.Baseline.Variant != "stage0" {
			t.Errorf("%s: %v, %+v", kind, err, job.Baseline)
		}
	}
	if job, err = r.plan(plan.Options{Base: base, Head: head}).Job(t.Context(), "n"); err != nil || job.Baseline != nil || !strings.Contains(strings.Join(job.Notes, " "), "The kernel is new") {
		t.Errorf("a new kernel: %v %+v %v", err, job.Baseline, job.Notes)
	}
	if job, err = r.plan(plan.Options{Base: base, Head: head, Versus: head}).Job(t.Context(), "n"); err != nil || job.Baseline == nil || job.Provenance.Baseline != head || r.read(job.Baseline.Dir, "stage0.c") != "// n0\n" {
		t.Errorf("a new kernel against its own revision: %v %+v", err, job.Baseline)
	}
	if job, err = r.plan(plan.Options{Base: base, Head: head, Versus: plan.Self}).Job(t.Context(), "n"); err != nil || !job.Noise || job.Baseline == nil || job.Baseline.Dir != job.Candidate.Dir {
		t.Errorf("a new kernel against itself: %v %+v", err, job.Baseline)
	}
}

// TestFasterStates checks that a faster state is the baseline if it may and can be measured on
// today's problem. The note names each state that cannot.
func TestFasterStates(t *testing.T) {
	r := newTree(t)
	best := edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}, baseline: best}\nrules:")
	commit := func(files map[string]string) string {
		t.Helper()
		return r.commit(files)
	}
	fast := commit(with(map[string]string{".github/kernelgate.yaml": best, "k/scale.c": "// fast\n"}))
	moved := commit(map[string]string{"old/kernel.yaml": manifestYAML, "old/scale.c": "// moved\n", "old/reference.c": "// truth\n"})
	otherArguments := commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "name: y, dtype: f32", "name: y, dtype: f64")})
	otherMode := commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "mode: cpu\nentry: scale\nsource: scale.c", "mode: command\ncommand: [run]\nsources: [scale.c]", "reference: {source: reference.c, entry: reference}\n", "")})
	wrong := commit(map[string]string{"k/kernel.yaml": "]\n"})
	unfit := commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "one: {N: 10}", "one: {N: 101}", "limits: {N: 1..100}", "limits: {N: 1..1000}\nvariants: {a: {source: scale.c, limits: {N: 101..1000}}}", "source: scale.c\n", "")})
	otherTolerance := commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "abs: 0.1", "abs: 0.2"), "k/scale.c": "// tolerant\n"})
	base := commit(map[string]string{"k/kernel.yaml": manifestYAML, "k/scale.c": "// slow\n"})
	head := commit(map[string]string{"k/scale.c": "// head\n"})
	r.git("checkout", "--quiet", "--detach", base)
	unreached := commit(map[string]string{"k/scale.c": "// nobody's\n"})
	r.git("checkout", "--quiet", "main")

	many := make([]plan.Faster, 10)
	for i := range many {
		many[i] = plan.Faster{Commit: fast, Key: "k", Unbuildable: true}
	}
	one := func(commit string) []plan.Faster { return []plan.Faster{{Commit: commit, Key: "k", On: "L4"}} }
	for name, c := range map[string]struct {
		states []plan.Faster
		source string // the baseline's
		note   string
	}{
		"none":            {nil, "// slow\n", "No merged state is known to be faster than the base branch, which is the baseline."},
		"one":             {one(fast), "// fast\n", "The baseline is the kernel's best, " + fast[:12] + ", as the policy says. It was found on L4."},
		"other tolerance": {one(otherTolerance), "// tolerant\n", otherTolerance[:12]},
		"a moved kernel":  {[]plan.Faster{{Commit: moved, Key: "old"}}, "// moved\n", moved[:12]},
		"not built":       {many[:1], "// slow\n", "No faster state can be measured, so the baseline is the base branch.\nFaster states of the kernel that cannot be the baseline: " + fast[:12] + " (it did not build)."},
		"unknown":         {one(strings.Repeat("d", 40)), "// slow\n", "dddddddddddd (the repository does not have it any more)"},
		"unreached":       {one(unreached), "// slow\n", "(no branch and no tag leads to it any more)"},
		"no manifest":     {[]plan.Faster{{Commit: fast, Key: "old"}}, "// slow\n", "(it has no manifest in old)"},
		"other arguments": {one(otherArguments), "// slow\n", "(it takes other arguments than today)"},
		"another mode":    {one(otherMode), "// slow\n", otherMode[:12] + " (it"},
		"wrong":           {one(wrong), "// slow\n", "(its manifest does not fit what is asked now)"},
		"does not fit":    {one(unfit), "// slow\n", "(its manifest does not fit what is asked now)"},
		"the second":      {append(one(wrong), one(fast)...), "// fast\n", "cannot be the baseline: " + wrong[:12] + " (its manifest"},
		"the tenth":       {append(many[:9:9], one(fast)...), "// fast\n", fast[:12]},
		"the eleventh":    {append(many[:10:10], one(fast)...), "// slow\n", "No faster state can be measured"},
	} {
		job, err := r.plan(plan.Options{Base: base, Head: head, Faster: faster(c.states...)}).Job(t.Context(), "k")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, notes := r.read(job.Baseline.Dir, "scale.c"), strings.Join(job.Notes, "\n"); got != c.source || !strings.Contains(notes, c.note) {
			t.Errorf("%s: the baseline is %q, notes %s", name, got, notes)
		}
		if known := job.Provenance.Baseline != ""; known != (c.source != "// slow\n") {
			t.Errorf("%s: the record says %q", name, job.Provenance.Baseline)
		}
	}
	fault := errors.New("the history cannot be read")
	_, err := r.plan(plan.Options{Base: base, Head: head, Faster: func(context.Context, runners.Job) ([]plan.Faster, error) { return nil, fault }}).Job(t.Context(), "k")
	if !errors.Is(err, fault) {
		t.Errorf("%v, want %v", err, fault)
	}
	job, err := r.plan(plan.Options{Base: base, Head: head}).Job(t.Context(), "k")
	if err != nil || !strings.Contains(strings.Join(job.Notes, "\n"), "The history of merges is not known here") {
		t.Errorf("%v, %v", job.Notes, err)
	}
}

// TestNoScratchFolder checks that a missing scratch folder is an error.
func TestNoScratchFolder(t *testing.T) {
	r := newTree(t)
	base := r.commit(first)
	r.plan(plan.Options{Base: base, Head: base})
	p, err := plan.New(t.Context(), plan.Options{Repo: r.repo, Base: base, Head: base, Scratch: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Job(t.Context(), "k"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
