package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/google/go-github/v60/github"
)

// A Repository is a repository that the client can access.
type Repository struct {
	webhook.Repository
	Archived bool // can be read, and takes nothing
	Disabled bool // by GitHub
}

func repository(r *github.Repository) Repository {
	return Repository{Repository: webhook.Repository{FullName: r.GetFullName(), ID: r.GetID(), DefaultBranch: r.GetDefaultBranch()}, Archived: r.GetArchived(), Disabled: r.GetDisabled()}
}

// Installations returns the App's installations that are not suspended. A token has no such list,
// because it may see the whole of GitHub.
func (h *GitHub) Installations(ctx context.Context) ([]int64, error) {
	o := op{name: "list the App's installations"}
	if h.app == nil {
		return nil, &Error{Op: o.name, Err: ErrNeedsApp}
	}
	var ids []int64
	err := h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Installation, *github.Response, error) {
			return c.Apps.ListInstallations(ctx, &at)
		})
		for _, in := range all {
			if in.SuspendedAt == nil {
				ids = append(ids, in.GetID())
			}
		}
		return err
	})
	return ids, err
}

// WithoutIssues returns the accounts whose installation of the App may not write issues, sorted. It needs the
// App's key: a token does not tell its permissions.
func (h *GitHub) WithoutIssues(ctx context.Context) ([]string, error) {
	o := op{name: "list the App's installations"}
	if h.app == nil {
		return nil, &Error{Op: o.name, Err: ErrNeedsApp}
	}
	var accounts []string
	err := h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Installation, *github.Response, error) {
			return c.Apps.ListInstallations(ctx, &at)
		})
		for _, in := range all {
			if in.SuspendedAt == nil && in.GetPermissions().GetIssues() != "write" {
				accounts = append(accounts, in.GetAccount().GetLogin())
			}
		}
		return err
	})
	slices.Sort(accounts)
	return accounts, err
}

// Repositories returns the repositories of an installation. If the App was uninstalled in the
// meantime, there are none.
func (h *GitHub) Repositories(ctx context.Context, installation int64) ([]Repository, error) {
	var out []Repository
	o := op{name: fmt.Sprintf("list the repositories of installation %d", installation), permission: "Metadata: read"}
	err := h.alone(ctx, o, h.bot(installation), func(ctx context.Context, c *github.Client) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Repository, *github.Response, error) {
			list, answer, err := c.Apps.ListRepos(ctx, &at)
			if err != nil {
				return nil, answer, err
			}
			return list.Repositories, answer, nil
		})
		for _, r := range all {
			out = append(out, repository(r))
		}
		return err
	})
	if NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range out {
		h.insts[strings.ToLower(r.FullName)] = installation
	}
	return out, nil
}

// Number returns GitHub's number of the repository that has a name now.
func (h *GitHub) Number(ctx context.Context, repo string) (int64, error) {
	r, err := h.Repository(ctx, repo)
	return r.ID, err
}

// Reaches asks GitHub whether the App is installed on the repository of that number, or the token can read it, under a name that it
// has or had. It returns the name of today; "" if it is not there.
func (h *GitHub) Reaches(ctx context.Context, repo string, id int64) (string, error) {
	h.forget(repo, false)
	r, err := h.Repository(ctx, repo)
	if NotFound(err) || errors.Is(err, ErrUnavailable) || err == nil && r.ID != id {
		return "", nil
	}
	return r.FullName, err
}

// Repository reads one repository.
func (h *GitHub) Repository(ctx context.Context, repo string) (Repository, error) {
	var out Repository
	o := op{name: "read the repository", permission: "Metadata: read"}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		r, _, err := gh.Repositories.Get(ctx, owner, name)
		if err != nil {
			return err
		}
		out = repository(r)
		return nil
	})
	return out, err
}
