package actions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
)

// mirrorOf prepares a copy of the repository that borrows the objects of the checkout, so that only
// missing objects are fetched. The checkout's configuration has no effect, and the checkout is not
// changed. A shallow checkout is not used, because it has commits without their ancestors.
func mirrorOf(ctx context.Context, scratch, checkout, repo string, origin mirror.Origin) (*mirror.Store, error) {
	store := &mirror.Store{Dir: filepath.Join(scratch, "mirror"), Origin: origin}
	objects := borrowable(ctx, checkout)
	if objects == "" {
		return store, nil
	}
	dir := mirrorDir(store, repo)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("making a mirror: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "git", "init", "--quiet", "--bare", "--template=", "--initial-branch=kernelgate-none", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making a mirror: git init: %w: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(objects+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("making a mirror: %w", err)
	}
	return store, nil
}

// mirrorDir returns the folder in which a store keeps a repository.
func mirrorDir(store *mirror.Store, repo string) string {
	return filepath.Join(store.Dir, filepath.FromSlash(repo)+".git")
}

// borrowable returns the folder of a full clone's objects, or an empty string.
func borrowable(ctx context.Context, checkout string) string {
	if checkout == "" {
		checkout = "."
	}
	out, err := exec.CommandContext(ctx, "git", "-C", checkout, "rev-parse", "--path-format=absolute", "--is-shallow-repository", "--git-path", "objects").Output()
	shallow, objects, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || shallow != "false" || strings.ContainsAny(objects, "\n\"") {
		return ""
	}
	return objects
}

// A shelf stores bundles as files.
type shelf struct{ dir string }

// Put stores a bundle. It implements planner.Bundles.
func (s shelf) Put(_ context.Context, name string, r io.Reader) (string, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return "", fmt.Errorf("storing a bundle: %w", err)
	}
	f, err := os.Create(filepath.Join(s.dir, filepath.Base(name)))
	if err != nil {
		return "", fmt.Errorf("storing a bundle: %w", err)
	}
	_, err = io.Copy(f, r)
	return name, errors.Join(err, f.Close())
}

// unpack extracts a bundle into an empty folder.
func (s shelf) unpack(name, dir string) (runners.Job, error) {
	f, err := os.Open(filepath.Join(s.dir, filepath.Base(name)))
	if err != nil {
		return runners.Job{}, fmt.Errorf("reading a bundle: %w", err)
	}
	defer f.Close()
	return bundle.Read(f, dir)
}
