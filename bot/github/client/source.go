package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-github/v60/github"
	"golang.org/x/oauth2"
)

// A source hands out the token of one identity. It is an oauth2.TokenSource that
// minds a context and can be told that a token no longer works.
type source interface {
	token(context.Context) (*oauth2.Token, error)
	forget(*oauth2.Token) bool // whether asking again may help
}

// fixed is a token that never changes.
type fixed struct{ oauth2.TokenSource }

func (f fixed) token(context.Context) (*oauth2.Token, error) { return f.Token() }
func (fixed) forget(*oauth2.Token) bool                      { return false }

// errNoToken marks a request that was not sent because its token could not be had.
var errNoToken = errors.New("no installation token")

// refreshBefore is how long before its end a token is replaced: a git fetch that
// begins now must not outlive it.
const refreshBefore = 5 * time.Minute

// An installation makes tokens for one installation of the App, all its
// repositories and permissions or fewer.
type installation struct {
	hub  *GitHub
	id   int64
	want *github.InstallationTokenOptions

	asking chan struct{} // held by whoever fetches a token: a lock that minds contexts
	mu     sync.Mutex
	last   *oauth2.Token
}

func newInstallation(h *GitHub, id int64, want *github.InstallationTokenOptions) *installation {
	if want == nil {
		want = &github.InstallationTokenOptions{} // go-github sends nil as null, which GitHub's description does not allow
	}
	return &installation{hub: h, id: id, want: want, asking: make(chan struct{}, 1)}
}

func (in *installation) token(ctx context.Context) (*oauth2.Token, error) {
	if t := in.current(refreshBefore); t != nil {
		return t, nil
	}
	select {
	case in.asking <- struct{}{}:
		defer func() { <-in.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t := in.current(refreshBefore); t != nil {
		return t, nil
	}
	fresh, err := in.fetch(ctx)
	if err != nil {
		if t := in.current(time.Minute); t != nil {
			in.hub.opt.Log.Warn("an installation token could not be renewed; the old one still works", "installation", in.id, "err", err)
			return t, nil
		}
		return nil, fmt.Errorf("%w: %w", errNoToken, err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last = fresh
	return fresh, nil
}

func (in *installation) current(margin time.Duration) *oauth2.Token {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.last == nil || !in.hub.opt.Now().Add(margin).Before(in.last.Expiry) {
		return nil
	}
	return in.last
}

func (in *installation) forget(t *oauth2.Token) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.last != nil && t != nil && in.last.AccessToken == t.AccessToken {
		in.last = nil
	}
	return true
}

func (in *installation) fetch(ctx context.Context) (*oauth2.Token, error) {
	// A second token does no harm, and a lost one leaves nothing to look at.
	o := op{name: fmt.Sprintf("make a token for installation %d", in.id), repeatable: true}
	t, _, err := in.hub.solo.Apps.CreateInstallationToken(withCall(ctx, &call{op: o}), in.id, in.want)
	if err != nil {
		return nil, in.hub.explain(o, "", nil, err)
	}
	return &oauth2.Token{AccessToken: t.GetToken(), TokenType: "Bearer", Expiry: t.GetExpiresAt().Time}, nil
}
