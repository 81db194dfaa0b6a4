package controller_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// guarded asks refactorings to lose at most 5 %.
const guarded = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -5%"}
    rounds: {min: 6, max: 8}
    interims: [6, 8]
    pairs: 20
    budget: 1h
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: none}}
  - name: default
`

var (
	scriptedDevice = highwater.Device{Name: "scripted", Arch: "none"}
	missionShape   = highwater.Shape{Name: "mission", Dims: "N=1000"}
)

// setPolicy gives main a policy.
func (w *world) setPolicy(policy string) {
	w.Helper()
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": policy}, "Policy")
	w.no(err)
	w.settle()
}

// position is where main stands relative to the kernel's best on mission.
func (w *world) position(folder string) highwater.Position {
	w.Helper()
	h, err := w.running.ledger.Merges(w.ctx, w.repo.ID(), folder)
	w.no(err)
	return h.Marks(scriptedDevice)[missionShape]
}

// refactor opens a refactoring that makes the kernel so fast.
func (w *world) refactor(name string, speed float64, conclusion string) *embedded.PR {
	w.Helper()
	pr := w.propose(name, fmt.Sprintf("// speed %g\n", speed), embedded.PROptions{Labels: []string{"refactoring"}})
	w.concluded(pr.HeadSHA(), conclusion)
	return pr
}

// Five refactorings of -4 % each pass a guard of -5 %. The sum is shown, below_best refuses the next one, and their revert earns
// nothing against the best.
func TestSandbagging(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.setPolicy(guarded)
	best := w.repo.Head("main")
	w.known = []string{best}
	speed := 1.0
	for i := range 5 {
		speed *= 0.96
		pr := w.refactor(fmt.Sprint("tidy-", i), speed, "success")
		w.no(pr.Merge("olga"))
		w.settle()
	}
	if p := w.position("kernels/scale"); p.Commit != best || p.Level < 0.81 || p.Level > 0.82 || len(p.Lost) != 5 || p.Unmeasured != 0 {
		t.Errorf("main stands at %+v, want %s", p, best)
	}
	sixth := w.refactor("tidy-5", speed*0.96, "success")
	w.said(sixth, "mission is 21.")
	w.said(sixth, fmt.Sprintf("slower than at its best commit (`%.7s`", best))
	w.reacted(sixth, w.comment(sixth, "walt", "/rebench"), "rocket") // the runner goes on with evidence that had a mark
	w.settle()
	w.concluded(sixth.HeadSHA(), "success")
	if rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Limit: 1}); err != nil || rows[0].Outcome != gates.Pass || rows[0].Attempt != 2 {
		t.Errorf("measured again: %+v (%v)", rows, err)
	}
	revert := w.propose("revert", "// speed 1.0\n", embedded.PROptions{Title: "Faster"})
	w.concluded(revert.HeadSHA(), "success")
	w.said(revert, "mission: +22.")
	w.golden("sandbagging", []*embedded.PR{sixth, revert})

	w.setPolicy(strings.Replace(guarded, `">= -5%"`, `">= -5%", below_best: "<= 8%"`, 1))
	c := w.concluded(sixth.HeadSHA(), "failure")
	if !strings.Contains(c.Summary, "these commits made mission slower: `") || strings.Count(c.Summary, "4.0\u00a0%\u00a0slower") < 5 {
		t.Errorf("the check does not say who lost it: %s\n%s", c.Title, c.Summary)
	}
	w.concluded(revert.HeadSHA(), "success") // who gains is not blamed
	w.no(sixth.Close("walt"))
	w.settle()

	w.setPolicy(strings.Replace(guarded, "performance:\n", "performance:\n    baseline: best\n", 1))
	w.concluded(revert.HeadSHA(), "failure")
	w.said(revert, "the machine code is the same as the baseline")
	half := w.propose("half", "// speed 0.95\n", embedded.PROptions{Title: "Half of it"})
	w.concluded(half.HeadSHA(), "failure")
	w.said(half, fmt.Sprintf("The baseline is the kernel's best, %.12s", best))
	w.golden("sandbagging-best", []*embedded.PR{half})
	real := w.propose("real", "// speed 1.2\n", embedded.PROptions{Title: "Really faster"})
	w.concluded(real.HeadSHA(), "success")
	w.no(real.Merge("olga"))
	w.settle()
	if p := w.position("kernels/scale"); p.Commit != w.repo.Head("main") || p.Level != 1 {
		t.Errorf("after a real gain main stands at %+v", p)
	}
	w.rebuilt()
}

