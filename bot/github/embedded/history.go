package embedded

import (
	"net/http"
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

// log lists commits, newest first.
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
		commits = append(commits, gitCommit{sha: f[0], tree: f[1], parents: strings.Fields(f[2]), author: f[3], email: f[4],
			when: time.Unix(seconds, 0).UTC(), message: strings.TrimRight(f[6], "\n")})
	}
	return commits
}

// diff lists the files that differ between two commits.
func (r *Repo) diff(from, to string) ([]*github.CommitFile, error) {
	raw, err := r.git.run("diff", "--raw", "--numstat", "--no-abbrev", "-z", "-M", from, to)
	if err != nil {
		return nil, err
	}
	text, err := r.git.run("diff", "-M", from, to)
	if err != nil {
		return nil, err
	}
	var patches []string
	for i, part := range strings.Split("\n"+text, "\ndiff --git ") {
		if i > 0 {
			_, hunks, _ := strings.Cut(part, "\n@@")
			patches = append(patches, hunks)
		}
	}
	status := map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'R': "renamed", 'C': "copied", 'T': "changed"}
	fields := strings.Split(strings.TrimRight(raw, "\x00"), "\x00")
	var files []*github.CommitFile
	for len(fields) > 1 && strings.HasPrefix(fields[0], ":") {
		meta := strings.Fields(fields[0])
		letter, name := meta[4][0], fields[1]
		f := &github.CommitFile{SHA: ptr(meta[3]), Status: ptr(status[letter])}
		fields = fields[2:]
		if letter == 'R' || letter == 'C' {
			f.PreviousFilename = ptr(name)
			name, fields = fields[0], fields[1:]
		}
		at := to
		if letter == 'D' {
			at, f.SHA = from, ptr(meta[2])
		}
		f.Filename = ptr(name)
		f.BlobURL = ptr(r.html("/blob/%s/%s", at, name))
		f.RawURL = ptr(r.html("/raw/%s/%s", at, name))
		f.ContentsURL = ptr(r.api("/contents/%s?ref=%s", name, at))
		if n := len(files); n < len(patches) && patches[n] != "" {
			f.Patch = ptr("@@" + patches[n])
		}
		files = append(files, f)
	}
	for _, f := range files {
		if len(fields) == 0 {
			break
		}
		counts := strings.SplitN(fields[0], "\t", 3)
		fields = fields[1:]
		if f.PreviousFilename != nil && len(fields) >= 2 {
			fields = fields[2:]
		}
		added, removed := atoiOr(counts[0], 0), atoiOr(counts[1], 0)
		f.Additions, f.Deletions, f.Changes = &added, &removed, ptr(added+removed)
	}
	return files, nil
}

func (r *Repo) renderCommit(c gitCommit) *github.RepositoryCommit {
	who := &github.CommitAuthor{Name: &c.author, Email: &c.email, Date: &github.Timestamp{Time: c.when}}
	out := &github.RepositoryCommit{SHA: &c.sha, NodeID: ptr(nodeID("Commit", r.id) + c.sha[:8]),
		URL: ptr(r.api("/commits/%s", c.sha)), HTMLURL: ptr(r.html("/commit/%s", c.sha)), CommentsURL: ptr(r.api("/commits/%s/comments", c.sha)),
		Commit: &github.Commit{Author: who, Committer: who, Message: &c.message, CommentCount: ptr(0), URL: ptr(r.api("/git/commits/%s", c.sha)),
			Tree:         &github.Tree{SHA: &c.tree},
			Verification: &github.SignatureVerification{Verified: ptr(false), Reason: ptr("unsigned")}}}
	if u := r.s.users[c.author]; u != nil {
		out.Author, out.Committer = u.render(r.s.url), u.render(r.s.url)
	}
	for _, p := range c.parents {
		out.Parents = append(out.Parents, &github.Commit{SHA: &p, URL: ptr(r.api("/commits/%s", p)), HTMLURL: ptr(r.html("/commit/%s", p))})
	}
	return out
}

// renderSimple is a commit in the fewest words.
func renderSimple(c gitCommit) *github.HeadCommit {
	who := &github.CommitAuthor{Name: &c.author, Email: &c.email}
	return &github.HeadCommit{ID: &c.sha, TreeID: &c.tree, Message: &c.message, Author: who, Committer: who, Timestamp: &github.Timestamp{Time: c.when}}
}

