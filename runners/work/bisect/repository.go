package bisect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A repository plans its commits when the search asks for them.
type repository struct {
	opt     Options
	repo    *checkout.Repo
	good    string
	commits []checkout.Commit
	scratch string
}

// job plans the comparison of one commit with the good commit.
func (h *repository) job(ctx context.Context, commit int) (runners.Job, error) {
	to := filepath.Join(h.scratch, fmt.Sprintf("commit-%d", commit))
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return runners.Job{}, fmt.Errorf("making a folder for a commit: %w", err)
	}
	made, err := plan.New(ctx, plan.Options{
		Repo: h.repo, Base: h.good, Head: h.commits[commit].SHA, Scratch: to, Kernels: []string{h.opt.Kernel}, Policy: h.opt.Policy,
		Version: h.opt.Version, Started: h.opt.Now().UTC(), Fetcher: h.opt.Fetcher,
	})
	if err != nil {
		return runners.Job{}, usage.Error{Err: err}
	}
	keys, err := made.Kernels(ctx)
	if err != nil {
		return runners.Job{}, err
	}
	return made.Job(ctx, keys[0])
}

func (h *repository) side(ctx context.Context, commit int) (runners.Side, string, error) {
	return plan.SideOf(h.job(ctx, commit))
}
