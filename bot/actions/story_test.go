package actions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

func TestPass(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "PASS", "", 0)
	w.check(pr.HeadSHA(), "kernelgate", "success")
	c := w.check(pr.HeadSHA(), "kernelgate / scale", "success")
	if want := w.hub.URL() + "/olga/kernels/actions/runs/77?pr=1&"; !strings.HasPrefix(c.DetailsURL, want) || len(c.Actions) != 0 {
		t.Errorf("the check leads to %s with %d buttons, want %s… and none", c.DetailsURL, len(c.Actions), want)
	}
	for _, name := range []string{"evidence.json", "verdict.json", "report.md", "build.log"} {
		if _, err := os.Stat(filepath.Join(j.Results, "scale", name)); err != nil {
			t.Error(err)
		}
	}
	w.golden("pass", j, pr)
}

func TestDefer(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "DEFER", "too-slow", 1)
	w.check(pr.HeadSHA(), "kernelgate", "failure")
	w.golden("defer", j, pr)
}

// TestBrokenBuild checks that a compiler's messages are shown on the lines of the change.
func TestBrokenBuild(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("broken", source("BROKEN"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "DEFER", "build", 1)
	c := w.check(pr.HeadSHA(), "kernelgate / scale", "failure")
	if len(c.Annotations) != 1 {
		t.Errorf("%d annotations, want 1", len(c.Annotations))
	}
	w.holds(j.log, "::error file=kernels/scale/scale.c,line=1,endLine=1,title=DEFER (build) scale::it is broken: 100%25, really")
	w.golden("broken-build", j, pr)
}

func TestNothingToMeasure(t *testing.T) {
	for _, test := range []struct {
		name, reason, conclusion string
		exit                     int
		base, change             map[string]string
		comments                 int
	}{
		{"no-kernel", "no-kernel", "success", 0, nil, map[string]string{"README.md": "Better.\n"}, 0},
		{"no-policy", "no-policy", "success", 0, map[string]string{".github/kernelgate.yaml": ""}, source("speed 1.3"), 0},
		{"broken-policy", "policy", "failure", 2, map[string]string{".github/kernelgate.yaml": policyYAML + "colour: red\n"}, source("speed 1.3"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.base, mayWrite)
			pr := w.propose("change", test.change, embedded.PROptions{})
			j := w.act("pull_request")
			verdict := "PASS"
			if test.exit != 0 {
				verdict = "ERROR"
			}
			w.must(j, verdict, test.reason, test.exit)
			w.check(pr.HeadSHA(), "kernelgate", test.conclusion)
			if n := len(pr.Comments()); n != test.comments {
				t.Errorf("%d comments, want %d", n, test.comments)
			}
			w.golden(test.name, j, pr)
		})
	}
}

// TestFirstPolicy checks that a repository's first policy is demonstrated but blocks nothing.
func TestFirstPolicy(t *testing.T) {
	w := newWorld(t, map[string]string{".github/kernelgate.yaml": ""}, mayWrite)
	files := source("speed 1.02")
	files[".github/kernelgate.yaml"] = policyYAML
	pr := w.propose("first", files, embedded.PROptions{})
	w.must(w.act("pull_request"), "PASS", "no-policy", 0)
	w.check(pr.HeadSHA(), "kernelgate", "success")
	c := w.check(pr.HeadSHA(), "kernelgate / scale", "success")
	w.holds(c.Title, "for information", "DEFER")
}

// TestRemovedKernel checks that a kernel that exists only on the base needs no runner.
func TestRemovedKernel(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "gone", Delete: []string{"kernels/scale/kernel.yaml", "kernels/scale/scale.c", "kernels/scale/reference.c"}, Message: "gone"})
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "gone", Head: "gone", Author: "walt"})
	w.no(err)
	j := w.act("pull_request")
	w.must(j, "DEFER", string(gates.ReasonSuspicious), 1)
	c := w.check(pr.HeadSHA(), "kernelgate / scale", "failure")
	w.holds(c.Title, "The change removes the kernel's manifest, and with it the gate")
	w.holds(j.summary, "keep kernel.yaml where it is")
}

