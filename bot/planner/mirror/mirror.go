// Package mirror keeps bare copies of repositories for the planner to read. A Store fetches them on
// demand and shares fetches between concurrent callers. It limits the size of what pull requests
// bring. It checks nothing out, runs no hooks and never pushes.
package mirror

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// An Origin provides the URLs of repositories and the credentials for them.
type Origin interface {
	CloneURL(repo string) string
	// GitCredential returns a user and a password. An empty password means no authentication.
	GitCredential(ctx context.Context, repo string) (user, token string, err error)
}

// A Store is a folder of mirrors.
type Store struct {
	Dir    string
	Origin Origin
	Most   int64 // limit of a pull request's commits in bytes; defaults to 512 MiB
	// Number returns GitHub's number of the repository that has a name now. nil means that names are
	// never given to a different repository.
	Number func(ctx context.Context, repo string) (int64, error)

	mu     sync.Mutex
	copies map[string]*mirrored
}

// fetchTime is the time limit of one fetch.
const fetchTime = 5 * time.Minute

// A mirrored repository is fetched by one caller at a time. Callers that arrive in the meantime
// wait, and the next fetch serves all of them: a thousand pull requests need few fetches.
type mirrored struct {
	repo *checkout.Repo // guarded by Store.mu: see discardOther
	turn chan struct{}  // held during a fetch
	next *fetched       // shared by the callers that wait

	ahead ahead
}

// fetched is a fetch that is running or waiting.
type fetched struct {
	done  chan struct{}
	refs  []string
	users int
	err   error
}

// Fetch updates a repository's branches and tags, and the additional refs, such as
// refs/pull/7/head, under their own names.
func (s *Store) Fetch(ctx context.Context, repo string, refs ...string) (*checkout.Repo, error) {
	if !ident.IsRepository(repo) {
		return nil, fmt.Errorf("%q is no repository's name", repo)
	}
	m := s.mirrored(repo)
	s.mu.Lock()
	mine := m.next
	mine.refs, mine.users = append(mine.refs, refs...), mine.users+1
	s.mu.Unlock()
	late := func() error { return fmt.Errorf("fetching %s: %w", repo, context.Cause(ctx)) }
	select {
	case <-mine.done: // by a fetch that began after this call
	case m.turn <- struct{}{}:
		select {
		case <-mine.done:
		default:
			s.fetchNext(ctx, m, repo)
		}
		<-m.turn
	case <-ctx.Done():
		return nil, late()
	}
	if mine.err == nil || mine.users == 1 {
		return s.open(m), mine.err
	}
	// The shared fetch may have failed because of another caller: a missing ref, or a deadline.
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
		err := s.fetch(ctx, repo, refs)
		return s.open(m), err
	case <-ctx.Done():
		return nil, late()
	}
}

func (s *Store) mirrored(repo string) *mirrored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copies == nil {
		s.copies = map[string]*mirrored{}
	}
	m := s.copies[repo]
	if m == nil {
		m = &mirrored{repo: checkout.OpenBare(s.dir(repo)), turn: make(chan struct{}, 1), next: &fetched{done: make(chan struct{})}}
		s.copies[repo] = m
	}
	return m
}

// open returns a mirror for one use.
func (s *Store) open(m *mirrored) *checkout.Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.repo.Again()
}

func (s *Store) dir(repo string) string { return filepath.Join(s.Dir, filepath.FromSlash(repo)+".git") }

// fetchNext fetches for all callers that wait now. Later callers wait for the next one.
func (s *Store) fetchNext(ctx context.Context, m *mirrored, repo string) {
	s.mu.Lock()
	now := m.next
	m.next = &fetched{done: make(chan struct{})}
	s.mu.Unlock()
	defer close(now.done)
	now.err = s.fetchAlong(ctx, m, repo, now.refs)
}

func (s *Store) fetch(ctx context.Context, repo string, refs []string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	dir := s.dir(repo)
	if err := s.discardOther(ctx, repo, dir); err != nil {
		return fmt.Errorf("mirroring %s: %w", repo, err)
	}
	for again := false; ; again = true {
		if err := s.prepare(ctx, dir); err != nil {
			return fmt.Errorf("mirroring %s: %w", repo, err)
		}
		err := s.withCredential(ctx, repo, func(env []string) error { return s.bring(ctx, dir, repo, env, refs) })
		if err == nil {
			return nil
		}
		if again || ctx.Err() != nil || !damaged(err) {
			return fmt.Errorf("fetching %s: %w", repo, err)
		}
		// It is safe to delete, because everything in it comes from GitHub.
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("mirroring %s: removing a damaged mirror: %w", repo, err)
		}
	}
}

