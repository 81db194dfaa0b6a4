package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// PROptions describes a pull request to open.
type PROptions struct {
	Author   string
	Title    string
	Body     string
	Head     string // branch
	HeadRepo *Repo  // the fork; defaults to the repository itself
	Base     string // defaults to the default branch
	Draft    bool
	Labels   []string
}

// A PR is a pull request.
type PR struct {
	repo               *Repo
	id                 int64
	number             int
	title, body        string
	author             *account
	state              string // open or closed
	draft              bool
	headRepo           *Repo
	headRef, headSHA   string
	baseRef, baseSHA   string
	locked             bool
	lockReason         string
	labels             []*label
	created, updated   time.Time
	closedAt, mergedAt time.Time
	mergedBy           *account
	mergeSHA           string // the test merge, then the merge itself
	mergeable          bool
	moves              []move // changes of the base branch
	size               pullSize
	forms              []pullForm // oldest first; empty without lag
}

// pullSize is the size of the pull request.
type pullSize struct{ commits, files, added, removed int }

// OpenPR opens a pull request.
func (r *Repo) OpenPR(opt PROptions) (*PR, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	pr, err := r.open(r.s.user(cmp.Or(opt.Author, r.owner.login)), opt)
	if err != nil {
		return nil, fmt.Errorf("open a pull request in %s: %w", r.fullName(), err)
	}
	return pr, nil
}

func (r *Repo) open(who *account, opt PROptions) (*PR, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	pr := &PR{repo: r, title: opt.Title, body: opt.Body, author: who, state: "open", draft: opt.Draft,
		headRepo: cmp.Or(opt.HeadRepo, r), headRef: opt.Head, baseRef: cmp.Or(opt.Base, r.branch), created: r.s.now(), updated: r.s.now()}
	pr.headSHA, pr.baseSHA = pr.headRepo.heads[pr.headRef], r.heads[pr.baseRef]
	switch {
	case pr.title == "":
		return nil, invalid("PullRequest", "title", "missing_field", "")
	case pr.baseSHA == "":
		return nil, invalid("PullRequest", "base", "invalid", "")
	case pr.headSHA == "":
		return nil, invalid("PullRequest", "head", "invalid", "")
	}
	if err := pr.onlyOne(pr.baseRef); err != nil {
		return nil, err
	}
	r.lastNumber++
	pr.number = r.lastNumber
	if err := pr.fetchHead(); err != nil {
		return nil, err
	}
	if r.git.count(pr.baseSHA, pr.headSHA) == 0 {
		r.lastNumber--
		return nil, invalid("PullRequest", "base", "custom", fmt.Sprintf("No commits between %s and %s", pr.baseRef, pr.headRef))
	}
	pr.id = r.s.id()
	pr.labels = each(opt.Labels, r.label)
	r.pulls = append(r.pulls, pr)
	if err := pr.test(); err != nil {
		return nil, err
	}
	pr.emit(who, "opened", nil)
	for _, l := range pr.labels {
		pr.emit(who, "labeled", map[string]any{"label": l.render()})
	}
	return pr, r.noteRefs()
}

// onlyOne refuses a second open pull request from the same head to the same base.
func (pr *PR) onlyOne(base string) error {
	for _, other := range pr.repo.pulls {
		if other != pr && other.state == "open" && other.headRepo == pr.headRepo && other.headRef == pr.headRef && other.baseRef == base {
			return invalid("PullRequest", "base", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", pr.headRepo.owner.login, pr.headRef))
		}
	}
	return nil
}

// fetchHead fetches the head's commits into the base repository, under the ref that GitHub keeps
// for them.
func (pr *PR) fetchHead() error {
	ref := fmt.Sprintf("refs/pull/%d/head", pr.number)
	g := pr.repo.git
	pr.repo.arrived(pr.headSHA)
	if pr.headRepo != pr.repo {
		_, err := g.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", pr.headRepo.git.path, "+refs/heads/"+pr.headRef+":"+ref)
		return err
	}
	_, err := g.run("update-ref", ref, pr.headSHA)
	return err
}

// test computes the pull request's size and creates the test merge. After a conflict,
// refs/pull/N/merge stays stale, as on GitHub.
func (pr *PR) test() error {
	r := pr.repo
	if r.heads[pr.baseRef] == "" { // the base branch is deleted
		pr.mergeable = false
		return nil
	}
	pr.baseSHA = r.heads[pr.baseRef]
	files, err := pr.files()
	if err != nil {
		return err
	}
	pr.size = pullSize{commits: r.git.count(pr.baseSHA, pr.headSHA), files: len(files)}
	for _, f := range files {
		pr.size.added += f.added
		pr.size.removed += f.removed
	}
	sha, ok, err := r.git.merge(pr.baseSHA, pr.headSHA, fmt.Sprintf("Merge %s into %s", pr.headSHA, pr.baseSHA), identity("web-flow", r.s.now()))
	if err != nil {
		return err
	}
	pr.mergeable = ok
	if !ok {
		return nil
	}
	pr.mergeSHA = sha
	_, err = r.git.run("update-ref", fmt.Sprintf("refs/pull/%d/merge", pr.number), sha)
	return err
}

func (pr *PR) synchronize(who *account, after string) error {
	before := pr.headSHA
	pr.headSHA, pr.updated = after, pr.repo.s.now()
	if err := pr.fetchHead(); err != nil {
		return err
	}
	if err := pr.test(); err != nil {
		return err
	}
	pr.emit(who, "synchronize", map[string]any{"before": before, "after": after})
	return pr.repo.dequeue(who, pr, removedManually)
}

// close closes the pull request, which leaves the merge queue.
func (pr *PR) close(who *account) error {
	now := pr.repo.s.now()
	pr.state, pr.closedAt, pr.updated = "closed", now, now
	pr.emit(who, "closed", nil)
	return pr.repo.dequeue(who, pr, removedManually)
}

func (pr *PR) merged(who *account, sha string) error {
	pr.mergedAt, pr.mergedBy, pr.mergeSHA = pr.repo.s.now(), who, sha
	return pr.close(who)
}

func (pr *PR) emit(who *account, action string, more map[string]any) {
	pr.remember(action == "opened")
	pr.repo.emit(who, "pull_request", action, nil, with(map[string]any{"number": pr.number, "pull_request": pr.render()}, more))
}

func (r *Repo) pull(number int) *PR {
	return find(r.pulls, func(pr *PR) bool { return pr.number == number })
}

// pullsAt returns the open pull requests from this repository's own branches whose head is the
// commit. GitHub does not list pull requests from forks in a check.
func (r *Repo) pullsAt(sha string) []*PR {
	return slices.DeleteFunc(slices.Clone(r.pulls), func(pr *PR) bool { return pr.headRepo != r || pr.headSHA != sha || pr.state != "open" })
}

type label struct {
	repo        *Repo
	id          int64
	name, color string
}

// label returns a label of the repository and creates it if needed. On GitHub, adding an unknown
// label creates it, too.
func (r *Repo) label(name string) *label {
	if l := find(r.labels, func(l *label) bool { return l.name == name }); l != nil {
		return l
	}
	l := &label{repo: r, id: r.s.id(), name: name, color: "ededed"}
	r.labels = append(r.labels, l)
	return l
}
