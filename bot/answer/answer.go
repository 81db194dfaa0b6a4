// Package answer decides on the commands that people give: whether they may, whether it
// can be done, what follows from it, and what they are told. It is the same for the bot
// and for a workflow, and writes nothing: whoever asks applies the answer and publishes
// it. Package present has the words.
package answer

import (
	"context"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// People tells what somebody may do in a repository, and what they did.
type People interface {
	Permission(ctx context.Context, repo, login string) (policy.Role, error)
	// Pushers are the accounts that pushed a commit to the branch of a pull request; none
	// where GitHub does not tell.
	Pushers(ctx context.Context, repo string, pr int, sha string) ([]string, error)
}

// A Planner packs a kernel of a change once more and names the bundle.
type Planner interface {
	Rerun(ctx context.Context, id change.ID, f change.Facts, r planner.Rerun) (bundle string, err error)
	// Explain packs a kernel for profiles of both sides, and returns the shapes that they are about.
	Explain(ctx context.Context, id change.ID, f change.Facts, r planner.Rerun) (bundle string, shapes []string, err error)
	Search(ctx context.Context, id change.ID, f change.Facts, r planner.Search) (bundle string, err error)
}

// A Decider decides on commands.
type Decider struct {
	People People
	// Planner is nil in a workflow, which measures what the policy asks and keeps no
	// evidence of earlier attempts; there, Spent says why none more may be made.
	Planner Planner
	// Verdict reads a stored verdict; nil in a workflow.
	Verdict func(context.Context, change.Result) (*gates.Verdict, error)
	Spent   func(change.Run) error
	// Profile profiles both sides of a kernel at once, in a workflow, which keeps no evidence of earlier jobs. It returns a
	// usage.Error if this machine cannot; nil in the bot.
	Profile func(ctx context.Context, run change.Run, shapes []string) (*gates.Verdict, error)
	Now     func() time.Time
}

// To decides on a command. The decision and its effect are one event, so that neither
// is ever there without the other.
func (d Decider) To(ctx context.Context, s *change.State, c change.Command) (change.Answered, error) {
	a, err := d.decide(ctx, s, c)
	if err != nil {
		return change.Answered{}, fmt.Errorf("answering /%s by %s: %w", c.Request.Name(), c.By, err)
	}
	a.ID = c.ID
	return a, nil
}

func refused(a change.Answer) (change.Answered, error) { return change.Answered{Answer: a}, nil }

func refusedAs(kind change.AnswerKind) (change.Answered, error) {
	return refused(change.Answer{Kind: kind})
}

func granted(e change.Effect, a change.Answer) (change.Answered, error) {
	return change.Answered{OK: true, Answer: a, Effect: e}, nil
}

func (d Decider) decide(ctx context.Context, s *change.State, c change.Command) (change.Answered, error) {
	asked := c.Request.Command
	switch {
	case c.Request.Mistake != nil:
		return refusedAs(change.AnswerMisread)
	case asked == nil:
		return refusedAs(change.AnswerNoCommand)
	}
	if decides(asked) && !s.Facts.BaseGone {
		now, known := s.Scope()
		switch {
		case !known: // the last plan may be of an earlier base, whose policy lets others decide
			return refusedAs(change.AnswerUnread)
		case c.Base != now.Base:
			return refused(change.Answer{Kind: change.AnswerBaseMoved, Base: now.Base})
		case c.Rules != "" && c.Rules != now.Rules:
			return refusedAs(change.AnswerRulesMoved)
		}
	}
	pol, err := Policy(s)
	if err != nil {
		return change.Answered{}, err
	}
	commands := policy.DefaultCommands()
	if pol != nil {
		commands = pol.Commands
	}
	has, err := d.People.Permission(ctx, s.Facts.Repo, c.By)
	if err != nil {
		return change.Answered{}, err
	}
	if needs := grammar.Needs(asked, commands); !needs.Allows(has) {
		return refused(change.Answer{Kind: change.AnswerRole, Command: asked.Name(), Needs: needs, Has: has})
	}
	if !grammar.Followed(asked.Name(), d.Planner == nil) {
		return refused(change.Answer{Kind: change.AnswerUnavailable, Command: asked.Name()})
	}
	if s.Facts.BaseGone && needsBase(asked) {
		return refusedAs(change.AnswerBaseGone)
	}
	switch asked := asked.(type) {
	case grammar.ShowHelp:
		return granted(change.Effect{}, change.Answer{Kind: change.AnswerHelp, Roles: &commands, Workflow: d.Planner == nil})
	case grammar.Explain:
		return granted(change.Effect{}, explain(s, pol != nil))
	case grammar.Override:
		return d.override(s, c, asked)
	case grammar.OKToTest:
		return okToTest(s, c, asked)
	case grammar.ApprovePolicy:
		return d.approveRules(ctx, s, c, asked, has)
	case grammar.Cancel:
		return cancel(s)
	case grammar.Rebench:
		return d.rebench(ctx, s, pol, asked)
	case grammar.Why:
		if d.Planner == nil && d.Profile == nil {
			break
		}
		return d.why(ctx, s, commands, has, asked)
	case grammar.Tune:
		return d.search(ctx, s, asked, asked.Kernel, asked.Device)
	case grammar.Bisect:
		return d.search(ctx, s, asked, asked.Kernel, asked.Device)
	}
	return refused(change.Answer{Kind: change.AnswerUnavailable, Command: asked.Name()})
}

// needsBase tells whether a command is about what the base branch asks or has.
func needsBase(c grammar.Command) bool {
	switch c.(type) {
	case grammar.Override, grammar.OKToTest, grammar.ApprovePolicy, grammar.Rebench, grammar.Why, grammar.Tune, grammar.Bisect:
		return true
	}
	return false
}

// decides tells whether a command is somebody's decision about the head and the base that they see.
func decides(c grammar.Command) bool {
	switch c.(type) {
	case grammar.Override, grammar.OKToTest, grammar.ApprovePolicy:
		return true
	}
	return false
}

// Policy is the base's; nil where it has none, or one with mistakes.
func Policy(s *change.State) (*policy.Policy, error) {
	if s.Plan == nil || s.Plan.Policy == "" || s.Plan.NoPolicy {
		return nil, nil
	}
	return s.Plan.ReadPolicy()
}

// explain says which rule of the policy applies to each kernel of a change.
func explain(s *change.State, hasPolicy bool) change.Answer {
	p := s.Current()
	switch {
	case s.Facts.BaseGone:
		return change.Answer{Kind: change.AnswerExplainNoBase}
	case p == nil:
		return change.Answer{Kind: change.AnswerExplainUnread}
	case p.Refused:
		return change.Answer{Kind: change.AnswerExplainRefused}
	case len(p.Problems) > 0:
		return change.Answer{Kind: change.AnswerExplainMistakes}
	case !hasPolicy:
		return change.Answer{Kind: change.AnswerExplainNoPolicy}
	case len(p.Kernels) == 0:
		return change.Answer{Kind: change.AnswerExplainNoKernel}
	}
	f := s.Facts
	rules := &change.AppliedRules{File: p.PolicyFile, Policy: p.Policy, Change: policy.Change{Labels: f.Labels, Branch: f.Base, Title: f.Title, Draft: f.Draft}}
	for _, k := range p.Kernels {
		rules.Kernels = append(rules.Kernels, change.AppliedKernel{Name: k.ManifestName(), Paths: k.Paths})
	}
	return change.Answer{Kind: change.AnswerExplainedByRules, Rules: rules}
}

// moved is the answer where the head is another than the one that the author of the
// command could see.
func moved(s *change.State) (change.Answered, error) {
	return refused(change.Answer{Kind: change.AnswerHeadMoved, Head: s.Facts.Head})
}

func (d Decider) override(s *change.State, c change.Command, o grammar.Override) (change.Answered, error) {
	if c.Head != s.Facts.Head {
		return moved(s)
	}
	now, _ := s.Scope()
	given := change.Override{For: now, By: c.By, Reason: o.Reason, At: d.Now().UTC().Format(time.RFC3339)}
	return granted(change.Effect{Override: &given}, change.Answer{Kind: change.AnswerOverridden, Head: s.Facts.Head, RulesWait: s.RulesWait(s.Current())})
}

// okToTest lets the commit that is named, and no other, reach a runner. A short name is
// one that the fork's author could give to another commit too.
func okToTest(s *change.State, c change.Command, o grammar.OKToTest) (change.Answered, error) {
	switch {
	case !s.Facts.Fork:
		return refusedAs(change.AnswerNoFork)
	case s.Plan.NeverForks():
		return held(s)
	case o.SHA != s.Facts.Head:
		return refused(change.Answer{Kind: change.AnswerNotHead, Command: o.Name(), SHA: o.SHA, Head: s.Facts.Head})
	case c.Head != s.Facts.Head:
		return moved(s)
	}
	now, _ := s.Scope()
	return granted(change.Effect{Approve: &change.ForkApproved{For: now, By: c.By}}, change.Answer{Kind: change.AnswerForkApproved, Head: s.Facts.Head})
}

// held is the answer where code from a fork would have to run.
func held(s *change.State) (change.Answered, error) {
	if s.Plan.NeverForks() {
		return refusedAs(change.AnswerNeverForks)
	}
	return refused(change.Answer{Kind: change.AnswerForkWaits, Head: s.Facts.Head})
}

func cancel(s *change.State) (change.Answered, error) {
	if len(s.Wanted()) == 0 {
		return refusedAs(change.AnswerNothingRuns)
	}
	return granted(change.Effect{Cancel: s.Facts.Head}, change.Answer{Kind: change.AnswerCancelled})
}

func names(runs []change.Run) []string {
	var list []string
	for _, r := range runs {
		list = append(list, r.Name)
	}
	return list
}