// damaged reports whether git could not use the local mirror, as after a power cut. Messages from
// the remote do not count.
func damaged(err error) bool {
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "remote:") {
			continue
		}
		for _, words := range []string{
			"not a git repository", "bad object", "does not point to a valid object", "is corrupt", "object file", "bad config", "broken ref", "unable to read sha1", "unable to read tree",
		} {
			if strings.Contains(line, words) {
				return true
			}
		}
	}
	return false
}

// bring fetches everything at once. If that exceeds the limit, it fetches the repository's own
// branches without a limit, and then the proposed refs, which anybody may have created, within the
// limit.
func (s *Store) bring(ctx context.Context, dir, repo string, env, refs []string) error {
	var proposed []string
	for _, ref := range refs {
		proposed = append(proposed, "+"+ref+":"+ref)
	}
	get := func(most int64, specs ...string) error { return s.get(ctx, dir, repo, most, env, specs...) }
	most := cmp.Or(s.Most, 512<<20)
	err := get(most, append(slices.Clone(ownRefs), proposed...)...)
	if err == nil || ctx.Err() != nil || !tooLarge(err) {
		return err
	}
	if err := get(0, ownRefs...); err != nil || len(proposed) == 0 {
		return err
	}
	if err = get(most, proposed...); tooLarge(err) {
		return checkout.Refused{Why: fmt.Sprintf("its commits are more than %d MiB beyond what the repository has (no more are fetched; leave large files out of its history)", most>>20)}
	}
	return err
}

// ownRefs are a repository's branches and tags.
var ownRefs = []string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}

// get fetches into a mirror. No file may grow beyond most bytes; 0 means no limit. Deleted branches
// are removed first, because git cannot store feature/x while feature exists.
func (s *Store) get(ctx context.Context, dir, repo string, most int64, env []string, specs ...string) error {
	args := append([]string{"fetch", "--quiet", "--prune", "--no-tags", "--no-auto-maintenance", "--no-write-fetch-head", s.Origin.CloneURL(repo)}, specs...)
	err := git(ctx, dir, most, env, args...)
	if err != nil {
		err = errors.Join(err, sweep(dir))
	}
	return err
}

// tooLarge reports whether git failed because a file exceeded the limit.
func tooLarge(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "died of signal 25") || strings.Contains(text, "File too large")
}

// sweep removes the temporary files of an aborted fetch. Git would keep them for weeks, and a
// failing fetch is repeated.
func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "tmp_*"))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func (s *Store) prepare(ctx context.Context, dir string) error {
	// git init writes HEAD last.
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return git(ctx, filepath.Dir(dir), 0, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch=kernelgate-none", dir)
}

// header returns the credential as git configuration in the environment. On the command line every
// user of the host could read it.
func header(user, token string) []string {
	if token == "" {
		return nil
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + token))
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic " + basic}
}

// git runs one command without the user's configuration, except for the proxy and the certificates
// that are needed to leave this host. No file that it writes may grow beyond most bytes; 0 means no
// limit.
func git(ctx context.Context, dir string, most int64, env []string, args ...string) error {
	safe := []string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "protocol.http.allow=always",
		"-c", "http.followRedirects=false", "-c", "gc.auto=0", "-c", "credential.helper=",
		"-c", "core.fsync=objects,reference", // an empty ref file after a power cut would break the repository
	}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
	if most > 0 { // ulimit counts blocks of 512 bytes
		words := append([]string{"-c", `ulimit -f "$0" && exec git "$@"`, strconv.FormatInt((most+511)/512, 10)}, append(safe, args...)...)
		cmd = exec.CommandContext(ctx, "sh", words...)
	}
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// At the deadline git and its children are killed. WaitDelay closes pipes that a process still
	// holds.
	cmd.WaitDelay = 5 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
		}
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = errors.New(text)
		}
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}
