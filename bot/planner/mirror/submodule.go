package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// Unreadable says why a submodule is not fetched. A retry does not help.
type Unreadable struct{ Why string }

func (u Unreadable) Error() string { return u.Why }

// Submodule returns a mirror of another repository on the same host that contains a commit of one
// of its branches or tags. address is the URL from the superproject's configuration. A mirror that
// already has the commit is not fetched again. A mirror that would exceed the limit for pull
// requests is not kept.
func (s *Store) Submodule(ctx context.Context, of, address, commit string) (*checkout.Repo, error) {
	repo, err := s.named(of, address)
	if err != nil {
		return nil, err
	}
	m := s.mirrored(repo)
	if has(ctx, s.open(m), commit) {
		return s.open(m), nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("fetching %s: %w", repo, context.Cause(ctx))
	}
	if !has(ctx, s.open(m), commit) { // another caller may have fetched it in the meantime
		if err := s.fetchBounded(ctx, repo); err != nil {
			return nil, err
		}
	}
	if !has(ctx, s.open(m), commit) {
		return nil, Unreadable{fmt.Sprintf("no branch and no tag of %s has the commit %.12s (push it there)", repo, commit)}
	}
	return s.open(m), nil
}

// has reports whether a commit is reachable from a branch or a tag. The objects in a mirror alone
// prove nothing, because they include what strangers have proposed.
func has(ctx context.Context, r *checkout.Repo, commit string) bool {
	reached, err := r.Reached(ctx, commit)
	return err == nil && reached
}

// fetchBounded fetches the branches and tags of a repository, within the size limit.
func (s *Store) fetchBounded(ctx context.Context, repo string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	dir, most := s.dir(repo), cmp.Or(s.Most, 512<<20)
	if err := s.prepare(ctx, dir); err != nil {
		return fmt.Errorf("mirroring %s: %w", repo, err)
	}
	get := func(env []string) error { return s.get(ctx, dir, repo, most, env, ownRefs...) }
	err := s.withCredential(ctx, repo, get)
	var denied *noCredential
	if errors.As(err, &denied) {
		err = get(nil) // the repository may be public
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("fetching %s: %w", repo, err)
	case tooLarge(err):
		return Unreadable{fmt.Sprintf("%s has more than %d MiB, and no more are fetched (name its headers as a set that the runner has: include: [<name>])", repo, most>>20)}
	case denied != nil || errors.Is(err, errCredential) || refusedByHost(err):
		return Unreadable{fmt.Sprintf("%s is not there, or not to be read from here (install the App on it, or name its headers as a set that the runner has: include: [<name>])", repo)}
	}
	return fmt.Errorf("fetching %s: %w", repo, err)
}

// refusedByHost distinguishes a hidden repository from a host that does not answer.
func refusedByHost(err error) bool {
	text := err.Error()
	signs := []string{"not found", "could not read Username", "error: 403", "error: 404"}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}

// named returns the repository on this host that a submodule's URL means. It resolves relative URLs
// as git does, and ignores the protocol.
func (s *Store) named(of, address string) (string, error) {
	own, err := url.Parse(s.Origin.CloneURL(of))
	if err != nil {
		return "", fmt.Errorf("the address of %s: %w", of, err)
	}
	above := strings.TrimSuffix(own.Path, of+".git") // the path prefix of the host's repositories
	host, way := "", ""
	switch at := strings.Index(address, "://"); {
	case strings.HasPrefix(address, "./"), strings.HasPrefix(address, "../"):
		host, way = own.Hostname(), path.Join(own.Path, address)
	case at > 0:
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "git" {
			return "", Unreadable{fmt.Sprintf("%q is no address that is fetched from (write https://%s/OWNER/NAME, or ../NAME)", shown(address), own.Host)}
		}
		host, way = u.Hostname(), u.Path
		if u.Scheme == own.Scheme && u.Port() != own.Port() {
			host = u.Host
		}
		if u.Scheme == "ssh" || u.Scheme == "git" {
			way = above + strings.TrimPrefix(way, "/")
		}
	default: // git@host:owner/name.git
		from, rest, _ := strings.Cut(address, ":")
		_, host, _ = strings.Cut(from, "@")
		way = above + strings.TrimPrefix(rest, "/")
	}
	if !strings.EqualFold(host, own.Hostname()) {
		return "", Unreadable{fmt.Sprintf("it comes from %q, and only repositories of %s are fetched (name its headers as a set that the runner has: include: [<name>])", shown(address), own.Host)}
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(way, "/"), ".git"), above)
	if !ok || !ident.IsRepository(name) {
		return "", Unreadable{fmt.Sprintf("%q is no repository of %s (write ../NAME, or https://%s/OWNER/NAME)", shown(address), own.Host, own.Host)}
	}
	return name, nil
}

// shown returns a URL for an error message. It truncates the URL, because a stranger chose it.
func shown(address string) string {
	const most = 200
	if len(address) > most {
		address = address[:most] + "…"
	}
	return strings.ToValidUTF8(address, "\uFFFD")
}
