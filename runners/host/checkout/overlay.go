package checkout

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// CommitFiles writes a commit on top of another one that has new content of files below a folder. No branch has
// it. The same content on the same parent is the same commit. The caller has checked the names.
func CommitFiles(ctx context.Context, dir, parent, folder string, files map[string]string) (string, error) {
	scratch, err := os.MkdirTemp("", "kernelgate-index-")
	if err != nil {
		return "", fmt.Errorf("writing a commit: %w", err)
	}
	defer os.RemoveAll(scratch)
	env := []string{
		"GIT_INDEX_FILE=" + filepath.Join(scratch, "index"), "GIT_AUTHOR_NAME=kernelgate", "GIT_AUTHOR_EMAIL=kernelgate@localhost", "GIT_COMMITTER_NAME=kernelgate",
		"GIT_COMMITTER_EMAIL=kernelgate@localhost", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
	}
	git := func(input string, args ...string) (string, error) { return write(ctx, dir, env, input, args...) }
	if _, err := git("", "read-tree", parent); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		blob, err := git(files[name], "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := git("", "update-index", "--add", "--cacheinfo", "100644,"+blob+","+path.Join(folder, name)); err != nil {
			return "", err
		}
	}
	tree, err := git("", "write-tree")
	if err != nil {
		return "", err
	}
	return git("A submission to kernelgate\n", "commit-tree", tree, "-p", parent)
}

// Overlay makes a repository in dir, a new folder, that has all commits of this one and a commit with new
// content of files. This repository does not change, so that strangers cannot fill it. The overlay holds until
// the caller removes dir.
func (r *Repo) Overlay(ctx context.Context, dir, parent, folder string, files map[string]string) (*Repo, string, error) {
	objects, err := r.git(ctx, "rev-parse", "--git-path", "objects")
	if err != nil {
		return nil, "", err
	}
	from := strings.TrimSpace(objects)
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.dir, from)
	}
	if from, err = filepath.Abs(from); err != nil {
		return nil, "", fmt.Errorf("making an overlay: %w", err)
	}
	format := "sha1"
	if len(parent) == 64 {
		format = "sha256"
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making an overlay: %w", err)
	}
	if _, err := write(ctx, dir, nil, "", "init", "--quiet", "--bare", "--template=", "--object-format="+format); err != nil {
		return nil, "", err
	}
	info := filepath.Join(dir, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return nil, "", fmt.Errorf("making an overlay: %w", err)
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(from+"\n"), 0o600); err != nil {
		return nil, "", fmt.Errorf("making an overlay: %w", err)
	}
	commit, err := CommitFiles(ctx, dir, parent, folder, files)
	if err != nil {
		return nil, "", err
	}
	o := OpenBare(dir)
	o.limits = r.limits
	return o, commit, nil
}

// write runs git with input, and returns its output without the line's end.
func write(ctx context.Context, dir string, env []string, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
