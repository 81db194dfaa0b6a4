package actions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/grammar"
)

// remark executes a command in a comment or review. Without a command it does nothing, except that
// a code owner's review can approve a change of the rules.
func (s *session) remark(ctx context.Context, event webhook.Event) (End, error) {
	e, at, _ := observed.OfRemark(event)
	asked, ok := grammar.Parse(e.Body)
	if review, is := event.(webhook.Review); is && !ok {
		return s.review(ctx, review)
	}
	decider := answer.Decider{People: s.hub, Spent: s.spent, Profile: s.profile, Now: s.Now}
	switch {
	case e.Author.Bot:
		return s.nothing("the comment is by a program")
	case !e.Open:
		return s.nothing("the pull request is closed")
	case !ok || !grammar.Followed(asked.Name(), true):
		return s.nothing("the comment holds no command for a workflow")
	}
	if err := s.posts.Acknowledge(ctx, s.env.repo, at); err != nil {
		return End{}, err
	}
	if err := s.lookAgain(ctx, e); err != nil {
		return End{}, err
	}
	if _, why := asked.Command.(grammar.Why); why && s.reviewOfFork() {
		return s.tellMute("nothing was profiled", "Write the command as a comment in the conversation.")
	}
	at.Request, at.Head, at.Base = asked, cmp.Or(at.Head, s.state.Facts.Head), s.state.Facts.Base
	s.apply(at)
	answered, err := decider.To(ctx, s.state, s.state.Commands[0])
	if err != nil {
		return End{}, err
	}
	s.apply(answered)
	if err := s.posted(s.posts.Replies(ctx, s.view())); err != nil {
		return End{}, err
	}
	switch c := asked.Command.(type) {
	case grammar.Rebench:
		if c.Rounds > 0 && (s.Rounds == 0 || c.Rounds < s.Rounds) {
			s.Rounds = c.Rounds
		}
	case grammar.OKToTest, grammar.ApprovePolicy:
	case grammar.Why:
		return s.answeredWith("the command was answered")
	default:
		answered.OK = false
	}
	if !answered.OK {
		return s.nothing("the command was answered")
	}
	if s.mute(ctx) {
		return s.tellMute("the command was not followed", "Write the command as a comment in the conversation.")
	}
	return s.gate(ctx)
}

// mute reports whether this job cannot write, because a review of a fork's pull request, or a
// comment on a line of it, started the job. GitHub gives such a job a read-only token, unless a
// private repository is configured to send write tokens to forks.
func (s *session) mute(ctx context.Context) bool {
	if !s.reviewOfFork() {
		return false
	}
	_ = s.publish(ctx) // a refusal shows it; other errors are retried later
	return !s.posts.MayCheck()
}

// reviewOfFork reports whether a review of a fork's pull request, or a comment on a line of it, started the job.
func (s *session) reviewOfFork() bool {
	return s.state.Facts.Fork && strings.HasPrefix(s.env.eventName, "pull_request_review")
}

// tellMute ends a job that could not publish its verdict, before anything is measured.
func (s *session) tellMute(what, next string) (End, error) {
	const why = "GitHub gives a job that a review of a fork's pull request starts a token that can only read"
	s.lines.say("warning", fmt.Sprintf("%s: %s. %s", why, what, next))
	text := fmt.Sprintf("# kernelgate: nothing was measured\n\n%s: %s.\n\n%s That starts a job that can write.\n", why, what, next)
	if err := appendTo(s.env.summary, text); err != nil {
		return End{}, err
	}
	return s.nothing(what)
}

// review gates a pull request that loosens the rules again after a code owner approved it or
// withdrew the approval. Reviews by others start no measurement.
func (s *session) review(ctx context.Context, e webhook.Review) (End, error) {
	if !e.Open || e.Author.Bot || e.State == "commented" {
		return s.nothing("the review holds no command for a workflow")
	}
	if err := s.lookAgain(ctx, e.Remark); err != nil {
		return End{}, err
	}
	plan := s.state.Current()
	if plan == nil || plan.RuleChange == nil || !plan.RuleChange.Loosens || e.State == "approved" && s.state.RulesWait(plan) {
		return s.nothing("the review changes nothing for the gate")
	}
	p, _, err := s.planner(ctx)
	if err != nil {
		return End{}, err
	}
	sets, err := p.Owners(ctx, s.env.repo, s.state.Facts.Base, plan.RuleChange.Files)
	if err != nil {
		return End{}, err
	}
	if !slices.ContainsFunc(sets, func(set []string) bool { return answer.Owns(set, e.Author.Login) }) {
		return s.nothing("the reviewer does not own the rules")
	}
	if s.mute(ctx) {
		return s.tellMute("the review counts, but neither status nor comment can say so yet", "Comment `/rebench` in the conversation.")
	}
	return s.gate(ctx)
}

// lookAgain plans the pull request that somebody commented on.
func (s *session) lookAgain(ctx context.Context, e webhook.Remark) error {
	f, err := s.pull(ctx, e.Number)
	if err != nil {
		return err
	}
	return s.look(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}, f)
}

// spent returns why this commit is not measured again, or nil.
func (s *session) spent(run change.Run) error {
	if max(run.Attempt, 1+tried(s.state.Past, run)) <= maxAttempts {
		return nil
	}
	return fmt.Errorf("this commit was measured %d times already, and one more attempt cannot prove anything (change what the compiler emits)", maxAttempts)
}
