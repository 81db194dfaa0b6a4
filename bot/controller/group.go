package controller

import (
	"context"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
)

// findMembers records the pull requests of a merge group. An override applies only to the kernels
// that its own pull request touches.
func (k *Controller) findMembers(ctx context.Context, s *change.State) error {
	f, pulls, err := k.Planner.Members(ctx, k.GitHub, s.Facts, func(ctx context.Context, number int) (*change.State, error) {
		return k.pull(ctx, change.ID{Kind: change.Pull, Repo: s.ID.Repo, Number: number}, s.Facts.Repo)
	})
	if err != nil {
		return err
	}
	rules, err := k.Planner.GroupRules(ctx, f)
	if err != nil {
		return err
	}
	seen := change.Inherit(f, rules, pulls, k.Now().UTC().Format(time.RFC3339))
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if len(now.Facts.Members) > 0 || !now.Facts.Open {
			return nil, nil
		}
		return seen, nil
	})
	return err
}

// pull returns a pull request from the journal, or from GitHub.
func (k *Controller) pull(ctx context.Context, id change.ID, repo string) (*change.State, error) {
	s, err := k.states.load(ctx, id)
	if err != nil || s.Facts.Head != "" {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := k.GitHub.Pull(ctx, repo, id.Number)
	if err == nil {
		s.Facts = observed.OfPull(repo, "", p)
	}
	return s, err
}

// recordQueueBranch records the merge group of a branch that a plan found at the head of a pull request, if its webhook has not
// arrived yet. From then on the group takes part in the check of that commit.
func (k *Controller) recordQueueBranch(ctx context.Context, s *change.State, branch string) error {
	f, ok := observed.OfQueueBranch(s.Facts.Repo, branch, s.Facts.Head)
	if !ok {
		return nil
	}
	f.DefaultBranch = s.Facts.DefaultBranch
	return k.recordGroupFacts(ctx, change.ID{Kind: change.Group, Repo: s.ID.Repo, SHA: f.Head}, f)
}
