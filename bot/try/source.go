package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A source is the user's repository. It is only read.
type source struct {
	dir      string // its git folder
	name     string // name of its top folder, in GitHub's characters
	base     branch
	branches []branch // branches that become pull requests
}

// A branch is a branch of the source.
type branch struct{ name, ref, sha string }

// openSource finds the repository that contains dir, the base branch and the branches to try. An
// error in one of them is a usage.Error.
func openSource(ctx context.Context, dir, base string, names []string) (*source, error) {
	s := &source{dir: cmp.Or(dir, ".")}
	err := s.open(ctx)
	if err == nil {
		err = s.findBase(ctx, base)
	}
	if err == nil {
		err = s.findBranches(ctx, names)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, ctx.Err())
		}
		return nil, usage.Errorf("kernelgate try: %w", err)
	}
	return s, nil
}

// open finds the repository of the folder.
func (s *source) open(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("git was not found: install it (Debian: apt-get install git)")
	}
	named := s.dir
	if _, err := os.Stat(named); err != nil {
		return fmt.Errorf("%w (name the folder of a git repository)", err)
	}
	gitDir, err := s.git(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return fmt.Errorf("%s is not in a git repository (run it inside one, or name its folder): %w", named, err)
	}
	top, err := s.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil || top == "" { // the repository is bare
		top = strings.TrimSuffix(strings.TrimSuffix(gitDir, "/.git"), ".git")
	}
	s.dir, s.name = gitDir, repoName(filepath.Base(top))
	if shallow, err := s.git(ctx, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		return errors.Join(fmt.Errorf("%s is a shallow clone, without the commits that a pull request is compared with (fetch them with git fetch --unshallow)", named), err)
	}
	return nil
}

// repoName replaces the characters of a folder's name that GitHub does not allow in a repository's
// name.
func repoName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, folder)
	if strings.Trim(name, ".-") == "" {
		return "repository"
	}
	return name
}

// findBase finds the branch that pull requests target, and checks that it has a policy.
func (s *source) findBase(ctx context.Context, name string) error {
	candidates := []string{name}
	if name == "" {
		candidates = []string{"main", "master"}
		if head, err := s.git(ctx, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); err == nil {
			candidates = append([]string{strings.TrimPrefix(head, "origin/")}, candidates...)
		}
	}
	for _, c := range candidates {
		// A clone that never checked out its default branch has only the remote's.
		for _, ref := range []string{"refs/heads/" + c, "refs/remotes/origin/" + c} {
			if sha, err := s.git(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", ref+"^{commit}"); err == nil {
				s.base = branch{c, ref, sha}
				return s.hasPolicy(ctx)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if name != "" {
		return fmt.Errorf("--base: there is no branch %q%s", name, s.known(ctx))
	}
	return fmt.Errorf("no default branch was found: neither origin/HEAD nor main nor master is there (name it with --base, e.g. --base trunk)%s", s.known(ctx))
}

func (s *source) hasPolicy(ctx context.Context) error {
	found, err := s.git(ctx, "ls-tree", "--full-tree", "--name-only", s.base.sha, "--", check.PolicyFile)
	if err == nil && found == "" {
		return fmt.Errorf("there is no policy on %s: %s is missing, so nothing would be asked of any change (commit one there, e.g. a copy of policies/default.yaml; policy and kernels are always the base branch's)", s.base.name, check.PolicyFile)
	}
	return err
}

// findBranches finds the named branches, or all branches that are ahead of the base.
func (s *source) findBranches(ctx context.Context, names []string) error {
	if len(names) == 0 {
		refs, err := s.git(ctx, "for-each-ref", "--format=%(refname) %(objectname)", "--no-merged="+s.base.sha, "refs/heads")
		if err != nil {
			return err
		}
		for line := range strings.Lines(refs) {
			ref, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
			// An unrelated branch, such as gh-pages, cannot become a pull request.
			if _, err := s.git(ctx, "merge-base", s.base.sha, sha); err == nil {
				s.branches = append(s.branches, branch{strings.TrimPrefix(ref, "refs/heads/"), ref, sha})
			}
		}
		if len(s.branches) == 0 {
			return fmt.Errorf("no branch is ahead of %s, so there is nothing to open a pull request for (commit a change on a branch: git switch -c my-change)", s.base.name)
		}
		return nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		b := branch{name: name, ref: "refs/heads/" + name}
		var err error
		if b.sha, err = s.git(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", b.ref+"^{commit}"); err != nil {
			return fmt.Errorf("--branch: there is no branch %q%s", name, s.known(ctx))
		}
		if ahead, err := s.git(ctx, "rev-list", "--count", s.base.sha+".."+b.sha, "--"); err != nil || ahead == "0" {
			return errors.Join(fmt.Errorf("--branch: %s has no commit that %s does not have (commit a change on it)", name, s.base.name), err)
		}
		if _, err := s.git(ctx, "merge-base", s.base.sha, b.sha); err != nil {
			return fmt.Errorf("--branch: %s and %s have no common commit, and GitHub opens no pull request between them", name, s.base.name)
		}
		s.branches = append(s.branches, b)
	}
	return nil
}

// known lists the branches, for error messages about a branch that does not exist.
func (s *source) known(ctx context.Context) string {
	const most = 10
	list, err := s.git(ctx, "for-each-ref", "--sort=-committerdate", "--count="+fmt.Sprint(most+1), "--format=%(refname:lstrip=2)", "refs/heads")
	names := strings.Fields(list)
	switch {
	case err != nil || len(names) == 0:
		return "; the repository has no branches (commit something first)"
	case len(names) > most:
		return "; the newest are " + strings.Join(names[:most], ", ")
	}
	return "; there are " + strings.Join(names, ", ")
}

// words returns a pull request's title and body as GitHub proposes them: those of its only commit,
// or the name of the branch.
func (s *source) words(ctx context.Context, b branch) (title, body string, err error) {
	log, err := s.git(ctx, "log", "--format=%s%x00%b%x00", "--max-count=2", s.base.sha+".."+b.sha, "--")
	if err != nil {
		return "", "", err
	}
	part := strings.Split(log, "\x00")
	if len(part) == 3 && strings.TrimSpace(part[0]) != "" {
		return strings.TrimSpace(part[0]), strings.TrimSpace(part[1]), nil
	}
	return b.name, "", nil
}

// tips returns the current commits of branches, by ref.
func (s *source) tips(ctx context.Context, branches []branch) (map[string]string, error) {
	args := []string{"for-each-ref", "--format=%(refname) %(objectname)"}
	for _, b := range branches {
		args = append(args, b.ref)
	}
	list, err := s.git(ctx, args...)
	tips := map[string]string{}
	for line := range strings.Lines(list) {
		ref, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		tips[ref] = sha
	}
	return tips, err
}

// bundle writes branches with their history to a file.
func (s *source) bundle(ctx context.Context, file string, branches ...branch) error {
	args := []string{"bundle", "create", "--quiet", file}
	for _, b := range branches {
		args = append(args, b.ref)
	}
	if _, err := s.git(ctx, args...); err != nil {
		return fmt.Errorf("copying %s: %w", s.dir, err)
	}
	return nil
}

// git runs the user's git on the repository. None of the commands writes there: they take no locks,
// and they fetch no objects that a partial clone left out.
func (s *source) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.dir}, args...)...)
	// A hook or an alias that starts us sets these variables for a different repository.
	local := func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}, name)
	}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), local), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if text := strings.TrimSpace(errs.String()); err != nil && text != "" {
		err = errors.New(text)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
