package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// An actor is the caller of the API: an anonymous client, a user, an App or an installation.
type actor struct {
	user  *account
	app   *App
	token *token
	addr  string
}

func (a actor) anonymous() bool { return a.user == nil && a.app == nil }

func (a actor) inst() *Installation {
	if a.token == nil {
		return nil
	}
	return a.token.inst
}

// key identifies the rate limit bucket that counts the caller's requests.
func (a actor) key() string {
	switch {
	case a.inst() != nil:
		return "installation " + strconv.FormatInt(a.inst().id, 10)
	case a.app != nil:
		return "app " + strconv.FormatInt(a.app.id, 10)
	case a.user != nil:
		return "user " + strconv.FormatInt(a.user.id, 10)
	}
	return "address " + a.addr
}

func (a actor) describe() string {
	if a.user == nil {
		return a.key()
	}
	return strings.Replace(a.key(), " ", " ID ", 1)
}

func (s *Server) authenticate(r *http.Request) (actor, error) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	a := actor{addr: host}
	secret := ""
	if _, password, ok := r.BasicAuth(); ok {
		secret = password
	} else if kind, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		if !strings.EqualFold(kind, "bearer") && !strings.EqualFold(kind, "token") {
			return a, unauthorised("Bad credentials")
		}
		secret = strings.TrimSpace(rest)
	} else if r.Header.Get("Authorization") != "" {
		return a, unauthorised("Bad credentials")
	}
	switch {
	case secret == "":
		return a, nil
	case strings.Count(secret, ".") == 2:
		app, err := s.appOf(secret)
		a.app = app
		return a, err
	}
	t := s.tokens[secret]
	if t == nil || (t.inst != nil && !s.opt.Clock().Before(t.expires)) {
		return a, unauthorised("Bad credentials")
	}
	a.token, a.user = t, t.user
	if t.inst != nil {
		return a, t.inst.refused()
	}
	return a, nil
}

// sees reports whether the actor may know that the repository exists.
func (a actor) sees(r *Repo) bool {
	if !r.private {
		return true
	}
	if in := a.inst(); in != nil {
		return a.reaches(r)
	}
	return a.user != nil && r.role(a.user).atLeast(Read)
}

// reaches reports whether an installation's token covers the repository.
func (a actor) reaches(r *Repo) bool {
	return slices.Contains(a.inst().repos, r) && (a.token.repos == nil || slices.Contains(a.token.repos, r))
}

// A need is what a call requires of its caller: a role if the caller is a user, or one of several
// permissions if the caller is an App.
type need struct {
	role  Role
	level string   // read or write
	perms []string // any of them is enough
	app   bool     // only an App may call
}

func reads(role Role, perms ...string) need  { return need{role: role, level: "read", perms: perms} }
func writes(role Role, perms ...string) need { return need{role: role, level: "write", perms: perms} }

func (n need) check(a actor, r *Repo) error {
	switch {
	case !a.sees(r):
		return errNotFound()
	case r.owner.closed && !a.anonymous():
		return r.owner.closedTo()
	}
	if in := a.inst(); in != nil {
		public := n.level == "read" && !r.private
		if !public && !a.reaches(r) {
			return forbidden("Resource not accessible by integration")
		}
		for _, p := range n.perms {
			if has := a.token.perms[p]; has == "write" || has == n.level {
				return nil
			}
		}
		return forbidden("Resource not accessible by integration")
	}
	switch {
	case a.app != nil:
		return forbidden("Resource not accessible by integration")
	case a.anonymous() && n.level == "write":
		return unauthorised("Requires authentication")
	case a.anonymous():
		if n.role.atLeast(Triage) {
			return unauthorised("Requires authentication")
		}
		return nil
	case n.app, !r.role(a.user).atLeast(n.role):
		return forbidden("Resource not accessible by personal access token")
	}
	return nil
}

// needApp returns the calling App. It serves calls that accept only a JWT.
func needApp(rq *request) (*App, error) {
	if rq.actor.app == nil {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	return rq.actor.app, nil
}

// appOf verifies an App's JWT: the signature by the App's key and a lifetime of ten minutes at
// most. It compares the JWT's dates with the hub's clock and refuses in GitHub's words.
func (s *Server) appOf(text string) (*App, error) {
	var app *App
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) {
		issuer := fmt.Sprint(claims["iss"])
		if app = find(s.apps, func(a *App) bool { return itoa(a.id) == issuer }); app == nil {
			return nil, &apiError{Status: 404, Message: "Integration not found"}
		}
		return &app.opt.Key.PublicKey, nil
	})
	if unknown, ok := errors.AsType[*apiError](err); ok {
		return nil, unknown
	}
	if err != nil || app.refused {
		return nil, unauthorised("A JSON web token could not be decoded")
	}
	now := s.opt.Clock()
	issued, errIssued := claims.GetIssuedAt()
	expires, errExpires := claims.GetExpirationTime()
	switch {
	case errExpires != nil || expires == nil || !expires.After(now):
		return nil, unauthorised("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case errIssued != nil || issued == nil:
		return nil, unauthorised("Missing 'issued at' claim ('iat') in assertion")
	case issued.After(now.Add(time.Minute)):
		return nil, unauthorised("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case expires.After(now.Add(10*time.Minute + time.Second)):
		return nil, unauthorised("'Expiration time' claim ('exp') is too far in the future")
	}
	return app, nil
}