// rebuilt holds the ledger against one that is made of the journal anew.
func (w *world) rebuilt() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	fresh, err := ledger.Open(ctx, filepath.Join(w.TempDir(), "ledger.db"), ledger.Options{})
	w.no(err)
	ended := make(chan error, 1)
	go func() { ended <- fresh.Follow(ctx, w.running.journal) }()
	w.no(fresh.CaughtUp(ctx))
	want, err := w.running.ledger.Merges(ctx, w.repo.ID(), "kernels/scale")
	w.no(err)
	got, err := fresh.Merges(ctx, w.repo.ID(), "kernels/scale")
	w.no(err)
	if d := cmp.Diff(want, got); d != "" || len(want.Merges) == 0 {
		w.Errorf("the history is another after a rebuild: %s", d)
	}
	cancel()
	<-ended
	w.no(fresh.Close())
}

// Whatever an author does, the mark is what was once merged and measured.
func TestMarkIsNotLowered(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.setPolicy(guarded)
	push := func(c embedded.Commit) string {
		t.Helper()
		c.Branch, c.Message = "main", "x"
		sha, err := w.repo.PushCommit(c)
		w.no(err)
		w.settle()
		return sha
	}
	source := func(text string) map[string]string { return map[string]string{sourceFile: text} }
	start := w.repo.Head("main")
	best := push(embedded.Commit{Files: source("// speed 1.5\n")})
	holds := func(what, folder string, level float64, unmeasured int) {
		t.Helper()
		if p := w.position(folder); p.Commit != best || p.Level < level-0.02 || p.Level > level+0.02 || p.Unmeasured != unmeasured {
			t.Errorf("%s: main stands at %+v, want %.2f of %s", what, p, level, best)
		}
	}
	holds("at first", "kernels/scale", 1, 0)
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "fast", From: start, Files: source("// speed 3.0\n"), Message: "x"})
	w.no(err)
	fast, err := w.repo.OpenPR(embedded.PROptions{Title: "Fast", Head: "fast", Author: "walt"})
	w.no(err)
	w.concluded(fast.HeadSHA(), "success")
	holds("a branch that was not merged", "kernels/scale", 1, 0)
	push(embedded.Commit{Files: source("// speed 1.35\n")})
	holds("a slower merge", "kernels/scale", 0.9, 0)
	push(embedded.Commit{Files: source("// WRONG speed 0.5\n")})
	holds("a merge that cannot be measured", "kernels/scale", 0.9, 1)
	push(embedded.Commit{From: start, Files: source("// speed 0.9\n")})
	holds("a forced push", "kernels/scale", 0.6, 0)
	moved := map[string]string{"kernels/other/kernel.yaml": manifestYAML, "kernels/other/scale.c": "// speed 0.9\n", "kernels/other/reference.c": "// the truth\n"}
	push(embedded.Commit{Files: moved, Delete: []string{"kernels/scale/kernel.yaml", sourceFile, "kernels/scale/reference.c"}})
	holds("another folder", "kernels/other", 0.6, 1)
	moved["kernels/other/scale.c"] = "// speed 0.81\n"
	push(embedded.Commit{Files: moved})
	holds("slower in the other folder", "kernels/other", 0.54, 1)

	// No branch leads to the best any more, and the next best is in the old folder.
	w.setPolicy(strings.Replace(guarded, "performance:\n", "performance:\n    baseline: best\n", 1))
	_, err = w.repo.Push("again", map[string]string{"kernels/other/scale.c": "// speed 0.95\n"}, "x")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "again", Head: "again", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure") // +17 % over main, -5 % over the start
	w.said(pr, fmt.Sprintf("The baseline is the kernel's best, %.12s", start))
	w.said(pr, fmt.Sprintf("%.12s (no branch and no tag leads to it any more)", best))
	rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Folder: "kernels/other", Limit: 1})
	w.no(err)
	if rows[0].Outcome != gates.Defer || rows[0].Reason != gates.ReasonTooSlow {
		t.Errorf("%+v", rows[0])
	}
}
