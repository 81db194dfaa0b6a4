package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// Lag is how far GitHub's replicas are behind what people did. Webhooks do
// not wait for replicas, so whoever follows one meets them. People, who act by methods, see
// everything at once. The zero value has no lag.
type Lag struct {
	// Commits is how long checks and statuses do not know a commit that was pushed, or that
	// came with a fork's pull request: the API answers 404 "Not Found" for the first half of
	// that time, and then 422 "No commit found for SHA".
	Commits time.Duration
	// Pulls is how old the API's answers about pull requests are. One that is younger is 404,
	// with its conversation.
	Pulls time.Duration
	// Refs is how old the branches, the tags and the refs of pull requests are that git fetches.
	Refs time.Duration

	Clock func() time.Time // the hub's unless given
}

func (l Lag) now(s *Server) time.Time {
	if l.Clock != nil {
		return l.Clock()
	}
	return s.opt.Clock()
}

// SetLag changes the lag. What happened before without any lag is known to all replicas.
func (s *Server) SetLag(l Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = l
}

// arrived notes when a commit came to the repository.
func (r *Repo) arrived(sha string) {
	if _, known := r.arrivals[sha]; known || r.s.lag.Commits == 0 {
		return
	}
	if r.arrivals == nil {
		r.arrivals = map[string]time.Time{}
	}
	r.arrivals[sha] = r.s.lag.now(r.s)
}

// replicated is the API's error about a commit that its replicas do not know yet.
func (r *Repo) replicated(sha string) error {
	at, noted := r.arrivals[sha]
	age := r.s.lag.now(r.s).Sub(at)
	switch {
	case !noted || age >= r.s.lag.Commits:
		return nil
	case age < r.s.lag.Commits/2:
		return errNotFound()
	}
	return noCommit(sha)
}

func noCommit(sha string) *apiError {
	return &apiError{Status: 422, Message: "No commit found for SHA: " + sha}
}

// A pullForm is how the API showed a pull request from some time on.
type pullForm struct {
	at     time.Time
	form   *github.PullRequest
	opened bool // then: there was nothing before
}

// remember notes how the pull request looks after a change.
func (pr *PR) remember(opened bool) {
	if pr.repo.s.lag.Pulls > 0 {
		pr.forms = append(pr.forms, pullForm{pr.repo.s.lag.now(pr.repo.s), pr.render(), opened})
	}
}

// shown is the pull request as the API's replicas know it; nil before they do.
func (pr *PR) shown() *github.PullRequest {
	until := pr.repo.s.lag.now(pr.repo.s).Add(-pr.repo.s.lag.Pulls)
	for i, f := range slices.Backward(pr.forms) {
		late := f.at.After(until)
		switch {
		case late && f.opened:
			return nil
		case late && i > 0: // the one before may be known
		case i == len(pr.forms)-1 && !late:
			return pr.render() // with what changes without an event
		default:
			return f.form
		}
	}
	return pr.render()
}

// A refsAt is a repository's refs from some time on.
type refsAt struct {
	at   time.Time
	refs map[string]string
	dir  string // a repository with these refs and the objects of the real one; made when it is first asked for
}

// noteRefs notes the refs after a change.
func (r *Repo) noteRefs() error {
	if r.s.lag.Refs == 0 {
		return nil
	}
	refs, err := r.git.refs("refs/")
	if err != nil {
		return err
	}
	now := r.s.lag.now(r.s)
	if n := len(r.refsPast); n > 0 && maps.Equal(r.refsPast[n-1].refs, refs) {
		return nil
	}
	r.refsPast = append(r.refsPast, &refsAt{at: now, refs: refs})
	return nil
}

// replica is the repository that git reads from.
func (r *Repo) replica() (gitDir, error) {
	until := r.s.lag.now(r.s).Add(-r.s.lag.Refs)
	for i, past := range slices.Backward(r.refsPast) {
		if past.at.After(until) && i > 0 {
			continue
		}
		if i == len(r.refsPast)-1 {
			break
		}
		if past.dir == "" {
			past.dir = filepath.Join(r.s.opt.Dir, "lag", fmt.Sprintf("%d-%d.git", r.id, i))
			if err := r.git.shadow(past.dir, r.branch, past.refs); err != nil {
				return gitDir{}, err
			}
		}
		return gitDir{path: past.dir, ctx: r.git.ctx, known: &known{}}, nil
	}
	return r.git, nil
}

// shadow makes a repository in a folder that has these refs, and the objects of this one.
func (g gitDir) shadow(dir, branch string, refs map[string]string) error {
	to := gitDir{path: dir, ctx: g.ctx}
	if err := to.init(branch); err != nil {
		return err
	}
	packed := "# pack-refs with: sorted\n"
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		packed += refs[name] + " " + name + "\n"
	}
	objects, err := filepath.Abs(filepath.Join(g.path, "objects"))
	if err != nil {
		return fmt.Errorf("make a replica of %s: %w", g.path, err)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "packed-refs"), []byte(packed), 0o644),
		os.WriteFile(filepath.Join(dir, "objects/info/alternates"), []byte(objects+"\n"), 0o644))
}

// refs are those whose names have a prefix that ends with a slash, read as git keeps them: one file each, over those
// that it has packed into one. To ask git takes a hundred times longer, and they are asked for after every push.
func (g gitDir) refs(prefix string) (map[string]string, error) {
	refs := map[string]string{}
	err := filepath.WalkDir(filepath.Join(g.path, filepath.FromSlash(prefix)), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile, or packed
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(file, ".lock") {
			return err
		}
		sha, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(g.path, file) // it is below
		refs[filepath.ToSlash(name)] = strings.TrimSpace(string(sha))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the refs of %s: %w", g.path, err)
	}
	packed, err := os.ReadFile(filepath.Join(g.path, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the refs of %s: %w", g.path, err)
	}
	for line := range strings.Lines(string(packed)) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, newer := refs[name]; strings.HasPrefix(name, prefix) && !newer {
			refs[name] = sha
		}
	}
	return refs, nil
}
