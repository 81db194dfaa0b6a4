package controller_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// The code of a fork that waits for its approval is not measured beside another change
// either, by whatever name; once it is approved there, that is not an approval here.
func TestVersusOfAHeldFork(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": policyYAML + "commands: {rebench: read}\n"}, "policy")
	w.no(err)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	evil, err := fork.PushCommit(embedded.Commit{Branch: "faster", Author: "eve", Files: map[string]string{"kernels/scale/scale.c": "// speed 0.25\n"}, Message: "Faster"})
	w.no(err)
	held, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "From afar", Head: "faster", HeadRepo: fork})
	w.no(err)
	w.concluded(evil, "action_required")
	pr := w.propose("mine", "// speed 1.5\n", embedded.PROptions{Title: "Mine"})
	w.concluded(pr.HeadSHA(), "success")
	for _, ref := range []string{evil, evil[:12], fmt.Sprintf("refs/pull/%d/head", held.Number())} {
		for _, who := range []string{"rita", "walt"} {
			w.reacted(pr, w.comment(pr, who, "/rebench vs="+ref), "confused")
		}
	}
	w.settle()
	said := 0
	for _, c := range pr.Comments() {
		if strings.Contains(c.Body, "This is an extra measurement") {
			t.Errorf("the bot says %s", c.Body)
		}
		said += strings.Count(c.Body, "is on no branch and under no tag of this repository")
	}
	if said != 6 {
		t.Errorf("the reason was told %d times", said)
	}
	w.reacted(pr, w.comment(pr, "walt", "/rebench vs=main"), "rocket")
	w.concluded(pr.HeadSHA(), "success")
}

// What nobody has approved cannot keep the bot busy: a fork's commit with one large file
// under many names gets its answer, and the next pull request its verdict.
func TestForkWithTooMuch(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	fork, err := w.repo.Fork("eve")
	w.no(err)
	git := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(w.ctx, "git", append([]string{"-C", fork.Dir(), "-c", "user.name=e", "-c", "user.email=e@e.invalid"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	main := w.repo.Head("main")
	zeros := git(strings.Repeat("\x00", 8<<20), "hash-object", "-w", "--stdin")
	lines := git("", "ls-tree", main+":kernels/scale") + "\n"
	for i := range 40 {
		lines += fmt.Sprintf("100644 blob %s\tz%02d.c\n", zeros, i)
	}
	kernels := git("040000 tree "+git(lines, "mktree")+"\tscale\n", "mktree")
	top := git("", "ls-tree", main)
	top = top[:strings.Index(top, "040000 tree "+git("", "rev-parse", main+":kernels"))] + "040000 tree " + kernels + "\tkernels\n"
	bomb := git("x", "commit-tree", "-p", main, git(top, "mktree"))
	git("", "update-ref", "refs/heads/bomb", bomb)
	_, err = fork.PushCommit(embedded.Commit{Branch: "other", Author: "eve", Files: map[string]string{"x": "y"}, Message: "x"}) // GitHub sees the branches
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "Bomb", Head: "bomb", HeadRepo: fork})
	w.no(err)
	c := w.concluded(bomb, "failure")
	if c.Title != "The change is too large to read" || !strings.Contains(c.Summary+c.Text, "the folder has 33 files and 264 MiB") {
		t.Errorf("the check says %q: %s", c.Title, c.Summary)
	}
	w.said(pr, "the folder has 33 files and 264 MiB")
	w.concluded(w.propose("mine", "// speed 1.5\n", embedded.PROptions{}).HeadSHA(), "success")
}
