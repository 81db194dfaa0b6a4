package embedded_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// Commits are counted without git, and as git counts them: in branches that have left each other, with a merge
// in one, and in a fork, whose commits came in a pack.
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
		repo       *embedded.Repo
		owner      string
		base, head string
		status     string
	}{
		{w.repo, "alice", "main", "topic", "diverged"},
		{w.repo, "alice", "topic", "main", "diverged"},
		{w.repo, "alice", "side", "main", "ahead"},
		{w.repo, "alice", "main", "side", "behind"},
		{w.repo, "alice", "main", "main", "identical"},
		{fork, "mallory", "main", "topic", "diverged"},
	} {
		got, _, err := c.Repositories.CompareCommits(w.ctx, at.owner, "kernels", at.base, at.head, nil)
		w.no(err)
		count := func(from, to string) int {
			n, err := strconv.Atoi(w.mustGit(at.repo.Dir(), "rev-list", "--count", from+".."+to))
			w.no(err)
			return n
		}
		ahead, behind := count(at.base, at.head), count(at.head, at.base)
		if got.GetStatus() != at.status || got.GetAheadBy() != ahead || got.GetBehindBy() != behind {
			t.Errorf("%s/%s...%s: %s, %d ahead and %d behind; git counts %d and %d", at.owner, at.base, at.head, got.GetStatus(), got.GetAheadBy(), got.GetBehindBy(), ahead, behind)
		}
	}
}
