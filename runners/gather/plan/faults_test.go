package plan_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A fading context ends after it was asked a number of times, so that git's next call fails. With
// once it fails one call of git, and the calls after that succeed: so an error that is not returned
// leads to a different plan.
type fading struct {
	context.Context
	left  int
	once  bool
	mu    sync.Mutex // another goroutine waits for git
	asked int
	owes  int // owes counts how often it still reports why it ended, to git and to git's caller.
	over  chan struct{}
}

// callAsks is how often one call of git asks the context at most.
const callAsks = 3

func (f *fading) ask(done bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	ends := f.left > 0 && f.asked > f.left && (!f.once || f.asked <= f.left+callAsks)
	failed := ends || f.owes > 0 && !done
	f.owes = max(0, f.owes-1)
	if failed && done {
		f.owes = 2
	}
	return failed
}

func (f *fading) Err() error {
	if f.ask(false) {
		return context.Canceled
	}
	return nil
}

func (f *fading) Done() <-chan struct{} {
	if f.ask(true) {
		return f.over
	}
	return nil
}

// TestFaultsMakeNoOtherPlan checks that a fault of git at any moment is an error. It never leads to
// a different plan, and it is never reported as the author's mistake.
func TestFaultsMakeNoOtherPlan(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(*testing.T, *tree) (plan.Options, string)
		once  bool
	}{
		{"against the merge base", mergeBase, false}, {"against a branch", branch, false},
		{"once, against a branch", branch, true}, {"once, in the work tree", workTree, true}, {"once, against the best", bestBaseline, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			opt, _ := c.setup(t, r)
			r.faultsMakeNoOtherPlan(opt, c.once)
		})
	}
}

func mergeBase(t *testing.T, r *tree) (plan.Options, string) {
	return namedBaseline(t, r, "base"), ""
}
func branch(t *testing.T, r *tree) (plan.Options, string) { return namedBaseline(t, r, "ref:main"), "" }

// namedBaseline returns a change of a kernel with a header elsewhere, under a policy with this
// baseline.
func namedBaseline(t *testing.T, r *tree, baseline string) plan.Options {
	base := r.commit(with(map[string]string{
		"common/c.h": "// common\n", "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\ninclude: [common]"),
		".github/kernelgate.yaml": edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}, baseline: \""+baseline+"\"}\nrules:"),
	}))
	return plan.Options{Base: base, Head: r.commit(map[string]string{"k/scale.c": "#include \"new.h\"\n#include <c.h>\n", "k/new.h": "// new\n", "k/reference.c": "// edited\n"})}
}

func (r *tree) faultsMakeNoOtherPlan(opt plan.Options, once bool) {
	r.Helper()
	planned := func(left int) (string, *fading, error) {
		over := make(chan struct{})
		close(over)
		ctx := &fading{Context: r.Context(), left: left, once: once, over: over}
		var err error
		if opt.Repo, err = checkout.Open(r.Context(), r.dir); err != nil {
			r.Fatal(err)
		}
		opt.Scratch = r.TempDir()
		p, err := plan.New(ctx, opt)
		if err != nil {
			return "", ctx, err
		}
		keys, err := p.Kernels(ctx)
		if err != nil || len(keys) == 0 {
			return fmt.Sprint(keys), ctx, err
		}
		job, err := p.Job(ctx, keys[0])
		if err != nil {
			return "", ctx, err
		}
		return fmt.Sprint(keys) + r.describe(job), ctx, nil
	}
	want, whole, err := planned(0)
	if err != nil {
		r.Fatal(err)
	}
	for left := 1; left <= whole.asked; left++ {
		got, _, err := planned(left)
		if err == nil && got != want {
			r.Errorf("a fault at question %d of %d: the plan is\n%s\nwant\n%s", left, whole.asked, got, want)
		}
		if _, mistake := errors.AsType[usage.Error](err); mistake {
			r.Errorf("a fault at question %d of %d is told as the author's mistake: %v", left, whole.asked, err)
		}
	}
}

// contents returns every file below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestBaselinesThatAreNotThere checks that a baseline that the policy names and that does not exist
// is a mistake of the policy.
func TestBaselinesThatAreNotThere(t *testing.T) {
	for baseline, fine := range map[string]bool{"base": true, "variant:default": true, "variant:moon": false, "ref:moon": false, "tag:moon": false, "ref:main": true} {
		r := newTree(t)
		files := map[string]string{}
		for name, text := range first {
			files[name] = text
		}
		files[".github/kernelgate.yaml"] = edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}, baseline: \""+baseline+"\"}\nrules:")
		base := r.commit(files)
		head := r.commit(map[string]string{"k/scale.c": "// head\n"})
		_, err := r.job(plan.Options{Base: base, Head: head})
		if _, mistake := errors.AsType[usage.Error](err); fine && err != nil || !fine && (!mistake || !strings.Contains(err.Error(), "the policy's baseline")) {
			t.Errorf("%s: %v", baseline, err)
		}
	}
}

// TestManyEditsOfTheProblem checks that a note names twenty edits and counts the rest.
func TestManyEditsOfTheProblem(t *testing.T) {
	shapes := func(count, n int) string {
		var list []string
		for i := range count {
			list = append(list, fmt.Sprintf("s%d: {N: %d}", i, n+i))
		}
		return "shapes: {" + strings.Join(list, ", ") + "}"
	}
	for count, more := range map[int]string{20: "", 21: "and 1 more", 25: "and 5 more"} {
		r := newTree(t)
		files := map[string]string{}
		for name, text := range first {
			files[name] = text
		}
		files["k/kernel.yaml"] = edited(t, manifestYAML, "shapes: {one: {N: 10}}", shapes(count, 1))
		base := r.commit(files)
		head := r.commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "shapes: {one: {N: 10}}", shapes(count, 50)), "k/scale.c": "// head\n"})
		job, err := r.job(plan.Options{Base: base, Head: head})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(job.Notes, "\n")
		if got := strings.Count(notes, "shapes.s"); got != min(count, 20) || more == "" && strings.Contains(notes, "more") || !strings.Contains(notes, more) {
			t.Errorf("%d edits: %d are named in %s", count, got, notes)
		}
	}
}

// TestRoomsOfOneName checks that kernels with the same name in different folders are written to
// different folders.
func TestRoomsOfOneName(t *testing.T) {
	r := newTree(t)
	files := map[string]string{".github/kernelgate.yaml": policyYAML}
	for _, folder := range []string{"a/k/", "b/k/", "c/k/"} {
		for _, name := range []string{"kernel.yaml", "scale.c", "reference.c"} {
			files[folder+name] = first["k/"+name]
		}
	}
	base := r.commit(files)
	head := r.commit(map[string]string{"a/k/scale.c": "// a\n", "b/k/scale.c": "// b\n", "c/k/scale.c": "// c\n"})
	p := r.plan(plan.Options{Base: base, Head: head})
	keys, err := p.Kernels(t.Context())
	if err != nil || len(keys) != 3 {
		t.Fatal(keys, err)
	}
	var rooms []string
	for i, key := range keys {
		job, err := p.Job(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, filepath.Base(filepath.Dir(job.Candidate.Dir)))
		if got := r.read(job.Candidate.Dir, "scale.c"); got != "// "+string(rune('a'+i))+"\n" {
			t.Errorf("%s has %q", key, got)
		}
	}
	if got := strings.Join(rooms, " "); got != "k k-2 k-3" {
		t.Errorf("the folders are %s", got)
	}
}
