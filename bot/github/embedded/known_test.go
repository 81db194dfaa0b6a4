package embedded_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestCommitsAreCountedAsGitCountsThem compares the hub's count of commits, which starts no git
// process, with git's count: for diverged branches, for a merge, and for a fork whose commits
// arrived in a pack.
func TestCommitsAreCountedAsGitCountsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	c := w.person("alice")
	for i := range 3 {
		w.push("topic", map[string]string{"a.cu": fmt.Sprint(i)}, "topic")
	}
	for i := range 2 {
		w.push("side", map[string]string{"side.cu": fmt.Sprint(i)}, "side")
	}
	w.no(w.open(embedded.PROptions{Title: "side", Head: "side", Author: "alice"}).Merge("alice"))
	fork, err := w.repo.Fork("mallory")
	w.no(err)
	_, err = fork.Push("topic", map[string]string{"b.cu": "more"}, "topic")
	w.no(err)
	for _, at := range []struct {
		head, base string
		from       *embedded.Repo
	}{{"topic", "main", w.repo}, {"main", "topic", w.repo}, {"main", "side", w.repo}, {"topic", "main", fork}} {
		pr := w.open(embedded.PROptions{Title: at.head, Head: at.head, HeadRepo: at.from, Base: at.base, Author: "alice"})
		got, _, err := c.PullRequests.Get(w.ctx, "alice", "kernels", pr.Number())
		w.no(err)
		want, err := strconv.Atoi(w.mustGit(at.from.Dir(), "rev-list", "--count", got.GetBase().GetSHA()+".."+got.GetHead().GetSHA()))
		w.no(err)
		if got.GetCommits() != want || want == 0 {
			t.Errorf("%s into %s has %d commits, and git counts %d", at.head, at.base, got.GetCommits(), want)
		}
	}
	if _, err := w.repo.OpenPR(embedded.PROptions{Title: "none", Head: "side", Base: "main", Author: "alice"}); err == nil {
		t.Error("a pull request without commits was opened")
	}
}
