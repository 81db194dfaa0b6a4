package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/runners/checkout"
)

// submodule finds the repository that a submodule is. The change names the commit, and the base branch the repository: whoever
// could name another would read, through the words of a compiler, what this installation may read and its author may not.
func (s *survey) submodule(ctx context.Context, m checkout.Submodule) (*checkout.Repo, error) {
	address, err := s.repo.SubmoduleURL(ctx, s.trusted, m.Path)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, checkout.NotHere{Submodule: m, Why: fmt.Sprintf("the .gitmodules of the base branch %s does not say where it comes from, and a change's own is not believed (merge it there first)", s.facts.Base)}
	}
	repo, err := s.planner.Mirrors.Submodule(ctx, s.facts.Repo, address, m.Commit)
	if refused, ok := errors.AsType[mirror.Unreadable](err); ok {
		return nil, checkout.NotHere{Submodule: m, Why: refused.Why}
	}
	return repo, err
}
