package pages

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"
)

// A Guard is an Access that decides who may read a repository. Everybody may read a repository that
// was declared public. Others may read it if they have the token, or if GitHub says that they can
// read the repository. All else is private. A Guard gives nobody the right to change anything: it
// vouches for a login only. It stores nothing from GitHub except the login, in a signed cookie.
//
// Key is required. Every other field may be empty, and then admits nobody.
type Guard struct {
	Key    []byte         // signs the cookies
	Public []string       // repositories that everybody may read
	Token  string         // bearers of this token may read everything
	OAuth  *oauth2.Config // GitHub's login
	Secure bool           // visitors use https

	// Login asks GitHub for the login of a token.
	Login func(ctx context.Context, token *oauth2.Token) (string, error)
	// CanRead asks GitHub whether a user can read a repository.
	CanRead func(ctx context.Context, repo, login string) (bool, error)

	Log *slog.Logger
	Now func() time.Time

	once  sync.Once
	known *lru.Cache[question, answer]
	spent allowance
}

type question struct{ repo, login string }

type answer struct {
	may bool
	at  time.Time
}

// remembered is how long a positive answer about read access is cached, refused how long a negative
// one is.
const (
	remembered = time.Minute
	refused    = 10 * time.Minute
)

func (a answer) counts(now time.Time) bool {
	if a.may {
		return now.Sub(a.at) < remembered
	}
	return now.Sub(a.at) < refused
}

// Viewer identifies the caller by a cookie or by a bearer token.
func (g *Guard) Viewer(r *http.Request) Viewer {
	s, ok := g.session(r)
	all := ok && s.Token != nil
	if bearer, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); given && g.isToken(bearer) {
		all = true
	}
	proof := ""
	if ok {
		proof = base64.RawURLEncoding.EncodeToString(g.sign("form", s.Login+"\x00"+strconv.FormatInt(s.Until, 10)))
	}
	return Viewer{Login: s.Login, Member: ok, Proof: proof, MayRead: func(ctx context.Context, repo string) bool {
		return all || g.IsPublic(repo) || s.Login != "" && g.canRead(ctx, repo, s.Login)
	}}
}

func (g *Guard) IsPublic(repo string) bool {
	return slices.ContainsFunc(g.Public, func(name string) bool { return strings.EqualFold(name, repo) })
}

// isToken compares digests in constant time, so that timing reveals nothing.
func (g *Guard) isToken(text string) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(g.Token))
	return g.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// canRead asks GitHub and caches the answer. An allowance bounds the requests. If GitHub does not
// answer, or must not be asked, the answer is no.
func (g *Guard) canRead(ctx context.Context, repo, login string) bool {
	if g.CanRead == nil || g.OAuth == nil {
		return false
	}
	g.once.Do(func() { g.known, _ = lru.New[question, answer](10_000) }) // the size is a positive constant
	q := question{strings.ToLower(repo), strings.ToLower(login)}
	if a, ok := g.known.Get(q); ok && a.counts(g.now()) {
		return a.may
	}
	if may, log := g.spent.take(q.login, g.now()); !may {
		if log {
			g.log().Warn("visitors of the pages have used up their share of GitHub's API: unknown visitors wait for the next hour", "repo", repo, "login", login)
		}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	may, err := g.CanRead(ctx, repo, login)
	if err != nil {
		g.log().Warn("GitHub does not say who may read a repository: access is denied", "repo", repo, "login", login, "err", err)
		return false
	}
	if may {
		g.spent.reads(q.login, g.now())
	}
	g.known.Add(q, answer{may, g.now()})
	return may
}

// SignIn returns the address of the login page, or an empty string if nobody can log in.
func (g *Guard) SignIn() string {
	if g.Token == "" && g.OAuth == nil {
		return ""
	}
	return "/login"
}

// Readable reports whether anybody can see the repository's pages.
func (g *Guard) Readable(repo string) bool { return g.IsPublic(repo) || g.SignIn() != "" }

func (g *Guard) now() time.Time {
	if g.Now == nil {
		return time.Now()
	}
	return g.Now()
}

func (g *Guard) log() *slog.Logger {
	if g.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Log
}
