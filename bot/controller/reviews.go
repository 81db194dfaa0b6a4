package controller

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A code owner's review lets a pull request change the rules. GitHub has the reviews, and
// they are read where one was heard of, where a plan finds such a change, and when
// everything is looked through: so one that was dismissed while nobody listened is found.

// markUnread has the reviews of a pull request read, if it loosens the rules.
func (k *Controller) markUnread(s *change.State) {
	if !loosens(s) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unread[s.ID] = true
}

func loosens(s *change.State) bool {
	plan := s.Current()
	return s.ID.Kind == change.Pull && s.Facts.Open && plan != nil && plan.RuleChange != nil && plan.RuleChange.Loosens
}

func (k *Controller) isUnread(id change.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unread[id]
}

// recordReview hears of a review, of which GitHub tells the rest.
func (k *Controller) recordReview(ctx context.Context, e webhook.Review) error {
	if !e.Open || !k.repos.Observe(e.Repository) {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	k.markUnread(s) // one without a plan is marked by that
	k.enqueueChange(id)
	return nil
}

// readReviews notes what reviews say of the change of the rules, if that is news.
func (k *Controller) readReviews(ctx context.Context, s *change.State) error {
	k.mu.Lock()
	delete(k.unread, s.ID) // first: one that comes now is read again
	k.mu.Unlock()
	decider := answer.Decider{People: k.GitHub, Planner: k.Planner, Now: k.Now}
	found, err := decider.RulesByReview(ctx, s, k.GitHub, k.Planner)
	if client.IsPermanent(err) { // there is /approve-policy
		k.Log.Warn("GitHub does not return the reviews; they do not count", "change", s.ID.String(), "repo", s.Facts.Repo, "err", err)
		found, err = nil, nil
	}
	if err != nil {
		k.markUnread(s)
		return err
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		stands := now.ApprovedRules(now.Current())
		switch {
		case now.Facts.Head != s.Facts.Head || now.Current() == nil:
			return nil, nil // its plan has them read again
		case found == nil && (now.RulesApproved == nil || len(now.RulesApproved.Reviews) == 0):
			return nil, nil
		case found != nil && stands != nil && (len(stands.Reviews) == 0 || slices.Equal(stands.Reviews, found.Reviews)):
			return nil, nil
		}
		return change.Reviewed{RulesApproved: found}, nil
	})
	return err
}
