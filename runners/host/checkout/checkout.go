// Package checkout reads states of a git repository through the installed git: which files a change
// touches, and a folder's files at the base or at the head. The bot reads mirrors that anybody may
// have put commits into, so all reading is bounded by [Limits]; kernelgate check reads the user's
// repository, including the work tree. Only CommitFiles changes the repository, by a commit that no branch has.
package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// A Repo is a git repository, with or without a work tree.
type Repo struct {
	dir     string   // its top folder, or the repository itself if it is bare
	memo    *memo    // nil if it is not read repeatedly: a submodule
	readers *readers // likewise
	limits  *Limits  // on what is read and written; nil in a user's own work tree
	written int64    // bytes written by exports

	// modules finds the submodules of a bare repository; nil means that there are none.
	modules func(context.Context, Submodule) (*Repo, error)
}

// workTree is the revision that stands for the files as they are, committed or not.
const workTree = ""

// OpenBare opens a repository without a work tree. Anybody may have put commits into it, so limits
// hold for each use; Again opens it for the next use. Git's answers about commits and objects that
// are named by their whole hash are cached, because they never change, and the git processes are
// kept for a moment.
func OpenBare(dir string) *Repo {
	return &Repo{dir: dir, memo: newMemo(), readers: newReaders(), limits: usual()}
}

// Again returns the repository for another use. Its count of written bytes starts at zero, and the
// caches are shared.
func (r *Repo) Again() *Repo {
	return &Repo{dir: r.dir, memo: r.memo, readers: r.readers, limits: r.limits}
}

// Open finds the repository that contains dir. As with OpenBare, answers of git that never change
// are cached: a check of one kernel reads base and head a hundred times.
func Open(ctx context.Context, dir string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git was not found: install it (Debian: apt-get install git)")
	}
	r := &Repo{dir: dir}
	top, err := r.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s is not in a git repository (run kernelgate inside one, or name it with --dir): %w", dir, err)
	}
	r.dir, r.memo, r.readers = strings.TrimSpace(top), newMemo(), newReaders()
	return r, nil
}

// Dir returns the repository's top folder.
func (r *Repo) Dir() string { return r.dir }

// DefaultBase returns the branch that a change most likely goes to.
func (r *Repo) DefaultBase(ctx context.Context) (string, error) {
	for _, ref := range []string{"origin/HEAD", "origin/main", "origin/master", "main", "master"} {
		if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err == nil {
			return ref, nil
		}
	}
	return "", errors.New("no base branch was found (name one with --base, e.g. --base main)")
}

// UnknownCommit means that a repository has no commit of that name. Every other error of
// [Repo.Resolve] is a fault of git or of the machine, and says nothing about the name.
type UnknownCommit struct{ Name string }

func (u UnknownCommit) Error() string {
	return fmt.Sprintf("%q is not a commit of this repository (fetch it, or name another)", u.Name)
}

// Resolve returns the full hash of a revision.
func (r *Repo) Resolve(ctx context.Context, rev string) (string, error) {
	if id, err := r.commitNamed(ctx, rev); id != "" || err != nil {
		return id, err
	}
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return "", fmt.Errorf("looking for the commit %q: %w", rev, cause)
		}
		if exit, ended := errors.AsType[*exec.ExitError](err); ended && !exit.Exited() {
			return "", fmt.Errorf("looking for the commit %q: %w", rev, err) // a signal ended git
		}
		return "", UnknownCommit{rev}
	}
	return strings.TrimSpace(out), nil
}

