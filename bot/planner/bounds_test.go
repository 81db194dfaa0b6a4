package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

func (w *world) git(stdin string, args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", append([]string{"-C", w.repo.Dir(), "-c", "user.name=e", "-c", "user.email=e@e.invalid"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// forged is main with another folder in place of kernels or beside it, as a head.
func (w *world) forged(name, tree string) (change.ID, change.Facts) {
	w.Helper()
	var lines []string
	for line := range strings.SplitSeq(w.git("", "ls-tree", w.repo.Head("main")), "\n") {
		if !strings.HasSuffix(line, "\t"+name) {
			lines = append(lines, line)
		}
	}
	lines = append(lines, fmt.Sprintf("040000 tree %s\t%s", tree, name))
	head := w.git("x", "commit-tree", "-p", w.repo.Head("main"), w.git(strings.Join(lines, "\n")+"\n", "mktree"))
	w.proposed++
	w.git("", "update-ref", fmt.Sprintf("refs/heads/forged-%d", w.proposed), head)
	return w.pull(w.proposed), change.Facts{Repo: w.repo.FullName(), Open: true, Fork: true, Head: head, Base: "main"}
}

// kernelWith is the folder kernels with lines added to the kernel's own.
func (w *world) kernelWith(lines ...string) string {
	w.Helper()
	have := w.git("", "ls-tree", w.repo.Head("main")+":"+folder)
	inner := w.git(have+"\n"+strings.Join(lines, "\n")+"\n", "mktree")
	return w.git(fmt.Sprintf("040000 tree %s\tscale\n", inner), "mktree")
}

// A commit that nobody has approved cannot make the planner read or write without
// end; its author is told what was refused, and it is not tried again.
func TestBombs(t *testing.T) {
	w := newWorld(t, usual())
	nested := w.git("100644 blob "+w.git("x", "hash-object", "-w", "--stdin")+"\tf\n", "mktree")
	for range 9 {
		var lines strings.Builder
		for i := range 10 {
			fmt.Fprintf(&lines, "040000 tree %s\td%d\n", nested, i)
		}
		nested = w.git(lines.String(), "mktree")
	}
	zeros := w.git(strings.Repeat("\x00", 8<<20), "hash-object", "-w", "--stdin")
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("100644 blob %s\tz%04d.h", zeros, i))
	}
	kernels := ""
	one := w.git("", "rev-parse", w.repo.Head("main")+":"+folder)
	for i := range 101 {
		kernels += fmt.Sprintf("040000 tree %s\tk%03d\n", one, i)
	}
	for name, c := range map[string]struct{ at, tree, file, message string }{
		"a billion files":           {"zz", nested, "", "the change touches more than 50000 files"},
		"one file under many names": {"kernels", w.kernelWith(names...), folder + "/z0032.h", "up to here the folder has"},
		"many kernels":              {"more", w.git(kernels, "mktree"), "", "the change touches 101 kernels (at most 100"},
	} {
		p := w.plan(w.forged(c.at, c.tree))
		if len(p.Problems) != 1 || p.Problems[0].File != c.file || !p.Refused || !strings.Contains(p.Problems[0].Message, c.message) || len(p.Kernels) > 0 {
			t.Errorf("%s: the problems are %+v, with %d kernels", name, p.Problems, len(p.Kernels))
		}
	}
	if len(w.bundles) > 0 {
		t.Errorf("%d bundles were packed", len(w.bundles))
	}
}

// A look that takes too long is ended. The machine is at fault, not the change: the planner
// returns an error, and reads the change the next time.
func TestDeadline(t *testing.T) {
	w := newWorld(t, usual())
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	w.planner.Timeout = time.Nanosecond
	p, err := w.planner.Plan(t.Context(), id, facts)
	if !errors.Is(err, planner.ErrSlow) || !strings.Contains(err.Error(), "more than 1ns") || len(p.Problems) > 0 || p.Refused {
		t.Errorf("in no time: %+v, %v", p.Problems, err)
	}
	if _, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder}); !errors.Is(err, planner.ErrSlow) {
		t.Errorf("again in no time: %v", err)
	}
	w.planner.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := w.planner.Plan(ctx, id, facts); err == nil || errors.Is(err, planner.ErrSlow) || len(p.Problems) > 0 {
		t.Errorf("cancelled: %+v, %v", p.Problems, err)
	}
	if p := w.plan(id, facts); len(p.Problems) > 0 || len(p.Kernels) != 1 {
		t.Errorf("with time: %+v, %d kernels", p.Problems, len(p.Kernels))
	}
}

// watched is a context that counts how often somebody looks at its deadline.
type watched struct {
	context.Context
	looks *int
}

func (w watched) Err() error {
	*w.looks++
	return w.Context.Err()
}

