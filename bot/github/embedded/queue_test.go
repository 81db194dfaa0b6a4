package embedded_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// groups returns the merge_group events with an action, oldest first.
func (w *world) groups(action string) (out []*github.MergeGroupEvent) {
	w.Helper()
	w.quiet()
	for _, e := range w.hooks.all() {
		if g, ok := e.payload.(*github.MergeGroupEvent); ok && g.GetAction() == action {
			out = append(out, g)
		}
	}
	return out
}

// queue opens a pull request from a new branch and puts it into the queue of its base.
func (w *world) queue(branch, base string) *embedded.PR {
	w.Helper()
	_, err := w.repo.PushCommit(embedded.Commit{Branch: branch, From: w.repo.Head(base), Files: map[string]string{branch + ".cu": "new\n"}, Message: branch})
	w.no(err)
	pr := w.open(embedded.PROptions{Title: branch, Head: branch, Base: base})
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	w.no(w.repo.Enqueue("alice", pr))
	return pr
}

func (w *world) protectQueue(branch string, size int) {
	w.repo.ProtectBranch(branch, embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true, QueueSize: size})
}

// A pull request leaves the queue when it changes. Its group is destroyed, the group behind it is
// built again without it, and its check stays on its head.
func TestLeavesTheQueue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do     func(w *world, pr *embedded.PR) error
		action string // event of the pull request before dequeued
	}{
		"new base": {func(_ *world, pr *embedded.PR) error { return pr.Edit("alice", "", "", "next") }, "edited"},
		"closed":   {func(_ *world, pr *embedded.PR) error { return pr.Close("alice") }, "closed"},
		"draft":    {func(_ *world, pr *embedded.PR) error { return pr.ConvertToDraft("alice") }, "converted_to_draft"},
		"push": {func(w *world, _ *embedded.PR) error {
			w.push("faster", map[string]string{"c.cu": "c\n"}, "c")
			return nil
		}, "synchronize"},
		"deleted branch":    {func(w *world, _ *embedded.PR) error { return w.repo.DeleteBranch("faster") }, "closed"},
		"merged by a push":  {func(w *world, pr *embedded.PR) error { return w.pushOnto("main", pr.HeadSHA()) }, "closed"},
		"the new title: no": {func(_ *world, pr *embedded.PR) error { return pr.Edit("alice", "Title", "", "") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, first, second := queued(t)
			w.push("next", map[string]string{"NEXT": "x"}, "next")
			head, before := first.HeadSHA(), w.entries("main")
			w.no(tt.do(w, first))
			after := w.entries("main")
			if tt.action == "" {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the queue changed:\n%s", diff)
				}
				return
			}
			if len(after) != 1 || after[0].PullRequest.Number != second.Number() || after[0].Base.OID != w.repo.Head("main") || after[0].Head.OID == before[1].Head.OID {
				t.Errorf("the queue was %+v and is %+v", before, after)
			}
			if runs := w.repo.Checks(head); len(runs) != 1 || runs[0].Conclusion != "success" {
				t.Errorf("checks on the head: %+v", runs)
			}
			gone := w.groups("destroyed")
			if len(gone) != 2 || gone[0].MergeGroup.GetHeadSHA() != before[0].Head.OID || gone[1].MergeGroup.GetHeadSHA() != before[1].Head.OID || gone[0].MergeGroup.GetBaseRef() != "refs/heads/main" {
				t.Errorf("destroyed: %v", gone)
			}
			if made := w.groups("checks_requested"); len(made) != 3 || made[2].MergeGroup.GetHeadSHA() != after[0].Head.OID {
				t.Errorf("requested: %v", made)
			}
			names := w.hooks.names()
			if i := slices.Index(names, "pull_request.dequeued"); count(names, "pull_request.dequeued") != 1 || !slices.Contains(names[:i], "pull_request."+tt.action) {
				t.Errorf("events: %v", names)
			}
			for _, ref := range []string{gone[0].MergeGroup.GetHeadRef(), gone[1].MergeGroup.GetHeadRef()} {
				if at := w.repo.Head(strings.TrimPrefix(ref, "refs/heads/")); at == before[0].Head.OID || at == before[1].Head.OID {
					t.Errorf("%s is still there", ref)
				}
			}
		})
	}
}

// pushOnto pushes a commit on top of an existing one to a branch.
func (w *world) pushOnto(branch, sha string) error {
	_, err := w.repo.PushCommit(embedded.Commit{Branch: branch, From: sha, Files: map[string]string{"on.cu": "x"}, Message: "on top"})
	return err
}

func TestBaseChangeSaysWhatItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	was := w.repo.Head("main")
	w.push("next", map[string]string{"NEXT": "x"}, "next")
	w.no(w.repo.CreateBranch("alice", "same", pr.HeadSHA()))
	w.hub.CreateUser("mallory")
	for base, text := range map[string]string{"nowhere": "PullRequest.base: invalid", "same": "no new commits"} {
		if err := pr.Edit("alice", "Title", "", base); err == nil || !strings.Contains(err.Error(), text) || pr.State().Title != "Faster" {
			t.Errorf("to %s: %v", base, err)
		}
	}
	if err := pr.Edit("mallory", "", "", "next"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("by a stranger: %v", err)
	}
	w.no(w.repo.Grant("bob", embedded.Write))
	w.no(pr.Edit("bob", "", "", "next"))
	w.quiet()
	e := last[*github.PullRequestEvent](w)
	if e.GetAction() != "edited" || e.Changes.Base.Ref.GetFrom() != "main" || e.Changes.Base.SHA.GetFrom() != was || e.PullRequest.Base.GetRef() != "next" || e.PullRequest.Base.GetSHA() != w.repo.Head("next") {
		t.Errorf("%s: %v", e.GetAction(), e.Changes)
	}
	twin := w.open(embedded.PROptions{Title: "Twin", Head: "faster"})
	if err := twin.Edit("bob", "", "", "next"); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a second pull request between the same branches: %v", err)
	}
}

// In a batch, the events of all groups start at the same commit, but each group is built on the one
// ahead. A batch that has begun to merge takes no more groups.
func TestQueueInBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.protectQueue("main", 3)
	tip := w.repo.Head("main")
	w.queue("one", "main")
	w.queue("two", "main")
	at := w.entries("main")
	w.check(w.bot(), at[0].Head.OID, "kernelgate", "success") // merges
	w.queue("three", "main")
	w.queue("four", "main")
	at = append(at[:1], w.entries("main")...)
	if len(at) != 4 {
		t.Fatalf("entries: %+v", at)
	}
	starts := []string{tip, tip, at[1].Head.OID, at[1].Head.OID}
	for i, g := range w.groups("checks_requested") {
		base := tip
		if i > 0 {
			base = at[i-1].Head.OID
		}
		if g.MergeGroup.GetBaseSHA() != starts[i] || g.MergeGroup.GetHeadSHA() != at[i].Head.OID || at[i].Base.OID != base {
			t.Errorf("group %d: event from %s to %s, entry %+v", i+1, g.MergeGroup.GetBaseSHA(), g.MergeGroup.GetHeadSHA(), at[i])
		}
	}
	if w.repo.Head("main") != at[0].Head.OID || at[1].State != "AWAITING_CHECKS" || at[1].Position != 1 || at[3].Position != 3 {
		t.Errorf("main is at %s, the queue is %+v", w.repo.Head("main"), at[1:])
	}
}

// Each branch has its own queue: one waits for nothing in the other.
func TestQueuesOfTwoBranches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.push("release", map[string]string{"RELEASE": "1"}, "release")
	w.protectQueue("main", 0)
	w.protectQueue("release", 0)
	first := w.queue("one", "main")
	other := w.queue("two", "release")
	third := w.queue("three", "main")
	main, release := w.entries("main"), w.entries("release")
	if len(main) != 2 || len(release) != 1 || release[0].Base.OID != w.repo.Head("release") || main[1].Base.OID != main[0].Head.OID || len(w.entries("")) != 2 {
		t.Fatalf("main %+v, release %+v", main, release)
	}
	w.check(w.bot(), release[0].Head.OID, "kernelgate", "success")
	if !other.State().Merged || third.State().Merged || len(w.entries("main")) != 2 {
		t.Errorf("merged: %v and %v", other.State().Merged, third.State().Merged)
	}
	w.queue("four", "release")
	w.queue("five", "release")
	release = w.entries("release")
	w.no(first.Close("alice"))
	if now := w.entries("release"); !cmp.Equal(now, release) {
		t.Errorf("release was %+v and is %+v", release, now)
	}
	w.no(w.repo.DeleteBranch("release"))
	if left := w.entries("release"); len(left) != 0 {
		t.Errorf("the queue of a deleted branch: %+v", left)
	}
}

// A pull request whose head is a branch of the queue goes with the branch.
func TestPullRequestFromTheQueuesBranch(t *testing.T) {
	t.Parallel()
	w, first, second := queued(t)
	ref := strings.TrimPrefix(w.groups("checks_requested")[1].MergeGroup.GetHeadRef(), "refs/heads/")
	pr := w.open(embedded.PROptions{Title: "Group", Head: ref})
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	w.no(w.repo.Enqueue("alice", pr))
	w.no(first.Close("alice"))
	if left := w.entries("main"); pr.State().Open || len(left) != 1 || left[0].PullRequest.Number != second.Number() {
		t.Errorf("it is open without a head: %v, or in the queue: %+v", pr.State().Open, left)
	}
}
