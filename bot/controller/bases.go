package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// rulesOf plans the open pull requests to a branch again if the branch asks something different of
// kernels now: a verdict must be one by the current rules. Kernels are measured again only if the
// new rules ask for more. The same happens when the branch is gone or comes back. rulesOf returns
// the commit of the branch, "" if it is gone, and whether GitHub was asked for it.
func (k *Controller) rulesOf(ctx context.Context, repo, branch string, pulls []ledger.PullRow) (tip string, asked bool, err error) {
	pulls = slices.DeleteFunc(slices.Clone(pulls), func(p ledger.PullRow) bool { return p.Base != branch })
	if len(pulls) == 0 {
		return "", false, nil
	}
	rules, tip, err := k.Planner.Rules(ctx, repo, branch)
	if errors.Is(err, planner.ErrBaseGone) {
		return "", true, k.branchGone(ctx, repo, branch, pulls)
	}
	for _, p := range pulls {
		if err != nil {
			break
		}
		err = k.recordRules(ctx, p.ID, branch, rules)
	}
	return tip, true, err
}

// recordRules records what a branch asks of kernels, if that is new for a pull request to it.
func (k *Controller) recordRules(ctx context.Context, id change.ID, branch, rules string) error {
	news := false
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		// A pull request without a plan will be planned by the current rules.
		f, planned := now.Facts, now.Plan
		others := planned != nil && planned.Rules != rules && f.Rules != rules
		back := f.BaseGone && rules != noRules
		if news = f.Open && f.Base == branch && (back || others && !f.BaseGone); !news {
			return nil, nil
		}
		f.Rules, f.BaseGone = rules, false
		return change.Seen{Facts: f}, nil
	})
	if err == nil && news {
		k.enqueueChange(id)
	}
	return err
}

// noRules stands for the rules of a branch that does not exist.
const noRules = "gone"

// branchGone asks GitHub about the pull requests to a branch that is gone. GitHub may have closed
// them, or may have changed their base without a webhook. The remaining ones are planned again, and
// the plan finds that they have no base.
func (k *Controller) branchGone(ctx context.Context, repo, branch string, pulls []ledger.PullRow) error {
	for _, p := range pulls {
		after, err := k.refresh(ctx, p.ID, repo)
		if client.NotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !after.Facts.Open || after.Facts.Base != branch {
			k.enqueueChange(p.ID)
			continue
		}
		if err := k.recordRules(ctx, p.ID, branch, noRules); err != nil {
			return err
		}
	}
	return nil
}

// basePatience is how often the bot looks for a base branch before it says that the branch is gone:
// git may show a branch later than GitHub's API does.
const basePatience = 5

// confirmBaseGone asks GitHub again for the base of a pull request whose base branch is gone. If
// the answer stays the same for some time, the bot says so until the branch is back or the base
// changes.
func (k *Controller) confirmBaseGone(ctx context.Context, s *change.State, cause error) error {
	after, err := k.refresh(ctx, s.ID, s.Facts.Repo)
	if client.NotFound(err) {
		return cause
	}
	if err != nil {
		return err
	}
	if !after.Facts.Open || after.Facts.Base != s.Facts.Base {
		k.planFailures.Remove(s.ID)
		return nil
	}
	n, _ := k.planFailures.Get(s.ID)
	if n++; n < basePatience {
		k.planFailures.Add(s.ID, n)
		return cause
	}
	k.planFailures.Remove(s.ID)
	k.Log.Info("the base branch of a pull request is gone", "change", s.ID.String(), "repo", s.Facts.Repo, "base", s.Facts.Base)
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		f := now.Facts
		if !f.Open || f.Base != s.Facts.Base {
			return nil, nil
		}
		f.BaseGone = true
		return change.Seen{Facts: f}, nil
	})
	return err
}
