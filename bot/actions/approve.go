package actions

import (
	"context"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A workflow has no state except what GitHub stores, so every job searches the conversation for
// approvals again.

// approve searches the conversation for two approvals of the head by people with the required role:
// one to run a fork's commit, and one to let the commit change the rules.
func (s *session) approve(ctx context.Context) error {
	commands, err := s.commands()
	if err != nil {
		return err
	}
	if s.state.Held() && !s.state.Plan.NeverForks() {
		by, err := s.said(ctx, s.state, s.comments, commands.OKToTest, func(c grammar.Command) (sha string, is bool) {
			approval, is := c.(grammar.OKToTest)
			return approval.SHA, is
		})
		if err != nil {
			return err
		}
		if by != "" {
			now, _ := s.state.Scope()
			s.state.Approved = append(s.state.Approved, change.ForkApproved{For: now, By: by})
		}
	}
	if s.state.ID.Kind == change.Pull && s.state.RulesWait(s.state.Current()) {
		s.state.RulesApproved, err = s.approvedRules(ctx, s.state, s.comments)
	}
	return err
}

// commands returns which role each command needs, by the policy of the base.
func (s *session) commands() (policy.Commands, error) {
	pol, err := answer.Policy(s.state)
	if err != nil || pol == nil {
		return policy.DefaultCommands(), err
	}
	return pol.Commands, nil
}

// approvedRules searches comments and reviews for an approval to let a pull request's head change
// the rules. It returns nil if there is none.
func (s *session) approvedRules(ctx context.Context, pull *change.State, comments []client.Comment) (*change.RulesApproved, error) {
	commands, err := s.commands()
	if err != nil {
		return nil, err
	}
	by, err := s.said(ctx, pull, comments, commands.ApprovePolicy, func(c grammar.Command) (sha string, is bool) {
		approval, is := c.(grammar.ApprovePolicy)
		return approval.SHA, is
	})
	if err != nil {
		return nil, err
	}
	if by != "" {
		return &change.RulesApproved{For: pull.PostedScope(), By: by}, nil
	}
	p, _, err := s.planner(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Decider{People: s.hub, Now: s.Now}.RulesByReview(ctx, pull, s.hub, p)
}

// approveGroup lets a merge group change the rules if every one of its pull requests that changes
// them was approved.
func (s *session) approveGroup(ctx context.Context, pulls []*change.State) error {
	if !s.state.RulesWait(s.state.Current()) {
		return nil
	}
	p, _, err := s.planner(ctx)
	if err != nil {
		return err
	}
	var by []string
	for _, pull := range pulls {
		proposal, err := p.Plan(ctx, pull.ID, pull.Facts)
		if err != nil {
			return err
		}
		if pull.Plan = &proposal.Plan; !pull.RulesWait(pull.Plan) {
			continue
		}
		comments, err := s.hub.ListComments(ctx, s.env.repo, pull.ID.Number)
		if err != nil {
			return err
		}
		approved, err := s.approvedRules(ctx, pull, comments)
		if err != nil || approved == nil {
			return err
		}
		by = append(by, approved.By)
	}
	if len(by) > 0 {
		s.state.RulesApproved = &change.RulesApproved{For: s.state.PostedScope(), By: strings.Join(by, ", @")}
	}
	return nil
}

// said returns the author of a command about a head, if the command names the head's full id and
// the author has the required role. An edited comment does not count, because somebody else may
// have edited it. Neither does a comment from before the pull request was moved to its current base
// branch.
func (s *session) said(ctx context.Context, pull *change.State, comments []client.Comment, role policy.Role, word func(grammar.Command) (sha string, is bool)) (string, error) {
	var moved *time.Time
	for _, c := range comments {
		asked, _ := grammar.Parse(c.Body)
		sha, is := word(asked.Command)
		if !is || c.Bot || sha != pull.Facts.Head || c.UpdatedAt.Sub(c.CreatedAt) > time.Second {
			continue
		}
		if moved == nil {
			at, err := s.hub.Retargeted(ctx, s.env.repo, pull.ID.Number)
			if err != nil {
				return "", err
			}
			moved = &at
		}
		if !c.CreatedAt.After(*moved) {
			continue
		}
		has, err := s.hub.Permission(ctx, s.env.repo, c.Author)
		if err != nil {
			return "", err
		}
		if !role.Allows(has) {
			continue
		}
		var own change.AnswerKind
		if _, rules := asked.Command.(grammar.ApprovePolicy); rules {
			if own, err = (answer.Decider{People: s.hub}).OwnRules(ctx, pull, c.Author, has); err != nil {
				return "", err
			}
		}
		if own == "" {
			return c.Author, nil
		}
	}
	return "", nil
}
