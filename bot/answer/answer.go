// Package answer decides on the commands that people give: whether they may, whether it
// can be done, what follows from it, and what they are told. It is the same for the bot
// and for a workflow, and writes nothing: whoever asks applies the answer and publishes
// it.
package answer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
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
}

// A Decider decides on commands.
type Decider struct {
	People People
	// Planner is nil in a workflow, which measures what the policy asks and keeps no
	// evidence of earlier attempts; there, Spent says why none more may be made.
	Planner Planner
	Spent   func(change.Run) error
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

func refused(format string, args ...any) (change.Answered, error) {
	return change.Answered{Reply: fmt.Sprintf(format, args...)}, nil
}

func granted(e change.Effect, format string, args ...any) (change.Answered, error) {
	return change.Answered{OK: true, Reply: fmt.Sprintf(format, args...), Effect: e}, nil
}

func (d Decider) decide(ctx context.Context, s *change.State, c change.Command) (change.Answered, error) {
	asked := c.Request.Command
	switch {
	case c.Request.Mistake != nil:
		return refused("%s", c.Request.Mistake.Problem)
	case asked == nil:
		return refused("This is not a command.")
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
	if needs := command.Needs(asked, commands); !needs.Allows(has) {
		return refused("`/%s` needs the role `%s` in this repository, and you have `%s`.", asked.Name(), needs, has)
	}
	if !command.Followed(asked.Name(), d.Planner == nil) {
		return refused("`/%s` is not available on this server.", asked.Name())
	}
	if s.Facts.BaseGone && needsBase(asked) {
		return refused("The base branch is gone, and with it the policy and the kernels. Choose a different base branch, or push this one again; then repeat the command.")
	}
	switch asked := asked.(type) {
	case command.ShowHelp:
		return granted(change.Effect{}, "%s", d.help(commands))
	case command.Explain:
		return granted(change.Effect{}, "%s", present.Explain(s, pol))
	case command.Override:
		return d.override(s, c, asked)
	case command.OKToTest:
		return okToTest(s, c, asked)
	case command.ApprovePolicy:
		return d.approveRules(ctx, s, c, asked, has)
	case command.Cancel:
		return cancel(s)
	case command.Rebench:
		return d.rebench(ctx, s, pol, asked)
	}
	return refused("`/%s` is not available on this server.", asked.Name())
}

// needsBase tells whether a command is about what the base branch asks or has.
func needsBase(c command.Command) bool {
	switch c.(type) {
	case command.Override, command.ApprovePolicy, command.Rebench:
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

func (d Decider) help(commands policy.Commands) string {
	text := command.Help(commands, d.Planner == nil)
	if d.Planner == nil {
		text += "\nkernelgate runs here as a workflow. Other commands need the bot (`kernelgate serve`)."
	}
	return text
}

// moved is the answer where the head is another than the one that the author of the
// command could see.
func moved(s *change.State) (change.Answered, error) {
	return refused("The head has moved to %.12s. Read that commit, then repeat the command.", s.Facts.Head)
}

func (d Decider) override(s *change.State, c change.Command, o command.Override) (change.Answered, error) {
	if c.Head != s.Facts.Head {
		return moved(s)
	}
	given := change.Override{SHA: s.Facts.Head, By: c.By, Reason: o.Reason, At: d.Now().UTC().Format(time.RFC3339)}
	more := ""
	if s.RulesWait(s.Current()) {
		more = " Its changes to the rules still wait for `/approve-policy`."
	}
	return granted(change.Effect{Override: &given}, "The required check passes for %.12s, whatever the gates say. This ends with the next push.%s", s.Facts.Head, more)
}

// okToTest lets the commit that is named, and no other, reach a runner. A short name is
// one that the fork's author could give to another commit too.
func okToTest(s *change.State, c change.Command, o command.OKToTest) (change.Answered, error) {
	switch {
	case !s.Facts.Fork:
		return refused("This pull request is not from a fork: it needs no approval.")
	case s.Plan.NeverForks():
		return held(s)
	case o.SHA != s.Facts.Head:
		return refused("`%s` is not the full id of the head commit, which is `%s`. Read that commit, then comment `/ok-to-test %[2]s`.", o.SHA, s.Facts.Head)
	case c.Head != s.Facts.Head:
		return moved(s)
	}
	return granted(change.Effect{Approve: s.Facts.Head}, "Runners may now run %.12s. A new push needs a new approval.", s.Facts.Head)
}

// held is the answer where code from a fork would have to run.
func held(s *change.State) (change.Answered, error) {
	if s.Plan.NeverForks() {
		return refused("The policy never runs code from forks (`forks: {run: never}`).")
	}
	return refused("The code is from a fork and waits for `/ok-to-test %s`.", s.Facts.Head)
}

func cancel(s *change.State) (change.Answered, error) {
	if len(s.Wanted()) == 0 {
		return refused("Nothing is queued or running.")
	}
	return granted(change.Effect{Cancel: s.Facts.Head}, "The runs of this head are cancelled. `/rebench` starts them again.")
}

func names(runs []change.Run) string {
	var list []string
	for _, r := range runs {
		list = append(list, code(r.Name))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }
