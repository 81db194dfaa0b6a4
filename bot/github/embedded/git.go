package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A gitDir is a bare repository on disk.
type gitDir struct {
	path  string
	ctx   context.Context // canceled when the hub closes
	known *known
}

const zeroSHA = "0000000000000000000000000000000000000000"

// command prepares a git command that ignores the configuration of the user and of the machine.
func (g gitDir) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(g.ctx, "git", args...)
	cmd.Dir = g.path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.path, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0"}
	return cmd
}

func (g gitDir) run(args ...string) (string, error) { return g.feed("", nil, args...) }

func (g gitDir) feed(stdin string, env []string, args ...string) (string, error) {
	cmd := g.command(args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s in %s: %w: %s", strings.Join(args, " "), filepath.Base(g.path), err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// init creates the files that git init --bare creates, without a process.
func (g gitDir) init(branch string) error {
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(g.path, folder), 0o755); err != nil {
			return fmt.Errorf("make repository %s: %w", g.path, err)
		}
	}
	for file, text := range map[string]string{"HEAD": "ref: refs/heads/" + branch + "\n", "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"} {
		if err := os.WriteFile(filepath.Join(g.path, file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("make repository %s: %w", g.path, err)
		}
	}
	return g.configure()
}

// configure lets clients fetch any commit by its SHA, as GitHub does, and hides the refs that
// GitHub makes, and those of the merge queue, from pushes. Pushed objects stay in the pack in which they arrived, because
// unpacking costs one more process.
func (g gitDir) configure() error {
	const settings = "[uploadpack]\n\tallowAnySHA1InWant = true\n\tallowFilter = true\n" +
		"[receive]\n\thideRefs = refs/pull\n\thideRefs = refs/heads/gh-readonly-queue\n[gc]\n\tauto = 0\n[fastimport]\n\tunpackLimit = 1\n[core]\n\tlogAllRefUpdates = false\n"
	f, err := os.OpenFile(filepath.Join(g.path, "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("configure %s: %w", g.path, err)
	}
	_, err = f.WriteString(settings)
	return errors.Join(err, f.Close())
}

// resolve returns the commit that a SHA, branch, tag or full ref names.
func (g gitDir) resolve(ref string) (string, bool) {
	if ref == "" || strings.HasPrefix(ref, "-") {
		return "", false
	}
	if _, ok := g.known.commit(ref); ok { // ref is a full commit id
		return ref, true
	}
	for _, name := range []string{ref, "refs/" + ref} {
		if sha, err := g.run("rev-parse", "--quiet", "--verify", name+"^{commit}"); err == nil {
			return sha, true
		}
	}
	return "", false
}

// heads returns the SHA of each branch.
func (g gitDir) heads() (map[string]string, error) {
	refs, err := g.refs("refs/heads/")
	heads := map[string]string{}
	for name, sha := range refs {
		heads[strings.TrimPrefix(name, "refs/heads/")] = sha
	}
	return heads, err
}

// identity returns the environment that sets the author and committer of the hub's commits.
func identity(login string, when time.Time) []string {
	date := fmt.Sprintf("%d +0000", when.Unix())
	email := login + "@users.noreply.example"
	return []string{"GIT_AUTHOR_NAME=" + login, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + login, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + date}
}

// merge creates the commit that merges head into base, without a work tree. It returns false on a
// conflict.
func (g gitDir) merge(base, head, message string, who []string) (string, bool, error) {
	tree, err := g.always("merge-tree", "--write-tree", "--no-messages", base, head)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	sha, err := g.feed(message, who, "commit-tree", tree, "-p", base, "-p", head)
	return sha, err == nil, err
}