// The deadline is looked at before each of many manifests, not only where git is asked.
func TestDeadlineAmongManifests(t *testing.T) {
	w := newWorld(t, usual())
	looks := func() (n int) {
		if _, _, err := w.planner.Rules(watched{t.Context(), &n}, w.repo.FullName(), "main"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	one, more := looks(), tree{}
	for i := range 10 {
		more[fmt.Sprintf("kernels/k%d/kernel.yaml", i)] = usual()[folder+"/kernel.yaml"]
	}
	w.push("main", more)
	if eleven := looks(); eleven < one+10 {
		t.Errorf("the deadline was looked at %d times for one manifest and %d times for eleven", one, eleven)
	}
}

// overfull is a mirror that refuses what a pull request brings.
type overfull struct{ here }

func (overfull) FetchHead(context.Context, string, string, ...string) (*checkout.Repo, error) {
	return nil, fmt.Errorf("fetching: %w", checkout.Refused{Why: "its commits are more than 512 MiB"})
}

func TestFetchRefused(t *testing.T) {
	w := newWorld(t, usual())
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	rules := w.plan(id, facts).Rules
	w.planner.Mirrors = overfull{w.planner.Mirrors.(here)}
	p := w.plan(id, facts)
	if p.Rules != rules { // a decision on it holds for them
		t.Errorf("the rules are %q, not %q", p.Rules, rules)
	}
	if len(p.Problems) != 1 || !strings.Contains(p.Problems[0].Message, "its commits are more than 512 MiB") || p.Key != facts.PlanKey() || p.Check == "" {
		t.Errorf("the plan is %+v", p.Plan)
	}
}

// What is measured beside a change is code that the repository has, or that somebody
// has approved: a fork's commits are in the mirror before that.
func TestVersusOfAFork(t *testing.T) {
	w := newWorld(t, usual())
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	old := w.repo.Head("main")
	w.push("main", tree{folder + "/scale.c": "// newer\n"})
	evil := w.git("x", "commit-tree", "-p", old, w.git("", "rev-parse", old+"^{tree}"))
	w.git("", "update-ref", "refs/pull/9/head", evil)
	w.git("", "update-ref", "refs/tags/v1", w.git("y", "commit-tree", w.git("", "rev-parse", old+"^{tree}")))
	rerun := func(versus string, approved ...string) error {
		_, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder, Versus: versus, Approved: approved})
		return err
	}
	for _, versus := range []string{evil, evil[:12], "refs/pull/9/head", "pull/9/head", evil + "^0"} {
		var bad usage.Error
		if err := rerun(versus); !errors.As(err, &bad) || !strings.Contains(err.Error(), "is on no branch and under no tag") {
			t.Errorf("vs=%s: %v", versus, err)
		}
	}
	for _, versus := range []string{"main", old, "v1", "topic-1", facts.Head, plan.Self, evil + "^"} {
		if err := rerun(versus); err != nil {
			t.Errorf("vs=%s: %v", versus, err)
		}
	}
	if err := rerun(evil, evil); err != nil {
		t.Errorf("an approved head: %v", err)
	}
}

// A policy that the change itself brings names no such code either.
func TestOwnPolicysBaseline(t *testing.T) {
	files := usual()
	delete(files, policyFile)
	w := newWorld(t, files)
	evil := w.git("x", "commit-tree", w.git("", "rev-parse", w.repo.Head("main")+"^{tree}"))
	w.git("", "update-ref", "refs/pull/9/head", evil)
	for baseline, fine := range map[string]bool{evil: false, "pull/9/head": false, "main": true} {
		own := replaced(t, policyYAML, "  performance: {target: {shapes: [mission], speedup: \">= +10%\"", `  performance: {baseline: "ref:`+baseline+`", target: {shapes: [mission], speedup: ">= +10%"`)
		p := w.plan(w.propose(tree{folder + "/scale.c": "// " + baseline + "\n", policyFile: own}))
		told := len(p.Problems) == 1 && strings.Contains(p.Problems[0].Message, "is on no branch and under no tag")
		if told == fine || (len(p.Kernels) == 1) != fine {
			t.Errorf("baseline %s: problems %+v, %d kernels", baseline, p.Problems, len(p.Kernels))
		}
	}
}

// A pull request that leaves a manifest in the repository's top folder does not pass: nothing would gate that kernel.
func TestManifestInTheTopFolder(t *testing.T) {
	w := newWorld(t, usual())
	p := w.plan(w.propose(tree{"kernel.yaml": manifest, "scale.c": "// head\n", "reference.c": "// truth\n"}))
	if len(p.Problems) != 1 || p.Problems[0].File != "kernel.yaml" || !strings.Contains(p.Problems[0].Message, "gates no kernel") {
		t.Errorf("the problems are %+v", p.Problems)
	}
}
