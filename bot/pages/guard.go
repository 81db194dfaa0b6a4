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

	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A Guard is an Access that decides who may read a repository. Everybody may read a repository that
// was declared public. Others may read it if they have the token, or if GitHub says that they can
// read the repository. All else is private, and a repository that the bot cannot reach any more is
// open to the token only. Numbers identify repositories and users, because GitHub gives a name that
// becomes free to whoever asks first. A Guard gives nobody the right to change anything: it vouches
// for a user only. It stores nothing from GitHub except the user, in a signed cookie.
//
// Key is required. Every other field may be empty, and then admits nobody.
type Guard struct {
	Key    []byte         // signs the cookies
	Public []string       // repositories that everybody may read: owner/name or owner/name@number
	Token  string         // bearers of this token may read everything
	OAuth  *oauth2.Config // GitHub's login
	Secure bool           // visitors use https

	// Login asks GitHub for the user of a token.
	Login func(ctx context.Context, token *oauth2.Token) (User, error)
	// CanRead asks GitHub whether a user can read a repository. It must go by their numbers.
	CanRead func(ctx context.Context, repo ledger.RepoName, user User) (bool, error)

	Log *slog.Logger
	Now func() time.Time

	once  sync.Once
	known *lru.Cache[question, answer]
	spent allowance
}

// A User is a user of GitHub. A login may belong to a different user tomorrow.
type User struct {
	ID    int64
	Login string
}

type question struct{ repo, user int64 }

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
	return Viewer{Login: s.Login, Member: ok, Proof: proof, MayRead: func(ctx context.Context, repo ledger.RepoName) bool {
		return all || g.IsPublic(repo) || repo.Removed == "" && s.ID != 0 && g.canRead(ctx, repo, User{s.ID, s.Login})
	}}
}

// IsPublic reports whether everybody may read a repository. A name in the configuration means the
// repository that had it when the bot first saw it.
func (g *Guard) IsPublic(repo ledger.RepoName) bool {
	return repo.Removed == "" && slices.ContainsFunc(g.Public, func(declared string) bool {
		name, number := SplitPublic(declared)
		if number != "" {
			return number == strconv.FormatInt(repo.ID, 10)
		}
		return slices.Contains(repo.Public, strings.ToLower(name))
	})
}

// SplitPublic splits an entry of the public repositories into the name and the number, which is
// empty if the entry has none.
func SplitPublic(entry string) (name, number string) {
	name, number, _ = strings.Cut(entry, "@")
	return name, number
}

// isToken compares digests in constant time, so that timing reveals nothing.
func (g *Guard) isToken(text string) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(g.Token))
	return g.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// canRead asks GitHub and caches the answer. An allowance bounds the requests. If GitHub does not
// answer, or must not be asked, the answer is no.
func (g *Guard) canRead(ctx context.Context, repo ledger.RepoName, user User) bool {
	if g.CanRead == nil || g.OAuth == nil {
		return false
	}
	g.once.Do(func() { g.known, _ = lru.New[question, answer](10_000) }) // the size is a positive constant
	q := question{repo.ID, user.ID}
	if a, ok := g.known.Get(q); ok && a.counts(g.now()) {
		return a.may
	}
	if may, log := g.spent.take(user.ID, g.now()); !may {
		if log {
			g.log().Warn("visitors of the pages have used up their share of GitHub's API: unknown visitors wait for the next hour", "repo", repo.Name, "login", user.Login)
		}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	may, err := g.CanRead(ctx, repo, user)
	if err != nil {
		g.log().Warn("GitHub does not say who may read a repository: access is denied", "repo", repo.Name, "login", user.Login, "err", err)
		return false
	}
	if may {
		g.spent.reads(user.ID, g.now())
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
func (g *Guard) Readable(repo ledger.RepoName) bool { return g.IsPublic(repo) || g.SignIn() != "" }

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
