package client

import (
	"context"
	"errors"
	"strings"

	"github.com/google/go-github/v60/github"
)

// GitCredential returns a user and a password for git over HTTPS. Git is a separate program, so an
// App's credential can only read this one repository. It is valid for at least five more minutes.
func (h *GitHub) GitCredential(ctx context.Context, repo string) (user, token string, err error) {
	o := op{name: "make a credential for git", permission: "Contents: read"}
	if _, _, err := splitRepo(repo); err != nil {
		return "", "", &Error{Op: o.name, Err: err}
	}
	src := h.solo.source
	for fresh := false; ; fresh = true {
		if h.app != nil {
			if src, err = h.reader(ctx, repo); err != nil {
				return "", "", h.explain(o, repo, nil, err)
			}
		}
		t, err := src.token(ctx)
		if err == nil {
			return "x-access-token", t.AccessToken, nil
		}
		h.forget(repo, true)
		if fresh || !errors.Is(err, errNoToken) {
			return "", "", h.explain(o, repo, nil, err)
		}
	}
}

// GitRefused drops a credential of GitCredential that git was refused with, so that the next call gets a new one. GitHub ends
// tokens early if somebody revokes them or changes the App's permissions, and git, unlike the API, gives no second chance.
func (h *GitHub) GitRefused(repo, token string) {
	h.mu.Lock()
	known := h.clones[strings.ToLower(repo)]
	h.mu.Unlock()
	in, ok := known.source.(*installation)
	if !ok {
		return
	}
	if t := in.current(0); t != nil && t.AccessToken != token {
		return // a different fetch has renewed it
	}
	h.forget(repo, true)
}

// A clone provides the credential for one repository. The repository that has the name now may be a
// different one than before, and the credential of that one does not open it.
type clone struct {
	source
	repo int64
}

func (h *GitHub) reader(ctx context.Context, repo string) (source, error) {
	number, err := h.Number(ctx, repo)
	if err != nil {
		return nil, err
	}
	id, err := h.installationOf(ctx, repo)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.ToLower(repo)
	if known, ok := h.clones[key]; ok && known.repo == number {
		return known, nil
	}
	read := "read"
	made := clone{newInstallation(h, id, &github.InstallationTokenOptions{RepositoryIDs: []int64{number}, Permissions: &github.InstallationPermissions{Contents: &read}}), number}
	h.clones[key] = made
	return made, nil
}
