package client

import (
	"context"

	"github.com/google/go-github/v60/github"
)

// An ExistingStatus is a commit status at GitHub.
type ExistingStatus struct {
	Status
	ID int64
}

// ListStatuses returns the statuses of a context on a commit, newest first. Only the newest counts
// at GitHub; the others are history.
func (h *GitHub) ListStatuses(ctx context.Context, repo, sha, statusContext string) ([]ExistingStatus, error) {
	o := op{name: "list the statuses of " + sha, permission: "Commit statuses: read"}
	if err := validSHA(sha); err != nil {
		return nil, &Error{Op: o.name, Repo: repo, Err: err}
	}
	var out []ExistingStatus
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.RepoStatus, *github.Response, error) {
			return gh.Repositories.ListStatuses(ctx, owner, name, sha, &at)
		})
		for _, s := range all {
			if s.GetContext() == statusContext {
				out = append(out, ExistingStatus{ID: s.GetID(), Status: Status{Context: s.GetContext(), State: s.GetState(), Description: s.GetDescription(), TargetURL: s.GetTargetURL()}})
			}
		}
		return err
	})
	return out, err
}
