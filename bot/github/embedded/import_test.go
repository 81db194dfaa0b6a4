package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestImport imports a git bundle: its refs become branches as if pushed, and a pull request
// follows its branch.
func TestImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	dir := t.TempDir()
	work, bundle := filepath.Join(dir, "work"), filepath.Join(dir, "a bundle")
	w.mustGit(dir, "clone", "--quiet", w.repo.CloneURL(), work)
	commit := func(text string) (sha string) {
		w.no(os.WriteFile(filepath.Join(work, "a.cu"), []byte(text), 0o644))
		w.mustGit(work, "commit", "--quiet", "--all", "--message", text)
		w.mustGit(work, "bundle", "create", "--quiet", bundle, "HEAD", "refs/heads/main")
		return w.mustGit(work, "rev-parse", "HEAD")
	}
	first := commit("one")
	w.no(w.repo.Import(bundle, map[string]string{"topic/one": "refs/heads/main"}))
	if got := w.repo.Head("topic/one"); got != first {
		t.Fatalf("the branch is at %s, want %s", got, first)
	}
	pr := w.open(embedded.PROptions{Title: "One", Head: "topic/one"})
	second := commit("two")
	w.no(w.repo.Import(bundle, map[string]string{"topic/one": "refs/heads/main"}))
	if got := pr.HeadSHA(); got != second {
		t.Errorf("the pull request is at %s, want %s", got, second)
	}
	if err := w.repo.Import(bundle, map[string]string{"topic/two": "refs/heads/none"}); err == nil || !strings.Contains(err.Error(), "import into alice/kernels") {
		t.Errorf("a ref that is not there: %v", err)
	}
}

// TestPageTellsOfMerging checks that the page names what blocks a merge, with the message of the
// merge call.
func TestPageTellsOfMerging(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	says := func(want, refusal string) {
		t.Helper()
		if _, _, text := w.look(pr.URL()); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
		if got := pr.MergeRefusal("alice"); got != refusal {
			t.Errorf("a merge is refused with %q, want %q", got, refusal)
		}
	}
	says("This pull request can be merged", "")
	w.repo.Protect("main", "gate")
	says(`<span class="mark pending">`, `Required status check "gate" is expected.`)
	says("Merging is blocked", `Required status check "gate" is expected.`)
	w.repo.Protect("main")
	if got := pr.MergeRefusal("mallory"); got != "Must have write rights to merge." {
		t.Errorf("a stranger's merge is refused with %q", got)
	}
	w.no(pr.Merge("alice"))
	if _, _, text := w.look(pr.URL()); strings.Contains(text, "Merging") {
		t.Errorf("the page of a merged pull request tells of merging:\n%s", text)
	}
}
