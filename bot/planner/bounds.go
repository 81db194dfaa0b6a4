package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A change is read before anybody has approved it, so whoever opens one decides what
// is read. checkout bounds how much that is, and the author is told what was refused: it is
// a problem of the change, and is not tried again before the next push.
//
// The time that reading takes is bounded as well, so that nothing hangs. But it depends on
// the machine and its disk at least as much as on the change, whose size is bounded already.
// So a change that was not read in time is not refused: it is read again later.

// maxKernels bounds how many bundles one change leads to.
const maxKernels = 100

// ErrSlow says that reading a change took too long and was ended. The caller tries again
// after a pause.
var ErrSlow = errors.New("reading the change took too long")

// within gives a look at a change its time.
func (p *Planner) within(ctx context.Context, look func(context.Context) error) error {
	limit := cmp.Or(p.Timeout, 2*time.Minute)
	within, cancel := context.WithTimeoutCause(ctx, limit, ErrSlow)
	defer cancel()
	err := look(within)
	if ctx.Err() == nil && errors.Is(context.Cause(within), ErrSlow) {
		// Whatever the look found, even a mistake of the change, may come from being ended.
		return fmt.Errorf("%w: more than %v (is the disk slow or the machine busy?); it ended with: %v", ErrSlow, limit, err)
	}
	return err
}

// refused notes what is not read of the change, and tells whether that was it.
func (s *survey) refused(err error) bool {
	var refused checkout.Refused
	if !errors.As(err, &refused) {
		return false
	}
	s.out.Kernels, s.out.Evidence = nil, nil
	s.out.Base = cmp.Or(s.out.Base, s.facts.BaseSHA, s.facts.Head)
	if !s.out.NoPolicy { // a base that asks nothing blocks nothing
		s.problem("", refused)
	}
	return true
}

// versus is the commit that a name stands for, if its code may be measured: a branch or a
// tag of the repository leads to it, or somebody has approved it as a head of this change. A mirror
// also holds the commits of forks that wait for their approval, and everybody knows their names.
// It is the commit itself from here on: a ref may move between a look and the next.
func (s *survey) versus(ctx context.Context, name string, approved []string) (string, error) {
	if name == "" || name == plan.Self {
		return name, nil
	}
	rev, err := s.repo.Resolve(ctx, name)
	if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
		return "", usage.Error{Err: err}
	} else if err != nil {
		return "", err
	}
	if slices.Contains(approved, rev) {
		return rev, nil
	}
	ours, err := s.repo.Reached(ctx, rev)
	if err == nil && !ours {
		err = usage.Errorf("%s (%.12s) is on no branch and under no tag of this repository, and its code is not measured here (name a branch, a tag, or a commit of one)", name, rev)
	}
	return rev, err
}

// ownBaselines holds a policy that the change itself brings to the same: the baseline
// that it names is code that would be measured.
func (s *survey) ownBaselines(ctx context.Context, policy *policy.Policy) error {
	for _, rule := range policy.Rules {
		gate := rule.Gates.Performance
		if gate == nil || gate.Baseline.Kind != "ref" && gate.Baseline.Kind != "tag" {
			continue
		}
		rev, err := s.repo.Resolve(ctx, gate.Baseline.Name)
		if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
			continue // told where a kernel is compared with it
		} else if err != nil {
			return err // a baseline that was not looked at must not be measured
		}
		ours, err := s.repo.Reached(ctx, rev)
		if err != nil {
			return err
		}
		if pulls := strings.Contains("/"+gate.Baseline.Name, "/pull/"); !ours || pulls {
			return usage.Errorf("rule %s: gates.performance.baseline: %s is on no branch and under no tag of this repository (name a branch or a tag)", rule.Name, gate.Baseline)
		}
	}
	return nil
}

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
