package client

import (
	"context"
	"strings"

	"github.com/google/go-github/v60/github"
)

// A Repository is one that the client reaches.
type Repository struct {
	FullName      string
	ID            int64
	DefaultBranch string
	Private       bool
	Installation  int64
}

// Repositories are all that the App is installed on. A token has no such list:
// it may see the whole of GitHub.
func (h *GitHub) Repositories(ctx context.Context) ([]Repository, error) {
	o := op{name: "list the App's installations"}
	if h.app == nil {
		return nil, &Error{Op: o.name, Err: ErrNeedsApp}
	}
	var insts []*github.Installation
	err := h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) (err error) {
		insts, err = pages(func(at github.ListOptions) ([]*github.Installation, *github.Response, error) {
			return c.Apps.ListInstallations(ctx, &at)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Repository
	for _, in := range insts {
		if in.SuspendedAt != nil {
			continue
		}
		some, err := h.repositoriesOf(ctx, in.GetID())
		if NotFound(err) {
			continue // uninstalled meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range out {
		h.insts[strings.ToLower(r.FullName)] = r.Installation
	}
	return out, nil
}

func (h *GitHub) repositoriesOf(ctx context.Context, inst int64) ([]Repository, error) {
	var out []Repository
	o := op{name: "list the repositories of an installation", permission: "Metadata: read"}
	err := h.alone(ctx, o, h.bot(inst), func(ctx context.Context, c *github.Client) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Repository, *github.Response, error) {
			list, answer, err := c.Apps.ListRepos(ctx, &at)
			if err != nil {
				return nil, answer, err
			}
			return list.Repositories, answer, nil
		})
		for _, r := range all {
			out = append(out, Repository{FullName: r.GetFullName(), ID: r.GetID(), DefaultBranch: r.GetDefaultBranch(), Private: r.GetPrivate(), Installation: inst})
		}
		return err
	})
	return out, err
}

// Repository reads one. With a token its Installation is 0.
func (h *GitHub) Repository(ctx context.Context, repo string) (Repository, error) {
	var out Repository
	o := op{name: "read the repository", permission: "Metadata: read"}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		r, _, err := gh.Repositories.Get(ctx, owner, name)
		if err != nil {
			return err
		}
		out = Repository{FullName: r.GetFullName(), ID: r.GetID(), DefaultBranch: r.GetDefaultBranch(), Private: r.GetPrivate()}
		return nil
	})
	if err == nil && h.app != nil {
		out.Installation, err = h.installationOf(ctx, repo)
	}
	return out, err
}