// attempts records the attempt number of every run's rounds.
func (w *world) attempts() *[]int {
	var all []int
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		out, err := measureScripted(ctx, job, dir, p)
		if err == nil && out.Evidence.Performance != nil && len(out.Evidence.Performance.Rounds) > 0 {
			all = append(all, out.Evidence.Performance.Rounds[0].Attempt)
		}
		return out, err
	}
	return &all
}

func (w *world) counted(what string, got *[]int, want ...int) {
	w.Helper()
	if !slices.Equal(*got, want) {
		w.Errorf("%s: measured in the attempts %v, want %v", what, *got, want)
	}
}

// TestAnotherAttempt checks that each run is a separate attempt. There is one comment, which lists
// the attempts; the concluded check stays; and the rounds carry the attempt's number, by which the
// gates halve the error rate.
func TestAnotherAttempt(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	w.act("pull_request")
	first := pr.Comments()[0].ID
	w.act("pull_request")
	j := w.act("pull_request")
	w.must(j, "PASS", "", 0)
	if all := pr.Comments(); len(all) != 1 || all[0].ID != first {
		t.Fatalf("%d comments, the first is %d, want the one that was there, %d", len(all), all[0].ID, first)
	}
	if all := w.repo.Checks(pr.HeadSHA()); len(all) != 6 {
		t.Errorf("%d checks, want two for each of three attempts", len(all))
	}
	w.counted("three runs", all, 1, 2, 3)
	w.golden("another-attempt", j, pr)

	// A comment can be deleted, a check cannot.
	w.no(pr.Comments()[0].Edit("olga", "nothing was here"))
	w.act("pull_request")
	w.counted("after the comment is gone", all, 1, 2, 3, 4)
	w.act("pull_request")
	w.act("pull_request")
	last := w.act("pull_request")
	w.must(last, "ERROR", "runner", 3)
	w.holds(last.log, "measured 6 times already")
	w.counted("more than six runs", all, 1, 2, 3, 4, 5, 6)
}

// TestPushOfTheSameMachineCode checks that a push without a change of machine code is one more
// attempt, that cancelled and failed attempts count, and that new machine code starts at one.
func TestPushOfTheSameMachineCode(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	scripted := w.measure
	pr := w.propose("close", source("speed 1.1"), embedded.PROptions{})
	push := func(files map[string]string, from string) {
		t.Helper()
		commit := embedded.Commit{Branch: "close", Files: files, Message: "more", From: from, Author: "walt"}
		_, err := w.repo.PushCommit(commit)
		w.no(err)
	}
	w.must(w.act("pull_request"), "DEFER", "inconclusive", 1)
	push(map[string]string{"README.md": "Better.\n"}, "")
	w.must(w.act("pull_request"), "DEFER", "inconclusive", 1)
	push(map[string]string{"kernels/scale/scale.c": "/* So it is. */\n// speed 1.1\n"}, "")
	j := w.act("pull_request")
	w.must(j, "DEFER", "inconclusive", 1)
	w.counted("documents and a remark", all, 1, 2, 3)
	w.holds(j.summary, "attempt 3 at this machine code")
	w.holds(pr.Comments()[0].Body, "attempt 3")

	// An attempt that is killed after it began leaves only its check.
	ctx, cancel := context.WithCancel(t.Context())
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		job.Record = cancelling{job.Record, cancel}
		return scripted(ctx, job, dir, p)
	}
	push(map[string]string{"README.md": "Best.\n"}, "")
	if j := w.actIn(ctx, "pull_request", nil); j.err == nil {
		t.Errorf("a cancelled job ended with %+v", j.End)
	}
	w.measure = scripted
	push(map[string]string{"README.md": "Good.\n"}, "")
	w.act("pull_request")
	w.counted("after one that was cancelled", all, 1, 2, 3, 5)

	push(map[string]string{"kernels/scale/scale.c": "// speed 1.3\n"}, "")
	w.must(w.act("pull_request"), "PASS", "", 0)
	w.counted("other code", all, 1, 2, 3, 5, 1)

	// A force-push removes the commits from the pull request.
	push(map[string]string{"kernels/scale/scale.c": "// speed 1.1\n"}, w.repo.Head("main"))
	w.act("pull_request")
	w.counted("back by force", all, 1, 2, 3, 5, 1, 6)
	push(map[string]string{"README.md": "Well.\n"}, "")
	last := w.act("pull_request")
	w.must(last, "ERROR", "runner", 3)
	w.holds(last.log, "this machine code was measured 6 times already")
}

