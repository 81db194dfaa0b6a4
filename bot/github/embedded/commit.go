package embedded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Commit describes a commit that a user pushes.
type Commit struct {
	Branch  string
	From    string            // parent; defaults to the branch's tip or the default branch's; another parent is a force push
	Files   map[string]string // path to content; content that begins with "#!" is executable
	Delete  []string
	Message string
	Author  string // defaults to the repository's owner
}

// Push commits files to a branch and returns the commit's SHA. A new branch starts at the default
// branch.
func (r *Repo) Push(branch string, files map[string]string, message string) (string, error) {
	return r.PushCommit(Commit{Branch: branch, Files: files, Message: message})
}

// PushCommit is Push with all options.
func (r *Repo) PushCommit(c Commit) (string, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if err := cmp.Or(r.writable(), notOfQueue(c.Branch)); err != nil {
		return "", fmt.Errorf("push to %s of %s: %w", c.Branch, r.fullName(), err)
	}
	who := r.owner
	if c.Author != "" {
		who = r.s.user(c.Author)
	}
	parent := cmp.Or(c.From, r.heads[c.Branch], r.heads[r.branch])
	if c.From != "" {
		sha, ok := r.git.resolve(c.From)
		if !ok {
			return "", fmt.Errorf("push to %s of %s: no commit %s to start from", c.Branch, r.fullName(), c.From)
		}
		parent = sha
	}
	if _, err := r.git.feed(c.stream(parent, who.login, r.s.now().Unix()), nil, "fast-import", "--quiet", "--force"); err != nil {
		return "", fmt.Errorf("push to %s of %s: %w", c.Branch, r.fullName(), err)
	}
	if err := r.reconcile(who); err != nil {
		return "", err
	}
	return r.heads[c.Branch], nil
}

// Tag makes a tag, or moves one. With a message it is annotated.
func (r *Repo) Tag(name, sha, message string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	args := []string{"tag", "--force", name, sha}
	if message != "" {
		args = []string{"-c", "user.name=" + r.owner.login, "-c", "user.email=" + r.owner.login + "@users.noreply.example", "tag", "--force", "--annotate", "--message", message, name, sha}
	}
	if _, err := r.git.run(args...); err != nil {
		return fmt.Errorf("tag %s of %s: %w", name, r.fullName(), err)
	}
	return r.noteRefs()
}

// DeleteTag deletes a tag.
func (r *Repo) DeleteTag(name string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if _, err := r.git.run("tag", "--delete", name); err != nil {
		return fmt.Errorf("delete the tag %s of %s: %w", name, r.fullName(), err)
	}
	return r.noteRefs()
}

// stream writes the commit in the language of git fast-import, which needs one process per commit
// and no work tree.
func (c Commit) stream(parent, login string, unix int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "commit refs/heads/%s\n", c.Branch)
	for _, as := range []string{"author", "committer"} {
		fmt.Fprintf(&b, "%s %s <%s@users.noreply.example> %d +0000\n", as, login, login, unix)
	}
	fmt.Fprintf(&b, "data %d\n%s\n", len(c.Message), c.Message)
	if parent != "" {
		fmt.Fprintf(&b, "from %s\n", parent)
	}
	for _, path := range c.Delete {
		fmt.Fprintf(&b, "D %s\n", quotePath(path))
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		mode, text := "100644", c.Files[path]
		if strings.HasPrefix(text, "#!") {
			mode = "100755"
		}
		fmt.Fprintf(&b, "M %s inline %s\ndata %d\n%s\n", mode, quotePath(path), len(text), text)
	}
	b.WriteString("\n")
	return b.String()
}

func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// DeleteBranch deletes a branch as the repository's owner. Pull requests from the branch are
// closed. Options.RetargetPulls decides what happens to the pull requests that target it.
func (r *Repo) DeleteBranch(branch string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	err := cmp.Or(r.writable(), notOfQueue(branch))
	if _, there := r.heads[branch]; err == nil && (!there || branch == r.branch) {
		err = invalid("Reference", "ref", "custom", "Reference does not exist, or is the default branch")
	}
	if err == nil {
		_, err = r.git.run("update-ref", "-d", "refs/heads/"+branch)
	}
	if err != nil {
		return fmt.Errorf("delete %s of %s: %w", branch, r.fullName(), err)
	}
	return r.reconcile(r.owner)
}
