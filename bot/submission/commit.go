package submission

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

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// refPrefix is where the commits of submissions are kept, so that their runs can be repeated. Git
// does not show these refs as branches, and pushes none of them.
const refPrefix = "refs/kernelgate/"

// checkNames refuses files that a submission cannot replace.
func checkNames(kernel check.Described, files map[string]string) error {
	m := kernel.Manifest
	if len(files) > 0 && m.Root != "" {
		return usage.Errorf("the sources of %s are in %s, outside of its folder: commit them, and name the commit in ref", m.Name, m.Root)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsAny(name, "\\\n\x00"):
			return usage.Errorf("%q is not the name of a file in the kernel's folder (write e.g. %s)", name, exampleFile(kernel))
		case name != manifest.FileName && !m.IsSource(name):
			return usage.Errorf("%s cannot be changed: it is not among the sources of %s (these are %s)", name, m.Name, strings.Join(m.Sources, ", "))
		}
	}
	return nil
}

func exampleFile(kernel check.Described) string {
	for _, name := range slices.Sorted(maps.Keys(kernel.Files)) {
		if name != manifest.FileName {
			return name
		}
	}
	return manifest.FileName
}

// commit writes the base with other files as a commit that no branch has. The same content on the
// same base is the same commit.
func (s *Service) commit(ctx context.Context, kernel check.Described, files map[string]string) (string, error) {
	index, err := os.CreateTemp(s.dir, "index-")
	if err != nil {
		return "", fmt.Errorf("writing the submission: %w", err)
	}
	defer os.Remove(index.Name())
	index.Close()
	os.Remove(index.Name()) // git makes it
	env := []string{
		"GIT_INDEX_FILE=" + index.Name(), "GIT_AUTHOR_NAME=kernelgate", "GIT_AUTHOR_EMAIL=kernelgate@localhost", "GIT_COMMITTER_NAME=kernelgate",
		"GIT_COMMITTER_EMAIL=kernelgate@localhost", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
	}
	git := func(input string, args ...string) (string, error) { return s.git(ctx, env, input, args...) }
	if _, err := git("", "read-tree", kernel.Commit); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		blob, err := git(files[name], "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := git("", "update-index", "--add", "--cacheinfo", "100644,"+blob+","+path.Join(kernel.Folder, name)); err != nil {
			return "", err
		}
	}
	tree, err := git("", "write-tree")
	if err != nil {
		return "", err
	}
	return git("A submission to kernelgate\n", "commit-tree", tree, "-p", kernel.Commit)
}

// git runs a command in the repository and returns its output.
func (s *Service) git(ctx context.Context, env []string, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.root}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
