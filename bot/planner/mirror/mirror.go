// Package mirror keeps bare copies of repositories to read from. It fetches;
// it checks nothing out, runs no hook, and never pushes.
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

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/checkout"
)

// An Origin says where repositories come from, and how to be let in.
type Origin interface {
	CloneURL(repo string) string
	// GitCredential is a user and a password; an empty password asks for nothing.
	GitCredential(ctx context.Context, repo string) (user, token string, err error)
}

// A Store is a folder of mirrors.
type Store struct {
	Dir    string
	Origin Origin
	Most   int64 // bytes that the commits of a pull request may have; 512 MiB unless given

	mu     sync.Mutex
	copies map[string]*mirrored
}

// fetchTime is how long one fetch may take.
const fetchTime = 5 * time.Minute

// A mirrored repository is fetched by one at a time. Those who come meanwhile wait, and
// the next fetch is for all of them: a thousand pull requests are a few fetches.
type mirrored struct {
	repo *checkout.Repo
	turn chan struct{} // held by whoever fetches
	next *fetched      // for those who wait

	ahead ahead
}

// fetched is a fetch that is under way or to come.
type fetched struct {
	done  chan struct{}
	refs  []string
	users int
	err   error
}

// Fetch brings a repository's branches and tags up to date, and the refs beside
// them that are named, such as refs/pull/7/head, under their own names.
func (s *Store) Fetch(ctx context.Context, repo string, refs ...string) (*checkout.Repo, error) {
	if !strict.IsRepository(repo) {
		return nil, fmt.Errorf("%q is no repository's name", repo)
	}
	m := s.mirrored(repo)
	s.mu.Lock()
	mine := m.next
	mine.refs, mine.users = append(mine.refs, refs...), mine.users+1
	s.mu.Unlock()
	late := func() error { return fmt.Errorf("fetching %s: %w", repo, context.Cause(ctx)) }
	select {
	case <-mine.done: // by somebody who began after this was asked
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
		return m.repo.Again(), mine.err
	}
	// It may have failed for another's sake: a ref that is gone, or patience at its end.
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
		return m.repo.Again(), s.fetch(ctx, repo, refs)
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

func (s *Store) dir(repo string) string { return filepath.Join(s.Dir, filepath.FromSlash(repo)+".git") }

// fetchNext fetches for all who wait by now; who comes later waits for the one after.
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
	user, token, err := s.Origin.GitCredential(ctx, repo)
	if err != nil {
		return fmt.Errorf("mirroring %s: %w", repo, err)
	}
	for again := false; ; again = true {
		if err := s.prepare(ctx, dir); err != nil {
			return fmt.Errorf("mirroring %s: %w", repo, err)
		}
		err := s.bring(ctx, dir, repo, header(user, token), refs)
		if err == nil {
			return nil
		}
		if again || ctx.Err() != nil || !damaged(err) {
			return fmt.Errorf("fetching %s: %w", repo, err)
		}
		// Everything in it comes from GitHub.
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("mirroring %s: removing a damaged mirror: %w", repo, err)
		}
	}
}

// damaged tells whether git could not use the mirror itself, as after a power cut. What the other side says does not count.
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

// bring fetches all at once or, where that is much, the repository's own branches as
// large as they are, and what anybody may have proposed within a limit.
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

// ownRefs is a repository's branches and tags.
var ownRefs = []string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}

// get fetches into a mirror. No file of it becomes larger than most; 0 sets no limit. Branches
// that are gone are removed first: git cannot store feature/x while it has feature.
func (s *Store) get(ctx context.Context, dir, repo string, most int64, env []string, specs ...string) error {
	args := append([]string{"fetch", "--quiet", "--prune", "--no-tags", "--no-auto-maintenance", "--no-write-fetch-head", s.Origin.CloneURL(repo)}, specs...)
	err := git(ctx, dir, most, env, args...)
	if err != nil {
		err = errors.Join(err, sweep(dir))
	}
	return err
}

// tooLarge tells whether git failed for a file that became larger than it may.
func tooLarge(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "died of signal 25") || strings.Contains(text, "File too large")
}

// sweep removes what a fetch that was ended has left behind: git keeps it for weeks,
// and a fetch that fails comes again.
func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "tmp_*"))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func (s *Store) prepare(ctx context.Context, dir string) error {
	// A HEAD is the last thing that git init writes.
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return git(ctx, filepath.Dir(dir), 0, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch=kernelgate-none", dir)
}

// header is the credential as configuration in the environment: on the command
// line every user of the host could read it.
func header(user, token string) []string {
	if token == "" {
		return nil
	}
	basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + token))
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic " + basic}
}

// git runs one command with nothing of the user's own configuration, except for
// the proxy and the certificates that lead out of this host. No file that it writes becomes
// larger than most; 0 sets no limit.
func git(ctx context.Context, dir string, most int64, env []string, args ...string) error {
	safe := []string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "protocol.http.allow=always",
		"-c", "http.followRedirects=false", "-c", "gc.auto=0", "-c", "credential.helper=",
		"-c", "core.fsync=objects,reference", // a ref whose file is empty after a power cut would stop the repository
	}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
	if most > 0 { // in the shell's blocks of 512 bytes
		words := append([]string{"-c", `ulimit -f "$0" && exec git "$@"`, strconv.FormatInt((most+511)/512, 10)}, append(safe, args...)...)
		cmd = exec.CommandContext(ctx, "sh", words...)
	}
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// Killed at the deadline with its children; whatever holds the pipes then is cut off.
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
