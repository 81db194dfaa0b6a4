package actions

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/policies"
)

// issueComment follows a command. Any other comment leads to nothing at all.
func (s *session) issueComment(ctx context.Context, e webhook.IssueComment) (Outcome, error) {
	asked, ok := command.Parse(e.Body)
	decider := answer.Decider{People: s.hub, Spent: s.spent, Now: s.Now}
	switch {
	case e.Author.Bot:
		return s.nothing("the comment is by a program")
	case !e.Open:
		return s.nothing("the pull request is closed")
	case !ok || !slices.Contains(decider.Follows(), asked.Name()):
		return s.nothing("the comment holds no command for a workflow")
	}
	if err := s.posts.Seen(ctx, s.env.repo, e.ID); err != nil {
		return Outcome{}, err
	}
	facts, err := s.pull(ctx, e.Number)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.look(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}, facts); err != nil {
		return Outcome{}, err
	}
	s.apply(change.Asked{ID: "comment-" + strconv.FormatInt(e.ID, 10), Comment: e.ID, By: e.Author.Login, Request: asked, Head: s.state.Facts.Head})
	answered, err := decider.To(ctx, s.state, s.state.Commands[0])
	if err != nil {
		return Outcome{}, err
	}
	s.apply(answered)
	if err := s.posted(s.posts.Replies(ctx, s.view())); err != nil {
		return Outcome{}, err
	}
	switch c := asked.Command.(type) {
	case command.Rebench:
		if c.Rounds > 0 && (s.Rounds == 0 || c.Rounds < s.Rounds) {
			s.Rounds = c.Rounds
		}
	case command.OKToTest, command.ApprovePolicy:
	default:
		answered.OK = false
	}
	if !answered.OK {
		return s.nothing("the command was answered")
	}
	return s.gate(ctx)
}

// spent says why this commit is not measured once more.
func (s *session) spent(run change.Run) error {
	if max(run.Attempt, 1+tried(s.state.Past, run)) <= maxAttempts {
		return nil
	}
	return fmt.Errorf("this commit was measured %d times already, and a further attempt could prove nothing (change what the compiler emits)", maxAttempts)
}

// approve looks in the conversation for somebody who may approve a fork's commit
// and has approved the head, and for somebody who may let it change the rules.
func (s *session) approve(ctx context.Context) error {
	commands, err := s.commands()
	if err != nil {
		return err
	}
	if s.state.Held() && !s.state.Plan.NeverForks() {
		by, err := s.said(ctx, s.state, s.comments, commands.OKToTest, func(c command.Command) (sha string, is bool) {
			approval, is := c.(command.OKToTest)
			return approval.SHA, is
		})
		if err != nil {
			return err
		}
		if by != "" {
			s.state.Approved = append(s.state.Approved, s.state.Facts.Head)
		}
	}
	if s.state.ID.Kind == change.Pull && s.state.RulesWait(s.state.Current()) {
		s.state.RulesApproved, err = s.approvedRules(ctx, s.state, s.comments)
	}
	return err
}

// commands is who may say what, by the base's policy.
func (s *session) commands() (policies.Commands, error) {
	policy, err := answer.Policy(s.state)
	if err != nil || policy == nil {
		return policies.DefaultCommands(), err
	}
	return policy.Commands, nil
}

// approvedRules finds the word of somebody who may let a pull request's head change the
// rules; nil where there is none.
func (s *session) approvedRules(ctx context.Context, pull *change.State, comments []client.Comment) (*change.RulesApproved, error) {
	commands, err := s.commands()
	if err != nil {
		return nil, err
	}
	by, err := s.said(ctx, pull, comments, commands.ApprovePolicy, func(c command.Command) (sha string, is bool) {
		approval, is := c.(command.ApprovePolicy)
		return approval.SHA, is
	})
	if err != nil || by == "" {
		return nil, err
	}
	return &change.RulesApproved{SHA: pull.Facts.Head, By: by}, nil
}

// approveGroup lets a merge group change the rules where each of its pull requests that
// does was approved.
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
		if !pull.RulesWait(&proposal.Plan) {
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
		s.state.RulesApproved = &change.RulesApproved{SHA: s.state.Facts.Head, By: strings.Join(by, ", @")}
	}
	return nil
}

// said finds who has said a word about a head, by its whole id, and has the role for it. A
// comment that was edited does not count, since its author need not have said it.
func (s *session) said(ctx context.Context, pull *change.State, comments []client.Comment, role policies.Role, word func(command.Command) (sha string, is bool)) (string, error) {
	for _, c := range comments {
		asked, _ := command.Parse(c.Body)
		sha, is := word(asked.Command)
		if !is || c.Bot || sha != pull.Facts.Head || c.UpdatedAt.Sub(c.CreatedAt) > time.Second {
			continue
		}
		has, err := s.hub.Permission(ctx, s.env.repo, c.Author)
		if err != nil {
			return "", err
		}
		_, rules := asked.Command.(command.ApprovePolicy)
		if role.Allows(has) && (!rules || answer.MayApproveRules(pull, c.Author, has)) {
			return c.Author, nil
		}
	}
	return "", nil
}
