package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A mirror's folder has the name of its repository. If the repository is renamed or deleted, the name may go
// to a different one, whose authors could then name commits of the old one, such as the baseline of a
// command. So each mirror has a file next to it with the number of its repository.

func ownerFile(dir string) string { return dir + ".number" }

// discardOther deletes a mirror of a repository that had the name before. It is safe to delete, because
// everything in it comes from GitHub. The number is written before the first fetch.
func (s *Store) discardOther(ctx context.Context, repo, dir string) error {
	if s.Number == nil {
		return nil
	}
	id, err := s.Number(ctx, repo)
	if err != nil {
		return fmt.Errorf("asking for the number of the repository: %w", err)
	}
	want := strconv.FormatInt(id, 10)
	has, err := os.ReadFile(ownerFile(dir))
	if err == nil && string(has) == want {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading whose mirror it is: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the mirror of a different repository: %w", err)
	}
	// The caches of git's answers, and the git processes that are kept, know the old one.
	m := s.mirrored(repo)
	s.mu.Lock()
	m.repo = checkout.OpenBare(dir)
	clear(m.ahead.there)
	s.mu.Unlock()
	if err := s.prepare(ctx, dir); err != nil {
		return err
	}
	if err := os.WriteFile(ownerFile(dir), []byte(want), 0o600); err != nil {
		return fmt.Errorf("writing whose mirror it is: %w", err)
	}
	return nil
}