// TestKilledJobCounts checks that a killed job leaves a check in progress and that its attempt
// counts. The next job concludes the check.
func TestKilledJobCounts(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	killed := w.killed()
	if c, _ := w.repo.Check(killed, "kernelgate / scale"); c.Status != "in_progress" {
		t.Errorf("the killed job's check is %s:\n%s", c.Status, c.Summary)
	}
	w.documented()
	w.counted("after a killed job", all, 2, 3)
	w.check(killed, "kernelgate / scale", "cancelled")
}

// killed opens a pull request whose job is killed after its attempt is counted, and returns the
// head.
func (w *world) killed() string {
	w.Helper()
	pr := w.propose("close", source("speed 1.1"), embedded.PROptions{})
	scripted := w.measure
	defer func() { w.measure = scripted }()
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		job.Record = cancelling{job.Record, func() { panic("killed") }}
		return scripted(ctx, job, dir, p)
	}
	func() {
		defer func() { _ = recover() }()
		w.act("pull_request")
	}()
	return pr.HeadSHA()
}

// documented pushes two commits that change only documents to that pull request, and runs a job for
// each.
func (w *world) documented() {
	w.Helper()
	for _, text := range []string{"Better.\n", "Best.\n"} {
		_, err := w.repo.Push("close", map[string]string{"README.md": text}, "Documents")
		w.no(err)
		w.act("pull_request")
	}
}

// cancelling is a record that ends the job when the attempt is counted.
type cancelling struct {
	runners.Record
	cancel func()
}

func (c cancelling) Begin(ctx context.Context, code runners.Code) (runners.Attempt, error) {
	n, err := c.Record.Begin(ctx, code)
	c.cancel()
	return n, err
}

// TestCancelled checks that a job that GitHub cancels reports it, and that the next job continues
// from there.
func TestCancelled(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	ctx, cancel := context.WithCancel(t.Context())
	w.measure = func(ctx context.Context, _ runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		if c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate / scale"); c.Status != "in_progress" {
			t.Errorf("while it is measured, the check is %s", c.Status)
		}
		cancel()
		return runners.Measured{}, ctx.Err()
	}
	if j := w.actIn(ctx, "pull_request", nil); j.err == nil {
		t.Errorf("a cancelled job ended with %+v", j.End)
	}
	w.check(pr.HeadSHA(), "kernelgate", "cancelled")
	w.measure = measureScripted
	w.must(w.act("pull_request"), "PASS", "", 0)
	w.holds(pr.Comments()[0].Body, "ended early", "attempt 2")
}

// TestTokenOfAnotherApp checks that a workflow may act as a different App. Its jobs recognize their
// own comment, and do not touch a copy by another program.
func TestTokenOfAnotherApp(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	w.must(w.act("pull_request"), "PASS", "", 0)
	actions := pr.Comments()[0]
	w.token = w.tokenOf("my-gate", mayWrite)
	for range 4 {
		w.must(w.act("pull_request"), "PASS", "", 0)
	}
	_, err := pr.Comment("walt", "/explain")
	w.no(err)
	for range 2 { // GitHub lets anybody rerun a job
		w.must(w.act("issue_comment"), "", "", 0)
	}
	var by []string
	for _, c := range pr.Comments() {
		by = append(by, c.Author)
	}
	if want := []string{"github-actions[bot]", "my-gate[bot]", "walt", "my-gate[bot]"}; !slices.Equal(by, want) {
		t.Errorf("comments by %v, want a sticky one by each App and one reply: %v", by, want)
	}
	if now := pr.Comments()[0]; now.Body != actions.Body {
		t.Errorf("the other App's comment was changed: %s", now.Body)
	}
}

