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

// Lag is the delay of GitHub's replicas. Webhooks do not wait for replicas, so a client that reacts
// to a webhook may read old data. Users, who act by Go methods, see every change at once. The zero
// value has no lag.
type Lag struct {
	// Commits is the time after a push, or after a pull request from a fork, in which checks and
	// statuses do not know the new commit. The API answers 404 "Not Found" in the first half of
	// that time and 422 "No commit found for SHA" in the second half.
	Commits time.Duration
	// Pulls is the age of the API's answers about pull requests. The API answers 404 for a younger
	// pull request and for its conversation.
	Pulls time.Duration
	// Refs is the age of the branches, tags and pull request refs that git fetches.
	Refs time.Duration

	Clock func() time.Time // defaults to the hub's clock
}

func (l Lag) now(s *Server) time.Time {
	if l.Clock != nil {
		return l.Clock()
	}
	return s.opt.Clock()
}

// SetLag changes the lag. Changes made earlier, while there was no lag, are known to all replicas.
func (s *Server) SetLag(l Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = l
}

// arrived records when a commit came to the repository.
func (r *Repo) arrived(sha string) {
	if _, known := r.arrivals[sha]; known || r.s.lag.Commits == 0 {
		return
	}
	if r.arrivals == nil {
		r.arrivals = map[string]time.Time{}
	}
	r.arrivals[sha] = r.s.lag.now(r.s)
}

// replicated returns the API's error if its replicas do not know the commit yet.
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

// A pullForm is a pull request as the API showed it from some time on.
type pullForm struct {
	at     time.Time
	form   *github.PullRequest
	opened bool // the pull request did not exist before
}

// remember records how the pull request looks after a change.
func (pr *PR) remember(opened bool) {
	if pr.repo.s.lag.Pulls > 0 {
		pr.forms = append(pr.forms, pullForm{pr.repo.s.lag.now(pr.repo.s), pr.render(), opened})
	}
}

// shown returns the pull request as the API's replicas know it, or nil if they do not know it yet.
func (pr *PR) shown() *github.PullRequest {
	until := pr.repo.s.lag.now(pr.repo.s).Add(-pr.repo.s.lag.Pulls)
	for i, f := range slices.Backward(pr.forms) {
		late := f.at.After(until)
		switch {
		case late && f.opened:
			return nil
		case late && i > 0: // the form before it may be known
		case i == len(pr.forms)-1 && !late:
			return pr.render() // includes changes without an event
		default:
			return f.form
		}
	}
	return pr.render()
}

// A refsAt holds a repository's refs from some time on.
type refsAt struct {
	at   time.Time
	refs map[string]string
	dir  string // a repository with these refs and the objects of the original; created on first use
}

// noteRefs records the refs after a change.
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

// replica returns the repository that git clients read from.
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

// shadow creates a repository in dir that has these refs and shares the objects of g.
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

// refs returns the refs whose names start with prefix, which ends with a slash. It reads git's
// files: one file per ref, which takes precedence over the file of packed refs. Asking git takes a
// hundred times longer, and the hub reads the refs after every push.
func (g gitDir) refs(prefix string) (map[string]string, error) {
	refs := map[string]string{}
	err := filepath.WalkDir(filepath.Join(g.path, filepath.FromSlash(prefix)), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // deleted or packed in the meantime
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(file, ".lock") {
			return err
		}
		sha, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(g.path, file) // file is below g.path, so Rel cannot fail
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
