package checkout

import (
	"context"
	"errors"
	"testing"
)

// TestUnknownCommit checks that a name that no commit has is distinguished from a git that could
// not look.
func TestUnknownCommit(t *testing.T) {
	dir := t.TempDir()
	repo := &Repo{dir: dir, memo: newMemo(), readers: newReaders()}
	if _, err := repo.git(t.Context(), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	_, err := repo.Resolve(t.Context(), "moon")
	if unknown, ok := errors.AsType[UnknownCommit](err); !ok || unknown.Name != "moon" {
		t.Errorf("a name that is not there: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = repo.Resolve(ended, "moon")
	if _, ok := errors.AsType[UnknownCommit](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody could look: %v", err)
	}
}
