package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// A Status is a commit status, which stands for a check run where there is no App.
type Status struct {
	Context     string
	State       string // error, failure, pending, success
	Description string // cut to 140 characters
	TargetURL   string
}

// maxStatusText is the length of a status's description in characters.
const maxStatusText = 140

var statusStates = []string{"error", "failure", "pending", "success"}

// SetStatus sets the status of a context on a commit.
func (h *GitHub) SetStatus(ctx context.Context, repo, sha string, s Status) error {
	// The newest status of a context counts, so saying it twice says it once.
	o := op{name: "set the status of " + sha, permission: "Commit statuses: read and write", repeatable: true}
	err := validSHA(sha)
	switch {
	case err != nil:
	case s.Context == "":
		err = fmt.Errorf("a status needs a context")
	case !slices.Contains(statusStates, s.State):
		err = fmt.Errorf("%q is not a status; use one of %s", s.State, strings.Join(statusStates, ", "))
	default:
		err = webAddress(s.TargetURL)
	}
	if err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		text := cut(s.Description, maxStatusText)
		_, _, err := gh.Repositories.CreateStatus(ctx, owner, name, sha, &github.RepoStatus{Context: &s.Context, State: &s.State,
			Description: orNil(text), TargetURL: orNil(s.TargetURL)})
		return err
	})
}

// cut shortens a text to so many characters, the last of which tells that it did.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}
