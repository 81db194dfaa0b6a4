package client_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestListStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	h := w.newToken(w.hub.CreateToken("alice"), client.Options{Checks: true, Statuses: true})
	if h.UsesChecks() {
		t.Error("a workflow that was asked for statuses uses checks")
	}
	sha := w.pr.HeadSHA()
	all := []client.Status{
		{Context: "kernelgate", State: "pending", TargetURL: "https://example.com/1"},
		{Context: "other", State: "success"},
		{Context: "kernelgate", State: "failure", Description: "too slow", TargetURL: "https://example.com/2"},
	}
	for _, s := range all {
		w.no(h.SetStatus(w.ctx, repo, sha, s))
	}
	list, err := h.ListStatuses(w.ctx, repo, sha, "kernelgate")
	w.no(err)
	var got []client.Status
	for _, s := range list {
		got = append(got, s.Status)
	}
	if diff := cmp.Diff([]client.Status{all[2], all[0]}, got); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if _, err := h.ListStatuses(w.ctx, repo, "main", "kernelgate"); err == nil {
		t.Error("a branch is no commit")
	}
}

// TestListChecksOfAWorkflow checks that a workflow lists the checks of all Apps until it has
// written something, and only its own afterwards.
func TestListChecksOfAWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	key, err := testKey()
	w.no(err)
	other, err := w.hub.CreateApp(embedded.AppOptions{Slug: "github-actions", Key: key})
	w.no(err)
	in, err := other.Install(w.repo)
	w.no(err)
	job := w.newToken(in.Token(), client.Options{Checks: true})
	check := client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(), ExternalID: "pr-1-1"}
	_, err = w.bot.CreateCheck(w.ctx, repo, check)
	w.no(err)
	apps := func() (slugs []string) {
		list, err := job.ListChecks(w.ctx, repo, check.HeadSHA, check.Name)
		w.no(err)
		for _, c := range list {
			slugs = append(slugs, c.App)
		}
		return slugs
	}
	if diff := cmp.Diff([]string{"kernelgate"}, apps()); diff != "" {
		t.Errorf("before it has written (-want +got):\n%s", diff)
	}
	_, err = job.CreateCheck(w.ctx, repo, check)
	w.no(err)
	if diff := cmp.Diff([]string{"github-actions"}, apps()); diff != "" {
		t.Errorf("after it has written (-want +got):\n%s", diff)
	}
}

// TestRetargetedByGitHub covers a pull request that GitHub retargets, because its base branch was
// merged and deleted.
func TestRetargetedByGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.repo.Push("parent", map[string]string{"b.cu": "b\n"}, "parent")
	w.no(err)
	parent, err := w.repo.OpenPR(embedded.PROptions{Author: "alice", Title: "Parent", Head: "parent"})
	w.no(err)
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "child", From: w.repo.Head("parent"), Files: map[string]string{"c.cu": "c\n"}, Message: "child"})
	w.no(err)
	child, err := w.repo.OpenPR(embedded.PROptions{Author: "alice", Title: "Child", Head: "child", Base: "parent"})
	w.no(err)
	w.no(parent.Merge("alice"))
	w.clock.Advance(time.Hour)
	w.no(w.repo.DeleteBranch("parent"))
	if moved, err := w.bot.Retargeted(w.ctx, repo, child.Number()); err != nil || !moved.Equal(w.clock.Now()) {
		t.Errorf("moved at %v, %v", moved, err)
	}
}