// TestHeadlineFirst checks that the headline comes first, because GitHub shows only the first ten
// errors of a job.
func TestHeadlineFirst(t *testing.T) {
	text := policyYAML
	for i := range 30 {
		text += fmt.Sprintf("colour%d: red\n", i)
	}
	w := newWorld(t, map[string]string{".github/kernelgate.yaml": text}, mayWrite)
	w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "ERROR", "policy", 2)
	first, _, _ := strings.Cut(j.log, "\n")
	if !strings.HasPrefix(first, "::error title=kernelgate::The policy has mistakes") || strings.Count(j.log, "::error file=") != 30 {
		t.Errorf("the log begins with %q:\n%s", first, j.log)
	}
}

func TestLeftOut(t *testing.T) {
	for _, test := range []struct {
		name, says string
		with       func(*actions.Config)
	}{
		{"another device", "the policy lets only cpu measure, and this runner is l4", func(c *actions.Config) { c.Labels = []string{"l4"} }},
		{"other kernels", "the workflow has this job measure only other", func(c *actions.Config) { c.Kernels = []string{"other"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil, mayWrite)
			pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
			j := w.actIn(t.Context(), "pull_request", test.with)
			w.must(j, "ERROR", "runner", 3)
			w.holds(j.summary, test.says)
			w.check(pr.HeadSHA(), "kernelgate", "failure")
		})
	}
}

func TestMergeGroup(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("tidy", source("speed 1.001"), embedded.PROptions{Labels: []string{"refactoring"}})
	w.must(w.act("pull_request"), "PASS", "", 0)
	w.no(w.repo.Enqueue("walt", pr))
	head := w.repo.QueueHeads()[0]
	j := w.act("merge_group")
	w.must(j, "PASS", "", 0)
	w.check(head, "kernelgate", "success")
	w.check(head, "kernelgate / scale", "success")
	if n := len(pr.Comments()); n != 1 {
		t.Errorf("%d comments, want the pull request's own alone", n)
	}
	if !pr.State().Merged {
		t.Error("the queue did not merge")
	}
	w.holds(j.summary, "refactoring")
}

// TestGroupOfTwo checks that a group of several pull requests is judged by the strictest of their
// rules: a permission of the last does not extend to the first.
func TestGroupOfTwo(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	plain := w.propose("slow", source("speed 1.001"), embedded.PROptions{})
	tidy := w.propose("tidy", map[string]string{"kernels/scale/notes.md": "It scales.\n"}, embedded.PROptions{Labels: []string{"refactoring"}})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	w.must(w.act("pull_request"), "PASS", "", 0)
	base := w.repo.Head("main")
	// The queue of the embedded GitHub has one group per pull request.
	w.pass(plain.HeadSHA())
	w.no(w.repo.Enqueue("walt", plain))
	w.no(w.repo.Enqueue("walt", tidy))
	heads := w.repo.QueueHeads()
	w.instead = map[string]string{`"base_sha":"` + heads[0] + `"`: `"base_sha":"` + base + `"`}
	j := w.act("merge_group")
	w.must(j, "DEFER", "too-slow", 1)
	w.check(heads[1], "kernelgate", "failure")
	w.holds(j.summary, "default")
}

// pass sets the required check of a commit to success, outside of any job.
func (w *world) pass(sha string) {
	w.Helper()
	h, err := client.NewToken(w.token, client.Options{Checks: true, BaseURL: w.hub.URL()})
	w.no(err)
	_, err = h.CreateCheck(w.Context(), "olga/kernels", client.Check{Name: "kernelgate", HeadSHA: sha, Status: "completed", Conclusion: "success", Title: "By hand", Summary: "By hand."})
	w.no(err)
}

func TestFewerRounds(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	rounds := 0
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		out, err := measureScripted(ctx, job, dir, p)
		rounds = len(out.Evidence.Performance.Rounds)
		return out, err
	}
	w.propose("undecided", source("speed 1.1"), embedded.PROptions{})
	j := w.actIn(t.Context(), "pull_request", func(c *actions.Config) { c.Rounds = 7 })
	w.must(j, "DEFER", string(gates.ReasonInconclusive), 1)
	if rounds != 7 {
		t.Errorf("%d rounds, want 7", rounds)
	}
	w.holds(j.summary, "At most 7 rounds were allowed.")
}
