package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// commits pushes the sources one by one to a branch, and then opens a pull request for the branch. It
// returns the commits, too.
func (w *world) commits(branch string, sources ...string) (*embedded.PR, []string) {
	w.Helper()
	var all []string
	for i, source := range sources {
		sha, err := w.repo.Push(branch, map[string]string{sourceFile: source}, fmt.Sprintf("Step %d", i+1))
		w.no(err)
		all = append(all, sha)
	}
	pr, err := w.repo.OpenPR(embedded.PROptions{Head: branch, Title: branch, Author: "walt"})
	w.no(err)
	return pr, all
}

// A bisection names the commit of a pull request that made the kernel slower. It skips a commit that does
// not build.
func TestBisectOfAPullRequest(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr, commits := w.commits("slower", "// speed 1.0 tidy\n", "// BROKEN\n", "/* a remark */\n// speed 1.0 tidy\n", "// speed 0.9\n", "// speed 0.9 more\n")
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "rocket")
	w.said(pr, commits[3])
	w.golden("bisect", []*embedded.PR{pr})

	// A range of the repository, by names.
	_, err := w.repo.Push("main", map[string]string{"README": "read me\n"}, "Explain")
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/bisect scale main~1..main"), "confused") // an expression is no ref
	w.reacted(pr, w.comment(pr, "walt", "/bisect scale main..slower"), "confused") // main is not an ancestor of slower
	w.reacted(pr, w.comment(pr, "walt", "/bisect scale "+commits[0]+"..main"), "confused")
	w.reacted(pr, w.comment(pr, "walt", "/bisect scale "+commits[0]+"..slower rounds=20"), "rocket")
	w.said(pr, commits[0]+"..slower")
	w.settle()
	if n := strings.Count(fmt.Sprint(pr.Comments()), "became slower with "+commits[3][:12]); n != 2 {
		t.Errorf("%d reports name the commit, want 2:\n%v", n, pr.Comments())
	}
}

// An approval of a fork's head does not approve the commits before it.
func TestBisectOfAFork(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	fork, err := w.repo.Fork("eve")
	w.no(err)
	for _, source := range []string{"// speed 0.95\n", "// speed 0.9\n"} {
		_, err = fork.PushCommit(embedded.Commit{Branch: "faster", Author: "eve", Files: map[string]string{sourceFile: source}, Message: "Slower"})
		w.no(err)
	}
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "From afar", Head: "faster", HeadRepo: fork})
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "confused")
	mine := w.propose("mine", "// speed 1.5\n", embedded.PROptions{Title: "Mine"})
	w.concluded(mine.HeadSHA(), "success")
	w.reacted(mine, w.comment(mine, "walt", "/bisect scale main.."+pr.HeadSHA()), "confused")
	w.said(mine, "is on no branch and under no tag of this repository")
	w.reacted(pr, w.comment(pr, "walt", "/ok-to-test "+pr.HeadSHA()), "rocket")
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "confused")
	w.said(pr, "of the fork is not approved")
	w.reacted(pr, w.comment(pr, "walt", "/tune"), "confused") // there is nothing to search
}

// tunable is the manifest of a kernel with two variants and a toggle.
func tunable() string {
	return strings.Replace(manifestYAML, "source: scale.c\n", "variants: {plain: {source: scale.c}, wide: {source: wide.c}, wrong: {source: wrong.c}}\ndefault_variant: plain\n", 1)
}

// A tuning finds the fastest variant of the head that is correct, and says which change to commit. The
// winner counts as one machine code of the pull request. When the author commits it, the gate judges it
// with fresh rounds.
func TestTuneOfAPullRequest(t *testing.T) {
	w := newWorld(t, worldOptions{})
	_, err := w.repo.Push("main", map[string]string{
		"kernels/scale/kernel.yaml": tunable(), "kernels/scale/wide.c": "// speed 1.0 wide\n", "kernels/scale/wrong.c": "// speed 1.0 right\n",
	}, "Variants")
	w.no(err)
	_, err = w.repo.Push("faster", map[string]string{
		sourceFile: "// speed 1.05\n", "kernels/scale/wide.c": "// speed 1.4\n", "kernels/scale/wrong.c": "// WRONG speed 3\n",
	}, "Try it")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Head: "faster", Title: "Faster", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	for _, refused := range []string{"/tune nothing", "/tune variants=none", "/tune shapes=huge", "/tune proposer=./mine.py", "/tune budget=2h"} {
		w.reacted(pr, w.comment(pr, "walt", refused), "confused")
		w.settle() // the reply is posted before the next comment
	}
	w.reacted(pr, w.comment(pr, "rita", "/tune"), "confused") // a reader
	w.settle()
	w.reacted(pr, w.comment(pr, "walt", "/tune proposer=grid budget=2m"), "rocket")
	w.said(pr, "+default_variant: wide")
	w.golden("tune", []*embedded.PR{pr})

	sha := w.push(pr, "faster", sourceFile, "// speed 1.5\n", "success")
	w.numbered("one more code, after the head's and the winner's", sha, 3)
	sha = w.push(pr, "faster", "kernels/scale/kernel.yaml", strings.Replace(tunable(), "default_variant: plain", "default_variant: wide", 1), "success")
	w.numbered("the winner, the author's third code against main", sha, 3)
}

// If a runner cannot finish a search, the report says so. A push ends a search. A restart of the bot
// loses no search.
func TestSearchesThatEndEarly(t *testing.T) {
	fail := make(chan bool, 1)
	fail <- true
	w := newWorld(t, worldOptions{measure: func(ctx context.Context, job measuring.Job, scratch string, p measuring.Progress) (measuring.Measured, error) {
		if job.Search == nil {
			return scripted.Runner{}.Measure(ctx, job, scratch, p)
		}
		select {
		case <-fail:
			return measuring.Measured{Evidence: job.NoEvidence()}, nil // and no report
		case <-ctx.Done():
			return measuring.Measured{}, context.Cause(ctx)
		}
	}})
	pr, _ := w.commits("slower", "// speed 0.9\n")
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "rocket")
	w.said(pr, "ended without a result: the runner sent no report of the search")
	w.settle()
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "rocket")
	w.until("the reply", func() bool {
		return strings.Count(fmt.Sprint(pr.Comments()), "A second comment will have the result.") == 2
	})
	w.reacted(pr, w.comment(pr, "walt", "/bisect"), "confused") // one runs already
	w.said(pr, "is already queued or running")
	w.no(w.running.stop())
	w.start()
	w.reacted(pr, w.comment(pr, "walt", "/cancel"), "rocket")
	w.settle()
	w.golden("searches-ended", []*embedded.PR{pr})
}
