package answer

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// approveRules lets the commit that is named, and no other, change the gate's own rules.
func (d Decider) approveRules(ctx context.Context, s *change.State, c change.Command, a grammar.ApprovePolicy, has policy.Role) (change.Answered, error) {
	plan := s.Current()
	switch {
	case plan.RuleChange == nil:
		return refusedAs(change.AnswerRulesUnchanged)
	case !plan.RuleChange.Loosens:
		return refusedAs(change.AnswerRulesTightened)
	case a.SHA != s.Facts.Head:
		return refused(change.Answer{Kind: change.AnswerNotHead, Command: a.Name(), SHA: a.SHA, Head: s.Facts.Head})
	case c.Head != s.Facts.Head:
		return moved(s)
	}
	if own, err := d.OwnRules(ctx, s, c.By, has); err != nil {
		return change.Answered{}, err
	} else if own != "" {
		return refused(change.Answer{Kind: own, Head: s.Facts.Head})
	}
	now, _ := s.Scope()
	given := change.RulesApproved{For: now, By: c.By, At: d.Now().UTC().Format(time.RFC3339), Digest: plan.RuleChange.Digest}
	return granted(change.Effect{ApproveRules: &given}, change.Answer{Kind: change.AnswerRulesApproved, Head: s.Facts.Head})
}

// OwnRules says why somebody may not approve what a change does to the rules: it is their
// own. They opened it or pushed its head, or nobody knows who pushed it. It is empty where
// they may. Administrators may always, since they could remove the gate altogether.
func (d Decider) OwnRules(ctx context.Context, s *change.State, login string, has policy.Role) (why change.AnswerKind, err error) {
	if policy.Role("admin").Allows(has) {
		return "", nil
	}
	if strings.EqualFold(login, s.Facts.Author) {
		return change.AnswerOwnChange, nil
	}
	pushers, err := d.People.Pushers(ctx, s.Facts.Repo, s.ID.Number, s.Facts.Head)
	switch {
	case err != nil:
		return "", err
	case len(pushers) == 0:
		return change.AnswerPusherUnknown, nil
	case Owns(pushers, login):
		return change.AnswerOwnPush, nil
	}
	return "", nil
}

// Reviews tells what people said of a pull request as a whole, and when it was last sent
// to another branch.
type Reviews interface {
	Reviews(ctx context.Context, repo string, pr int) ([]client.Review, error)
	Retargeted(ctx context.Context, repo string, pr int) (time.Time, error)
}

// Owners tells the code owners of files on a branch; see planner.Planner.
type Owners interface {
	Owners(ctx context.Context, repo, branch string, files []string) ([][]string, error)
}

// reviewersRole is what GitHub itself asks of a code owner.
const reviewersRole policy.Role = "write"

// RulesByReview is the word of code owners that the head may change the rules: an
// approving review of the head by an owner of each file that may loosen them. It is nil
// where one is missing. A review that was dismissed, or that its author has replaced by
// another, is none, nor is one by the author or by whoever pushed the head; and one from before the pull request went to
// another branch, or before that branch got other rules, is about something else.
func (d Decider) RulesByReview(ctx context.Context, s *change.State, all Reviews, owners Owners) (*change.RulesApproved, error) {
	plan := s.Current()
	if plan == nil || plan.RuleChange == nil || !plan.RuleChange.Loosens || len(plan.RuleChange.Files) == 0 || s.ID.Kind != change.Pull {
		return nil, nil
	}
	reviews, err := all.Reviews(ctx, s.Facts.Repo, s.ID.Number)
	if err != nil {
		return nil, err
	}
	if reviews = approving(s, reviews); len(reviews) == 0 {
		return nil, nil
	}
	sets, err := owners.Owners(ctx, s.Facts.Repo, s.Facts.Base, plan.RuleChange.Files)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	moved, err := all.Retargeted(ctx, s.Facts.Repo, s.ID.Number)
	if err != nil {
		return nil, err
	}
	counted := s.ApprovedRules(plan) // what has counted for these very differences goes on doing so
	reviews = slices.DeleteFunc(reviews, func(r client.Review) bool {
		known := counted != nil && slices.Contains(counted.Reviews, r.ID)
		return !r.At.After(moved) || !known && !r.At.After(s.RulesSince)
	})
	now, _ := s.Scope()
	given := change.RulesApproved{For: now, Digest: plan.RuleChange.Digest}
	var by []string
	for _, set := range sets {
		r, err := d.ofOwner(ctx, s, reviews, set)
		if err != nil || r == nil {
			return nil, err
		}
		if at := r.At.UTC().Format(time.RFC3339); !slices.Contains(given.Reviews, r.ID) {
			given.Reviews, by, given.At = append(given.Reviews, r.ID), append(by, r.Author), max(given.At, at)
		}
	}
	given.By = strings.Join(by, ", @")
	return &given, nil
}

// approving is the last word of everybody who has one, where it approves the head.
func approving(s *change.State, reviews []client.Review) (out []client.Review) {
	last := map[string]client.Review{}
	for _, r := range reviews {
		if r.State == client.Approved || r.State == client.ChangesRequested || r.State == client.Dismissed {
			last[strings.ToLower(r.Author)] = r
		}
	}
	for _, r := range reviews { // in their order
		if r == last[strings.ToLower(r.Author)] && r.State == client.Approved && r.SHA == s.Facts.Head && !r.Bot && !strings.EqualFold(r.Author, s.Facts.Author) {
			out = append(out, r)
		}
	}
	return out
}

// ofOwner finds the review of somebody in a set who may write to the repository.
func (d Decider) ofOwner(ctx context.Context, s *change.State, reviews []client.Review, set []string) (*client.Review, error) {
	for _, r := range reviews {
		if !Owns(set, r.Author) {
			continue
		}
		has, err := d.People.Permission(ctx, s.Facts.Repo, r.Author)
		if err != nil {
			return nil, err
		}
		if !reviewersRole.Allows(has) {
			continue
		}
		own, err := d.OwnRules(ctx, s, r.Author, has)
		if err != nil {
			return nil, err
		}
		if own == "" {
			return &r, nil
		}
	}
	return nil, nil
}

// Owns tells whether somebody is in a set of accounts.
func Owns(set []string, login string) bool {
	return slices.ContainsFunc(set, func(owner string) bool { return strings.EqualFold(owner, login) })
}
