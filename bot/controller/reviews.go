package controller

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A review of a code owner can approve a change of the rules. The bot reads the reviews from GitHub
// when a delivery names one, when a plan finds such a change, and at every resync, so that it also
// finds a review that was dismissed while no webhook arrived.

// markUnread marks the reviews of a pull request to be read, if the pull request loosens the rules.
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

// recordReview handles the delivery of a review. The bot reads the rest from GitHub.
func (k *Controller) recordReview(ctx context.Context, e webhook.Review) error {
	if !e.Open || !k.repos.Observe(e.Repository) {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	k.markUnread(s) // the plan will mark it
	k.enqueueChange(id)
	return nil
}

// readReviews records what the reviews say about the change of the rules, if that is new.
func (k *Controller) readReviews(ctx context.Context, s *change.State) error {
	k.mu.Lock()
	delete(k.unread, s.ID) // first, so that a new review marks it again
	k.mu.Unlock()
	decider := answer.Decider{People: people{k.GitHub, s.ID.Repo}, Planner: k.Planner, Now: k.Now}
	found, err := decider.RulesByReview(ctx, s, k.GitHub, k.Planner)
	if client.IsPermanent(err) { // /approve-policy still works
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
			return nil, nil // the next plan marks it again
		case found == nil && (now.RulesApproved == nil || len(now.RulesApproved.Reviews) == 0):
			return nil, nil
		case found != nil && stands != nil && (len(stands.Reviews) == 0 || slices.Equal(stands.Reviews, found.Reviews)):
			return nil, nil
		}
		return change.Reviewed{RulesApproved: found}, nil
	})
	return err
}
