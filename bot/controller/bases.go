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

// rulesOf has the open pull requests to a branch planned again where what it asks of
// kernels is not what they were planned with: a verdict that stands is one by the
// rules that stand. What was measured is not measured again for that, unless the new
// rules ask for more. The same happens where the branch is gone, or is back. It returns the
// branch's commit, "" where it is gone, and whether it was asked for.
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

// recordRules notes what a branch asks of kernels, where that is news for a pull request to it.
func (k *Controller) recordRules(ctx context.Context, id change.ID, branch, rules string) error {
	news := false
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		// One that has no plan yet gets it by the rules that stand then.
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

// noRules stands for what a branch asks that does not exist.
const noRules = "gone"

// branchGone asks GitHub where the pull requests to a branch go now that it is gone: GitHub
// may have closed them, or have changed their base, which it need not tell. The others are
// planned again, which finds that they have no base.
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

// basePatience is how often a base branch is looked for before people are told that it is
// gone: git may show a branch some time after GitHub does.
const basePatience = 5

// confirmBaseGone asks GitHub once more where a pull request goes whose base branch is gone. If
// GitHub says the same for some time, that is the state of the pull request until the branch
// is back or the base is changed.
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
