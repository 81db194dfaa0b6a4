package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/policies"
)

// obeyed are the commands that a workflow can follow. The others need a bot that
// is there all the time.
var obeyed = []string{"rebench", "ok-to-test", "explain", "help"}

// issueComment follows a command. Any other comment leads to nothing at all.
func (s *session) issueComment(ctx context.Context, e webhook.IssueComment) (Outcome, error) {
	asked, ok, err := command.Parse(e.Body)
	var wrong *command.Error
	name := ""
	switch {
	case errors.As(err, &wrong):
		name = wrong.Command
	case err != nil:
		return Outcome{}, fmt.Errorf("reading the comment: %w", err)
	case ok:
		name = asked.Name()
	}
	switch {
	case e.Author.Bot:
		return s.nothing("the comment is by a program")
	case !e.Open:
		return s.nothing("the pull request is closed")
	case !slices.Contains(obeyed, name):
		return s.nothing("the comment holds no command for a workflow")
	}
	if err := s.posts.react(ctx, e.ID, "eyes"); err != nil {
		return Outcome{}, err
	}
	facts, err := s.pull(ctx, e.Number)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.look(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}, facts); err != nil {
		return Outcome{}, err
	}
	id := "comment-" + strconv.FormatInt(e.ID, 10)
	s.apply(change.Asked{ID: id, Comment: e.ID, By: e.Author.Login, Text: e.Body, Head: s.state.Facts.Head})
	d := refused("")
	if wrong != nil {
		d = refused("%s", wrong.Problem)
	} else if d, err = s.decide(ctx, e.Author.Login, asked); err != nil {
		return Outcome{}, fmt.Errorf("answering /%s by %s: %w", name, e.Author.Login, err)
	}
	d.ID = id
	s.apply(d.Answered)
	if err := s.reply(ctx, s.state.Commands[0]); err != nil {
		return Outcome{}, err
	}
	if !d.measure {
		return s.nothing("the command was answered")
	}
	return s.gate(ctx)
}

// A decision is an answer, and whether measuring follows.
type decision struct {
	change.Answered
	measure bool
}

func refused(format string, args ...any) decision {
	return decision{Answered: change.Answered{Reply: fmt.Sprintf(format, args...)}}
}

func granted(measure bool, format string, args ...any) decision {
	return decision{change.Answered{OK: true, Reply: fmt.Sprintf(format, args...)}, measure}
}

func (s *session) decide(ctx context.Context, by string, asked command.Command) (decision, error) {
	policy, err := s.policy()
	if err != nil {
		return decision{}, err
	}
	commands := policies.DefaultCommands()
	if policy != nil {
		commands = policy.Commands
	}
	has, err := s.hub.Permission(ctx, s.env.repo, by)
	if err != nil {
		return decision{}, err
	}
	if needs := asked.Role(commands); !needs.Allows(has) {
		return refused("`/%s` needs the role `%s` in this repository, and you have `%s`.", asked.Name(), needs, has), nil
	}
	switch asked := asked.(type) {
	case command.ShowHelp:
		return granted(false, "%s\nkernelgate runs here as a workflow. Other commands need the bot (`kernelgate serve`).", command.Help(commands, obeyed)), nil
	case command.Explain:
		return granted(false, "%s", present.Explain(s.state, policy)), nil
	case command.OKToTest:
		return s.okToTest(asked), nil
	case command.Rebench:
		return s.rebench(asked), nil
	}
	return refused("`/%s` is not available in a workflow.", asked.Name()), nil
}

// policy is the base's; nil where it has none, or one with mistakes.
func (s *session) policy() (*policies.Policy, error) {
	p := s.state.Current()
	if p == nil || p.Policy == "" || p.NoPolicy {
		return nil, nil
	}
	return p.ReadPolicy()
}

func (s *session) rebench(r command.Rebench) decision {
	var names []string
	for _, run := range s.state.Runs {
		names = append(names, run.Kernel)
	}
	known := "`" + strings.ReplaceAll(strings.Join(names, ", "), "`", "'") + "`"
	switch {
	case len(s.state.Plan.Problems) > 0:
		return refused("The policy or a manifest on the base branch has mistakes: nothing can be measured before they are mended.")
	case len(names) == 0:
		return refused("There is nothing to measure: no kernel changed.")
	case s.state.Held():
		return s.held()
	case r.Versus != "" || len(r.Shapes) > 0 || len(r.Seeds) > 0 || r.Profile:
		return refused("A workflow measures what the policy asks: leave out everything but kernels and `rounds`.")
	}
	for _, name := range r.Kernels {
		if !slices.Contains(names, name) {
			return refused("This change touches no kernel `%s`. It touches %s.", strings.ReplaceAll(name, "`", "'"), known)
		}
	}
	for _, name := range names {
		if tried(s.state.Past, name, s.state.Facts.Head) >= maxAttempts {
			return refused("This commit was measured %d times already, and a further attempt could prove nothing. Change what the compiler emits.", maxAttempts)
		}
	}
	if r.Rounds > 0 && (s.Rounds == 0 || r.Rounds < s.Rounds) {
		s.Rounds = r.Rounds
	}
	return granted(true, "Measuring %s anew: a workflow keeps no evidence of earlier attempts. Each attempt at the same machine code is judged at half the error rate of the one before it.", known)
}
