package actions

import (
	"context"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/policies"
)

// approve looks in the conversation for somebody who may approve a fork's commit
// and has approved the head. The comment must name the whole commit: a short
// name is one that the fork's author could give to another commit later. One that
// was edited does not count, since its author need not have said it.
func (s *session) approve(ctx context.Context) error {
	head := s.state.Facts.Head
	if !s.state.Held() || s.never() {
		return nil
	}
	role, err := s.approver()
	if err != nil {
		return err
	}
	for _, c := range s.comments {
		asked, ok, err := command.Parse(c.Body)
		approval, is := asked.(command.OKToTest)
		if err != nil || !ok || !is || c.Bot || approval.SHA != head || c.UpdatedAt.Sub(c.CreatedAt) > time.Second {
			continue
		}
		has, err := s.hub.Permission(ctx, s.env.repo, c.Author)
		if err != nil {
			return err
		}
		if role.Allows(has) {
			s.state.Approved = append(s.state.Approved, head)
			return nil
		}
	}
	return nil
}

func (s *session) never() bool { return s.state.Current().NeverForks() }

func (s *session) approver() (policies.Role, error) {
	policy, err := s.policy()
	if err != nil || policy == nil {
		return policies.DefaultCommands().OKToTest, err
	}
	return policy.Commands.OKToTest, nil
}

func (s *session) held() decision {
	if s.never() {
		return refused("The policy never runs code from forks (`forks: {run: never}`).")
	}
	return refused("The code is from a fork and waits for `/ok-to-test %s`.", s.state.Facts.Head)
}

// okToTest lets the commit that is named, and no other, reach this runner.
func (s *session) okToTest(o command.OKToTest) decision {
	switch {
	case !s.state.Facts.Fork:
		return refused("This pull request is not from a fork: it needs no approval.")
	case s.never():
		return s.held()
	case o.SHA != s.state.Facts.Head:
		return refused("The head is `%s`. Look at it, and approve that one by its whole name.", s.state.Facts.Head)
	}
	d := granted(true, "%.12s may reach a runner. A new push needs a new approval.", s.state.Facts.Head)
	d.Effect = change.Effect{Approve: s.state.Facts.Head}
	return d
}
