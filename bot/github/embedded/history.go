package embedded

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// A gitCommit is a commit as git log prints it.
type gitCommit struct {
	sha, tree     string
	parents       []string
	author, email string
	when          time.Time
	message       string
}

// log returns up to most commits, newest first.
func (g gitDir) log(most int, span ...string) []gitCommit {
	args := append([]string{"log", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%ct%x00%B%x01", "-n", strconv.Itoa(most)}, span...)
	out, err := g.run(args...)
	if err != nil {
		return nil
	}
	var commits []gitCommit
	for record := range strings.SplitSeq(out, "\x01") {
		f := strings.SplitN(strings.TrimLeft(record, "\n"), "\x00", 7)
		if len(f) < 7 {
			continue
		}
		seconds, _ := strconv.ParseInt(f[5], 10, 64)
		c := gitCommit{sha: f[0], tree: f[1], parents: strings.Fields(f[2]), author: f[3], email: f[4],
			when: time.Unix(seconds, 0).UTC(), message: strings.TrimRight(f[6], "\n")}
		commits = append(commits, c)
		g.known.commits.Store(c.sha, c)
	}
	return commits
}

// A changedFile is a file that differs between two commits.
type changedFile struct {
	name, status   string
	page           string // its address in a browser
	patch          string
	added, removed int // lines
}

// diff returns the files that differ between two commits.
func (r *Repo) diff(from, to string) ([]changedFile, error) {
	raw, err := r.git.always("diff", "--raw", "-z", "-M", from, to)
	if err != nil {
		return nil, err
	}
	text, err := r.git.always("diff", "-M", from, to)
	if err != nil {
		return nil, err
	}
	patches := strings.Split("\n"+text, "\ndiff --git ")[1:] // same files in the same order
	status := map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'R': "renamed", 'C': "copied", 'T': "changed"}
	fields := strings.Split(strings.TrimRight(raw, "\x00"), "\x00")
	var files []changedFile
	for len(fields) > 1 {
		letter, at := strings.Fields(fields[0])[4][0], to
		if letter == 'R' || letter == 'C' {
			fields = fields[1:] // skip the old name
		}
		if letter == 'D' {
			at = from
		}
		f := changedFile{name: fields[1], status: status[letter], page: r.html("/blob/%s/%s", at, fields[1])}
		fields = fields[2:]
		if _, hunks, ok := strings.Cut(patches[len(files)], "\n@@"); ok {
			f.patch = "@@" + hunks
		}
		for line := range strings.Lines(f.patch) {
			switch line[0] {
			case '+':
				f.added++
			case '-':
				f.removed++
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// renderSimple renders the shortest form of a commit.
func renderSimple(c gitCommit) *github.HeadCommit {
	who := &github.CommitAuthor{Name: &c.author, Email: &c.email}
	return &github.HeadCommit{ID: &c.sha, TreeID: &c.tree, Message: &c.message, Author: who, Committer: who, Timestamp: &github.Timestamp{Time: c.when}}
}

func (r *Repo) renderHeadCommit(c gitCommit) *github.HeadCommit {
	h := renderSimple(c)
	// Author and Committer are the same value.
	h.Distinct, h.URL, h.Author.Login = ptr(true), ptr(r.html("/commit/%s", c.sha)), orNil(c.author)
	out, err := r.git.always("diff-tree", "--no-commit-id", "--name-status", "--no-renames", "-r", "--root", "-m", "--first-parent", c.sha)
	if err != nil {
		return h
	}
	for line := range strings.Lines(out) {
		letter, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch letter {
		case "A":
			h.Added = append(h.Added, name)
		case "D":
			h.Removed = append(h.Removed, name)
		case "M":
			h.Modified = append(h.Modified, name)
		}
	}
	return h
}

// side finds a commit by a ref, or by owner:branch in the network of forks.
func (r *Repo) side(name string) (string, bool) {
	owner, branch, ok := strings.Cut(name, ":")
	if !ok {
		return r.git.resolve(name)
	}
	for _, other := range r.s.repos {
		if other.owner.login != owner || other != r && other.parent != r && r.parent != other {
			continue
		}
		sha := other.heads[branch]
		if sha == "" {
			return "", false
		}
		if _, have := r.git.resolve(sha); !have {
			if _, err := r.git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", other.git.path, "refs/heads/"+branch); err != nil {
				return "", false
			}
		}
		return sha, true
	}
	return "", false
}
