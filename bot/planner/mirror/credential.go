package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// A Renewer is an Origin whose credentials may end early: when the App was installed again, when its permissions changed, or
// when somebody revoked a token.
type Renewer interface {
	// GitRefused says that the host refused a credential of GitCredential, which must not be used again.
	GitRefused(repo, token string)
}

// errCredential replaces git's message, which asks for the name of a user.
var errCredential = errors.New("the host refuses the bot's credential for git (check that the App is installed on the repository with Contents: read, or that the token is still valid)")

// withCredential calls fetch with a credential, and once more with a new one if the host refuses the first.
func (s *Store) withCredential(ctx context.Context, repo string, fetch func(env []string) error) error {
	for refused := ""; ; {
		user, token, err := s.Origin.GitCredential(ctx, repo)
		if err != nil {
			return &noCredential{err}
		}
		if token == refused && token != "" {
			return errCredential
		}
		err = fetch(header(user, token))
		if !unauthorized(err) {
			return err
		}
		renewer, ok := s.Origin.(Renewer)
		if !ok || token == "" || refused != "" {
			return errCredential
		}
		renewer.GitRefused(repo, token)
		refused = token
	}
}

// noCredential says that the origin gives no credential for a repository.
type noCredential struct{ error }

func (e *noCredential) Unwrap() error { return e.error }

// unauthorized reports whether the host refused the credential. Git then wants to ask a person, who is not there. Messages
// from the remote do not count.
func unauthorized(err error) bool {
	if err == nil {
		return false
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "remote:") && slices.ContainsFunc([]string{"could not read Username", "could not read Password", "Authentication failed", "error: 401"},
			func(sign string) bool { return strings.Contains(line, sign) }) {
			return true
		}
	}
	return false
}
