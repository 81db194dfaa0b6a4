package embedded

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// RepoOptions describes a repository to create.
type RepoOptions struct {
	Owner, Name   string
	DefaultBranch string // defaults to main
	Private       bool
}

// A Repo is a repository.
type Repo struct {
	s        *Server
	id       int64
	owner    *account
	name     string
	branch   string
	private  bool
	archived bool     // read-only
	disabled bool     // closed by GitHub
	noIssues bool     // its owner has turned issues off
	was      []string // former full names, which redirect here
	parent   *Repo
	git      gitDir
	created  time.Time
	pushed   time.Time

	roles      map[*account]Role
	heads      map[string]string    // branches as the hub last saw them
	arrivals   map[string]time.Time // times of commits; empty without lag
	refsPast   []*refsAt            // oldest first; empty without lag
	activities []activity           // oldest first
	labels     []*label
	pulls      []*PR
	issues     []*Issue
	deleted    []int // numbers of deleted issues
	comments   []*comment
	remarks    []*comment // comments on lines of code
	reviews    []*review
	runs       []*checkRun
	suites     []*checkSuite
	statuses   []*status
	hooks      []*Hook
	protection map[string]*Protection
	groups     []*mergeGroup
	formed     map[string]bool // commits of all merge groups that there were
	lastNumber int
}

// CreateRepo creates an empty repository. The first Push creates its default branch.
func (s *Server) CreateRepo(opt RepoOptions) (*Repo, error) {
	if opt.Owner == "" || opt.Name == "" {
		return nil, fmt.Errorf("create repository %s/%s: an owner and a name are needed", opt.Owner, opt.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.newRepo(opt)
	if err != nil {
		return nil, err
	}
	if err := r.git.init(r.branch); err != nil {
		return nil, fmt.Errorf("create repository %s: %w", r.fullName(), err)
	}
	s.repos = append(s.repos, r)
	s.touch()
	return r, nil
}

func (s *Server) newRepo(opt RepoOptions) (*Repo, error) {
	if s.repo(opt.Owner, opt.Name) != nil {
		return nil, fmt.Errorf("create repository %s/%s: the name exists already on this account", opt.Owner, opt.Name)
	}
	s.takeName(opt.Owner + "/" + opt.Name)
	return &Repo{s: s, id: s.id(), owner: s.user(opt.Owner), name: opt.Name, private: opt.Private,
		branch: cmp.Or(opt.DefaultBranch, "main"), created: s.now(), pushed: s.now(),
		git:   gitDir{path: filepath.Join(s.opt.Dir, opt.Owner, fmt.Sprintf("%s-%d.git", opt.Name, s.lastID)), ctx: s.ctx, known: &known{}},
		roles: map[*account]Role{}, heads: map[string]string{}, protection: map[string]*Protection{}}, nil
}

// Fork copies the repository to a user's account.
func (r *Repo) Fork(login string) (*Repo, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	f, err := r.s.newRepo(RepoOptions{Owner: login, Name: r.name, DefaultBranch: r.branch, Private: r.private})
	if err != nil {
		return nil, fmt.Errorf("fork %s: %w", r.fullName(), err)
	}
	f.parent = r
	if _, err := r.git.run("clone", "--quiet", "--bare", "--no-hardlinks", r.git.path, f.git.path); err != nil {
		return nil, fmt.Errorf("fork %s: %w", r.fullName(), err)
	}
	if err := f.git.configure(); err != nil {
		return nil, err
	}
	if f.heads, err = f.git.heads(); err != nil {
		return nil, err
	}
	r.s.repos = append(r.s.repos, f)
	r.s.touch()
	return f, nil
}

func (s *Server) repo(owner, name string) *Repo {
	return find(s.repos, func(r *Repo) bool { return strings.EqualFold(r.fullName(), owner+"/"+name) })
}

// movedFrom finds a repository by a former name that no other repository has taken since.
func (s *Server) movedFrom(owner, name string) *Repo {
	if s.repo(owner, name) != nil {
		return nil
	}
	for _, r := range slices.Backward(s.repos) {
		if slices.ContainsFunc(r.was, func(old string) bool { return strings.EqualFold(old, owner+"/"+name) }) {
			return r
		}
	}
	return nil
}

// takeName ends the redirects from a name for good, as GitHub does when a repository takes the name.
func (s *Server) takeName(name string) {
	for _, r := range s.repos {
		r.was = slices.DeleteFunc(r.was, func(old string) bool { return strings.EqualFold(old, name) })
	}
}

// ID returns the repository's number.
func (r *Repo) ID() int64 { return r.id }

// FullName returns owner/name.
func (r *Repo) FullName() string { return r.fullName() }

func (r *Repo) fullName() string { return r.owner.login + "/" + r.name }

// CloneURL returns the URL for git clients.
func (r *Repo) CloneURL() string { return r.s.url + "/" + r.fullName() + ".git" }

// Dir returns the folder of the bare repository.
func (r *Repo) Dir() string { return r.git.path }

// DefaultBranch returns the default branch, which pull requests target unless they name another
// base.
func (r *Repo) DefaultBranch() string { return r.branch }

// Head returns the SHA of a branch's tip, or an empty string if the branch does not exist.
func (r *Repo) Head(branch string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.heads[branch]
}

// PRs returns all pull requests, open and closed, by number.
func (r *Repo) PRs() []*PR {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.Clone(r.pulls)
}

func (r *Repo) api(format string, args ...any) string {
	return r.s.url + "/repos/" + r.fullName() + fmt.Sprintf(format, args...)
}

func (r *Repo) html(format string, args ...any) string {
	return r.s.url + "/" + r.fullName() + fmt.Sprintf(format, args...)
}

func getUser(rq *request) error {
	switch {
	case rq.actor.inst() != nil || rq.actor.app != nil:
		return forbidden("Resource not accessible by integration")
	case rq.actor.anonymous():
		return unauthorised("Requires authentication")
	}
	return rq.ok(rq.actor.user.renderFull(rq.s))
}

// renderRepo renders the repository with the caller's permissions, which events do not contain.
func (rq *request) renderRepo(r *Repo) *github.Repository {
	out := r.render()
	out.SubscribersCount, out.NetworkCount = ptr(0), out.ForksCount
	if u := rq.actor.user; u != nil && rq.actor.inst() == nil {
		out.Permissions = renderRole(r.role(u))
	}
	if r.parent != nil {
		out.Parent, out.Source = r.parent.render(), r.parent.render()
	}
	return out
}

func renderRole(role Role) map[string]bool {
	return map[string]bool{"pull": role.atLeast(Read), "triage": role.atLeast(Triage), "push": role.atLeast(Write),
		"maintain": role.atLeast(Maintain), "admin": role.atLeast(Admin)}
}

func getRepo(rq *request) error { return rq.ok(rq.renderRepo(rq.repo)) }

func getPermission(rq *request) error {
	u := rq.s.users[rq.PathValue("login")]
	if u == nil || u.kind == "Bot" {
		return &apiError{Status: 404, Message: rq.PathValue("login") + " is not a user"}
	}
	role := rq.repo.role(u)
	who := u.render(rq.s.url)
	who.Permissions, who.RoleName = renderRole(role), ptr(string(role))
	return rq.ok(map[string]any{"permission": role.legacy(), "role_name": string(role), "user": who})
}
