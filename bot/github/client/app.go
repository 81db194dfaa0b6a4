package client

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v60/github"
	"golang.org/x/oauth2"
)

// An app authenticates as the App with its private key. GitHub accepts a JWT whose issue time is
// not in the future and which expires within ten minutes, by GitHub's clock. The margin of one
// minute on each side tolerates a wrong local clock.
type app struct {
	id  int64
	key *rsa.PrivateKey
	now func() time.Time

	mu   sync.Mutex
	last *oauth2.Token
}

const (
	jwtSkew = time.Minute
	jwtLife = 9 * time.Minute
)

func newApp(id int64, keyPEM []byte, now func() time.Time) (*app, error) {
	if id <= 0 {
		return nil, fmt.Errorf("%d is not an App's id; take it from the App's settings", id)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the private key of App %d: %w; download a new one in the App's settings", id, err)
	}
	return &app{id: id, key: key, now: now}, nil
}

func (a *app) token(context.Context) (*oauth2.Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.last != nil && now.Add(jwtLife/2).Before(a.last.Expiry) {
		return a.last, nil
	}
	end := now.Add(jwtLife)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: strconv.FormatInt(a.id, 10), IssuedAt: jwt.NewNumericDate(now.Add(-jwtSkew)), ExpiresAt: jwt.NewNumericDate(end),
	}).SignedString(a.key)
	if err != nil {
		return nil, fmt.Errorf("sign as App %d: %w", a.id, err)
	}
	a.last = &oauth2.Token{AccessToken: signed, TokenType: "Bearer", Expiry: end}
	return a.last, nil
}

func (a *app) forget(*oauth2.Token) bool { return false }

// Ours reports whether an App is the one that this client acts as. It is false for every App if the
// client uses a token.
func (h *GitHub) Ours(appID int64) bool { return h.app != nil && h.app.id == appID }

// ListsAll reports whether GitHub lists every repository that this client serves. A token may serve
// others.
func (h *GitHub) ListsAll() bool { return h.app != nil }

// Account names the account whose rate limits apply in a repository: the repository's owner, whose
// installation of the App is unique, or an empty string for the token.
func (h *GitHub) Account(repo string) string {
	if h.app == nil {
		return ""
	}
	owner, _, _ := strings.Cut(strings.ToLower(repo), "/")
	return owner
}

func (h *GitHub) appLogin(ctx context.Context) (string, error) {
	me := ""
	err := h.alone(ctx, op{name: "ask GitHub which App this is"}, h.solo, func(ctx context.Context, c *github.Client) error {
		self, _, err := c.Apps.Get(ctx, "")
		me = self.GetSlug() + "[bot]"
		return err
	})
	return me, err
}

// clientOf returns the client for a repository: the token's, or that of the installation there.
func (h *GitHub) clientOf(ctx context.Context, repo string) (*client, error) {
	if h.app == nil {
		return h.solo, nil
	}
	id, err := h.installationOf(ctx, repo)
	if err != nil {
		return nil, err
	}
	return h.bot(id), nil
}

// bot returns the client of an installation.
func (h *GitHub) bot(id int64) *client {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.bots[id]
	if c == nil {
		c = h.client(fmt.Sprintf("installation %d", id), newInstallation(h, id, nil), true)
		h.bots[id] = c
	}
	return c
}

func (h *GitHub) installationOf(ctx context.Context, repo string) (int64, error) {
	key := strings.ToLower(repo)
	h.mu.Lock()
	id, ok := h.insts[key]
	h.mu.Unlock()
	if ok {
		return id, nil
	}
	owner, name, err := splitRepo(repo)
	if err != nil {
		return 0, err
	}
	o := op{name: "find the App's installation"}
	record := &call{op: o}
	found, _, err := h.solo.Apps.FindRepositoryInstallation(withCall(ctx, record), owner, name)
	if err != nil {
		err = h.explain(o, repo, record, err)
		if NotFound(err) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return 0, err
	}
	if found.SuspendedAt != nil {
		return 0, &Error{Op: o.name, Repo: repo, Hint: "the account's owner can resume the installation", Err: ErrUnavailable}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.insts[key] = found.GetID()
	return found.GetID(), nil
}

// forget drops the cached installation of a repository. With tokens set it also drops the
// repository's token for git, because that token no longer works.
func (h *GitHub) forget(repo string, tokens bool) {
	key := strings.ToLower(repo)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.insts, key)
	if tokens {
		delete(h.clones, key)
	}
}

// A source provides the token of one identity. Unlike an oauth2.TokenSource it takes a context, and
// it can be told that a token no longer works.
type source interface {
	token(context.Context) (*oauth2.Token, error)
	forget(*oauth2.Token) bool // reports whether a new request for a token may help
}

// fixed is a token that never changes.
type fixed struct{ oauth2.TokenSource }

func (f fixed) token(context.Context) (*oauth2.Token, error) { return f.Token() }
func (fixed) forget(*oauth2.Token) bool                      { return false }

// errNoToken marks a request that was not sent, because no token was available for it.
var errNoToken = errors.New("no installation token")

// refreshBefore is the remaining life at which a token is replaced. A git fetch that starts now
// must end before its token expires.
const refreshBefore = 5 * time.Minute

// tokenLife is how long GitHub accepts an installation token.
const tokenLife = time.Hour

// An installation provides tokens for one installation of the App. The tokens cover all its
// repositories and permissions, or the subset in want.
//
// ghinstallation v2.19 can restrict a token too, but not the rest: it cannot be told that GitHub
// ended a token early (forget), renews a minute before the end and fails if that fails, takes the end
// from GitHub's clock and now from time.Now, lets callers wait on a mutex without their context, sends
// the token to every host, and brings a second go-github and a second jwt.
type installation struct {
	hub  *GitHub
	id   int64
	want *github.InstallationTokenOptions

	asking chan struct{} // a lock that respects contexts, held while a token is requested
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
	// This is repeatable: a second token does no harm, and a lost one leaves nothing behind.
	o := op{name: fmt.Sprintf("make a token for installation %d", in.id), repeatable: true}
	t, _, err := in.hub.solo.Apps.CreateInstallationToken(withCall(ctx, &call{op: o}), in.id, in.want)
	if err != nil {
		return nil, in.hub.explain(o, "", nil, err)
	}
	// GitHub's clock wrote the end, and the local one may be behind: count the life from now.
	now := in.hub.opt.Now()
	life := min(t.GetExpiresAt().Sub(now), tokenLife)
	return &oauth2.Token{AccessToken: t.GetToken(), TokenType: "Bearer", Expiry: now.Add(life)}, nil
}