func (r *Repo) renderHeadCommit(c gitCommit) *github.HeadCommit {
	who := &github.CommitAuthor{Name: &c.author, Email: &c.email, Login: orNil(c.author)}
	h := &github.HeadCommit{ID: &c.sha, TreeID: &c.tree, Message: &c.message, Distinct: ptr(true), Author: who, Committer: who,
		Timestamp: &github.Timestamp{Time: c.when}, URL: ptr(r.html("/commit/%s", c.sha))}
	out, err := r.git.run("diff-tree", "--no-commit-id", "--name-status", "--no-renames", "-r", "--root", "-m", "--first-parent", c.sha)
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

func (r *Repo) renderCommits(commits []gitCommit) []*github.RepositoryCommit {
	out := []*github.RepositoryCommit{}
	for _, c := range commits {
		out = append(out, r.renderCommit(c))
	}
	return out
}

// compare answers BASE...HEAD; either side may be owner:branch of a fork.
func compare(rq *request) error {
	baseName, headName, ok := strings.Cut(rq.PathValue("basehead"), "...")
	base, okBase := rq.repo.side(baseName)
	head, okHead := rq.repo.side(headName)
	if !ok || !okBase || !okHead {
		return errNotFound()
	}
	r := rq.repo
	fork, err := r.git.run("merge-base", base, head)
	if err != nil {
		return &apiError{Status: 404, Message: "No common ancestor between " + baseName + " and " + headName + "."}
	}
	ahead, behind := r.git.count(base, head), r.git.count(head, base)
	status := "diverged"
	switch {
	case ahead == 0 && behind == 0:
		status = "identical"
	case behind == 0:
		status = "ahead"
	case ahead == 0:
		status = "behind"
	}
	files, err := r.diff(fork, head)
	if err != nil {
		return err
	}
	url := r.html("/compare/%s...%s", baseName, headName)
	commits := r.git.log(250, "--reverse", base+".."+head)
	c := &github.CommitsComparison{BaseCommit: r.renderCommit(r.git.log(1, base)[0]), MergeBaseCommit: r.renderCommit(r.git.log(1, fork)[0]),
		Status: &status, AheadBy: &ahead, BehindBy: &behind, TotalCommits: &ahead, Commits: page(rq, r.renderCommits(commits)),
		Files: files, HTMLURL: &url, PermalinkURL: &url, DiffURL: ptr(url + ".diff"), PatchURL: ptr(url + ".patch"),
		URL: ptr(r.api("/compare/%s...%s", baseName, headName))}
	return rq.ok(c)
}

// side finds a commit by ref, or by owner:branch in the network of forks.
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

func listCommits(rq *request) error {
	ref := rq.query("sha")
	if ref == "" {
		ref = rq.repo.branch
	}
	sha, ok := rq.repo.git.resolve(ref)
	if !ok {
		if len(rq.repo.heads) == 0 {
			return &apiError{Status: http.StatusConflict, Message: "Git Repository is empty."}
		}
		return errNotFound()
	}
	span := []string{sha}
	if path := rq.query("path"); path != "" {
		span = append(span, "--", path)
	}
	return rq.ok(page(rq, rq.repo.renderCommits(rq.repo.git.log(1000, span...))))
}

func getCommit(rq *request, sha string) error {
	c := rq.repo.git.log(1, sha)[0]
	if strings.HasSuffix(rq.Request.Header.Get("Accept"), ".sha") {
		rq.text("application/vnd.github.sha", sha)
		return nil
	}
	out := rq.repo.renderCommit(c)
	from := emptyTree
	if len(c.parents) > 0 {
		from = c.parents[0]
	}
	var err error
	if out.Files, err = rq.repo.diff(from, sha); err != nil {
		return err
	}
	added, removed := 0, 0
	for _, f := range out.Files {
		added, removed = added+f.GetAdditions(), removed+f.GetDeletions()
	}
	out.Stats = &github.CommitStats{Additions: &added, Deletions: &removed, Total: ptr(added + removed)}
	return rq.ok(out)
}