// MergeBase returns the commit where the head branched off from the base.
func (r *Repo) MergeBase(ctx context.Context, base, head string) (string, error) {
	if head == workTree {
		head = "HEAD"
	}
	missing := func() error {
		_, errBase := r.Resolve(ctx, base)
		_, errHead := r.Resolve(ctx, head)
		return cmp.Or(errBase, errHead)
	}
	// a name may look like one of git's options
	if !wholeHash.MatchString(base) || !wholeHash.MatchString(head) {
		if err := missing(); err != nil {
			return "", err
		}
	}
	if r.stands(ctx, head, base) {
		return base, nil
	}
	out, err := r.git(ctx, "merge-base", base, head)
	if err != nil {
		if err := missing(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s and %s have no common commit (is the clone shallow? fetch more with git fetch --unshallow)", base, head)
	}
	return strings.TrimSpace(out), nil
}

// Root returns the first commit of a branch: the end of the chain of first parents.
func (r *Repo) Root(ctx context.Context, rev string) (string, error) {
	tip, err := r.Resolve(ctx, rev)
	if err != nil {
		return "", err
	}
	out, err := r.git(ctx, "rev-list", "--first-parent", "--max-parents=0", tip, "--")
	if err != nil {
		return "", fmt.Errorf("finding the first commit of %s: %w", rev, err)
	}
	return strings.TrimSpace(out), nil
}

// IsMerge reports whether a commit has the files that a clean merge of two others has. Git leaves the merged tree
// in the repository as an object without a reference.
func (r *Repo) IsMerge(ctx context.Context, commit, base, head string) (bool, error) {
	for _, rev := range []string{commit, base, head} {
		_, err := r.Resolve(ctx, rev)
		if _, unknown := errors.AsType[UnknownCommit](err); unknown {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	want, err := r.git(ctx, "rev-parse", "--verify", "--quiet", commit+"^{tree}")
	if err != nil {
		return false, fmt.Errorf("reading %.12s: %w", commit, err)
	}
	got, err := r.git(ctx, "merge-tree", "--write-tree", "--no-messages", base, head)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == 1 {
		return false, nil // they conflict
	}
	if err != nil {
		return false, fmt.Errorf("merging %.12s into %.12s: %w", head, base, err)
	}
	return strings.TrimSpace(got) == strings.TrimSpace(want), nil
}

// BranchesAt returns the branches under a prefix of refs that point at a commit.
func (r *Repo) BranchesAt(ctx context.Context, prefix, sha string) ([]string, error) {
	out, err := r.git(ctx, "for-each-ref", "--format=%(refname)", "--points-at="+sha, prefix)
	if err != nil {
		return nil, fmt.Errorf("looking for branches at %.12s: %w", sha, err)
	}
	return strings.Fields(out), nil
}

// A Commit is one commit of a history.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
}

// History returns the first-parent commits after one revision up to another, oldest first. The
// second must be newer than the first.
func (r *Repo) History(ctx context.Context, after, until string, limit int) ([]Commit, error) {
	from, err := r.Resolve(ctx, after)
	if err != nil {
		return nil, err
	}
	to, err := r.Resolve(ctx, until)
	if err != nil {
		return nil, err
	}
	if _, err := r.git(ctx, "merge-base", "--is-ancestor", from, to); err != nil {
		return nil, fmt.Errorf("%s is not an ancestor of %s (name an older commit first: OLD..NEW)", after, until)
	}
	out, err := r.git(ctx, "log", "--first-parent", "--format=%H %s", "--max-count="+strconv.Itoa(limit+1), to, "--not", from, "--")
	if err != nil {
		return nil, fmt.Errorf("reading the commits since %.12s: %w", from, err)
	}
	var all []Commit
	for line := range strings.Lines(out) {
		sha, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all = append(all, Commit{sha, subject})
	}
	if len(all) > limit {
		return nil, fmt.Errorf("there are more than %d commits between %s and %s (name commits that are nearer to each other)", limit, after, until)
	}
	slices.Reverse(all)
	return all, nil
}

// Describe returns a revision for the record.
func (r *Repo) Describe(ctx context.Context, rev string) (gates.Commit, error) {
	at := rev
	if rev == workTree {
		at = "HEAD"
	}
	sha, err := r.Resolve(ctx, at)
	if err != nil {
		return gates.Commit{}, err
	}
	c := gates.Commit{SHA: sha}
	if rev != workTree {
		return c, nil
	}
	if branch, err := r.git(ctx, "symbolic-ref", "--short", "--quiet", "HEAD"); err == nil {
		c.Branch = strings.TrimSpace(branch)
	}
	status, err := r.git(ctx, "status", "--porcelain", "-z")
	if err != nil {
		return c, err
	}
	c.Dirty = status != ""
	return c, nil
}

// Changed lists the files that differ between base and head, sorted.
func (r *Repo) Changed(ctx context.Context, base, head string) ([]string, error) {
	if head == workTree {
		return r.changedWorkTree(ctx, base)
	}
	var files []string
	var names int64
	err := r.walking(ctx, func(w *walk) error {
		was, err := w.top(base)
		if err != nil {
			return err
		}
		is, err := w.top(head)
		if err != nil {
			return err
		}
		return w.differ(was, is, "", func(name string) error {
			files = append(files, name)
			if names += int64(len(name)); len(files) > w.limits.Changed || names > w.limits.Names {
				return refuse("", "the change touches more than %d files, or their names have more than %d MiB (no more are looked at; make several changes of it)", w.limits.Changed, w.limits.Names>>20)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("comparing %.12s with %.12s: %w", head, base, err)
	}
	slices.Sort(files)
	return files, nil
}

func (r *Repo) changedWorkTree(ctx context.Context, base string) ([]string, error) {
	out, err := r.git(ctx, "diff", "--name-only", "--no-renames", "-z", base, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := r.git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := append(split(out), split(untracked)...)
	slices.Sort(files)
	return slices.Compact(files), nil
}

func split(out string) []string {
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

// Files lists every file of a revision below a folder ("" is the top), by its path from the
// repository's top.
func (r *Repo) Files(ctx context.Context, rev, folder string) ([]string, error) {
	folder = withoutTop(folder)
	if rev == workTree {
		return r.filesWorkTree(ctx, folder)
	}
	var files []string
	err := r.walking(ctx, func(w *walk) error {
		return w.below(rev, folder, func(name string, _ node) error {
			files = append(files, name)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing files at %.12s: %w", rev, err)
	}
	return files, nil
}

// withoutTop has no name for the repository's own folder, which manifests call ".".
func withoutTop(folder string) string {
	if folder == "." {
		return ""
	}
	return folder
}

func (r *Repo) filesWorkTree(ctx context.Context, folder string) ([]string, error) {
	args := []string{"ls-files", "--cached", "--others", "--exclude-standard", "--full-name", "-z"}
	if folder != "" {
		args = append(args, "--", ":(top,literal)"+folder)
	}
	out, err := r.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(split(out), func(name string) bool {
		_, err := os.Lstat(filepath.Join(r.dir, name))
		return err != nil // deleted, but still in the index
	}), nil
}

// Read returns one file's content, or fs.ErrNotExist if the revision does not have it.
func (r *Repo) Read(ctx context.Context, rev, name string) ([]byte, error) {
	if rev == workTree {
		data, _, err := r.readWorkTree(name)
		return data, err
	}
	texts, err := r.ReadAll(ctx, rev, []string{name})
	if err != nil {
		return nil, err
	}
	data, ok := texts[name]
	if !ok {
		return nil, fmt.Errorf("%s at %.12s: %w", name, rev, fs.ErrNotExist)
	}
	return data, nil
}

var errOddFile = errors.New("it is not a regular file")

// readWorkTree also reports whether the file is executable. It follows no link out of the
// repository.
func (r *Repo) readWorkTree(name string) (data []byte, executable bool, err error) {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s: %w", name, errOddFile)
	}
	if err == nil {
		data, err = root.ReadFile(name)
	}
	return data, err == nil && info.Mode()&0o100 != 0, err
}

// Objects identifies the contents of files and folders at a revision by git's hashes: the same text
// means the same contents. Names that the revision does not have are left out.
func (r *Repo) Objects(ctx context.Context, rev string, names ...string) (string, error) {
	return r.git(ctx, append([]string{"ls-tree", "-z", "--full-tree", rev, "--"}, names...)...)
}

// Reached reports whether a commit is reachable from a branch or a tag. Refs of pull requests do
// not count: anybody can open one.
func (r *Repo) Reached(ctx context.Context, sha string) (bool, error) {
	out, err := r.git(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains="+sha, "refs/heads", "refs/tags")
	if err != nil {
		return false, fmt.Errorf("looking for a branch with %.12s: %w", sha, err)
	}
	return out != "", nil
}
