// Package mirror keeps bare copies of repositories to read from. It fetches;
// it checks nothing out, runs no hook, and never pushes.
package mirror

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	Dir     string
	Origin  Origin
	Timeout time.Duration // of one fetch; 5 minutes unless given

	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// Fetch brings a repository's branches and tags up to date, and the refs beside
// them that are named, such as refs/pull/7/head, under their own names.
func (s *Store) Fetch(ctx context.Context, repo string, refs ...string) (*checkout.Repo, error) {
	if !strict.IsRepository(repo) {
		return nil, fmt.Errorf("%q is no repository's name", repo)
	}
	lock := s.lock(repo)
	lock.Lock()
	defer lock.Unlock()
	timeout := s.Timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dir := filepath.Join(s.Dir, filepath.FromSlash(repo)+".git")
	if err := s.prepare(ctx, dir); err != nil {
		return nil, fmt.Errorf("mirroring %s: %w", repo, err)
	}
	specs := []string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}
	for _, ref := range refs {
		specs = append(specs, "+"+ref+":"+ref)
	}
	user, token, err := s.Origin.GitCredential(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("mirroring %s: %w", repo, err)
	}
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-auto-maintenance", "--no-write-fetch-head", s.Origin.CloneURL(repo)}, specs...)
	if err := git(ctx, dir, header(user, token), args...); err != nil {
		return nil, fmt.Errorf("fetching %s: %w", repo, err)
	}
	return checkout.OpenBare(dir), nil
}

func (s *Store) lock(repo string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]*sync.Mutex{}
	}
	if s.locks[repo] == nil {
		s.locks[repo] = &sync.Mutex{}
	}
	return s.locks[repo]
}

func (s *Store) prepare(ctx context.Context, dir string) error {
	// A HEAD is the last thing that git init writes.
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return git(ctx, filepath.Dir(dir), nil, "init", "--quiet", "--bare", "--initial-branch=kernelgate-none", dir)
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
// the proxy and the certificates that lead out of this host.
func git(ctx context.Context, dir string, env []string, args ...string) error {
	safe := []string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "protocol.http.allow=always",
		"-c", "http.followRedirects=false", "-c", "gc.auto=0", "-c", "credential.helper=",
	}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
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
