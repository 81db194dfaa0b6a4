package keeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// followed are the commands that the bot obeys.
var followed = []string{"rebench", "cancel", "explain", "override", "ok-to-test", "help"}

// answer decides on a command. The decision and its effect are one event, so
// that neither is ever there without the other.
func (k *Keeper) answer(ctx context.Context, s *change.State, c change.Command) error {
	if c.Comment != 0 {
		if err := k.GitHub.React(ctx, s.Facts.Repo, c.Comment, "eyes"); err != nil && !gone(err) {
			return err
		}
	}
	a, err := k.decide(ctx, s, c)
	if err != nil {
		return fmt.Errorf("answering %q by %s: %w", c.ID, c.By, err)
	}
	a.ID = c.ID
	k.count(func(n *Counts) { n.Answered++ })
	k.Log.Info("command", "change", s.ID.String(), "repo", s.Facts.Repo, "command", c.ID, "by", c.By, "ok", a.OK)
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Facts.Head != s.Facts.Head {
			return nil, nil // it was decided about another head: decide again
		}
		return a, nil
	})
	return err
}

func refused(format string, args ...any) change.Answered {
	return change.Answered{Reply: fmt.Sprintf(format, args...)}
}

func (k *Keeper) decide(ctx context.Context, s *change.State, c change.Command) (change.Answered, error) {
	parsed, ok, err := command.Parse(c.Text)
	var wrong *command.Error
	if errors.As(err, &wrong) {
		return refused("%s", wrong.Problem), nil
	}
	if err != nil || !ok {
		return refused("This is no command."), err
	}
	commands := policies.DefaultCommands()
	var policy *policies.Policy
	if s.Plan != nil && s.Plan.Policy != "" && !s.Plan.NoPolicy {
		if policy, err = s.Plan.ReadPolicy(); err != nil {
			return change.Answered{}, err
		}
		commands = policy.Commands
	}
	has, err := k.GitHub.Permission(ctx, s.Facts.Repo, c.By)
	if err != nil {
		return change.Answered{}, err
	}
	if needs := parsed.Role(commands); !needs.Allows(has) {
		return refused("`/%s` needs the role `%s` in this repository, and you have `%s`.", parsed.Name(), needs, has), nil
	}
	switch parsed := parsed.(type) {
	case command.ShowHelp:
		return change.Answered{OK: true, Reply: command.Help(commands, followed)}, nil
	case command.Explain:
		return change.Answered{OK: true, Reply: present.Explain(s, policy)}, nil
	case command.Override:
		return k.override(s, c, parsed), nil
	case command.OKToTest:
		return okToTest(s, parsed), nil
	case command.Cancel:
		return cancel(s), nil
	case command.Rebench:
		return k.rebench(ctx, s, policy, parsed)
	}
	return refused("`/%s` is not available on this server.", parsed.Name()), nil
}

func (k *Keeper) override(s *change.State, c change.Command, o command.Override) change.Answered {
	if c.Head != s.Facts.Head {
		return refused("The head has moved to %.12s since. Look at it, and say it again.", s.Facts.Head)
	}
	return change.Answered{
		OK: true, Reply: fmt.Sprintf("The required check passes for %.12s, whatever the gates say. This ends with the next push.", s.Facts.Head),
		Effect: change.Effect{Override: &change.Override{SHA: s.Facts.Head, By: c.By, Reason: o.Reason, At: k.Now().UTC().Format(time.RFC3339)}},
	}
}

func okToTest(s *change.State, o command.OKToTest) change.Answered {
	switch {
	case !s.Facts.Fork:
		return refused("This pull request is not from a fork: it needs no approval.")
	case s.Plan.NeverForks():
		return refused("The policy never runs code from forks (`forks: {run: never}`).")
	case !strings.HasPrefix(s.Facts.Head, o.SHA):
		return refused("The head is %s. Look at it, and approve that one.", s.Facts.Head)
	}
	return change.Answered{
		OK: true, Reply: fmt.Sprintf("%.12s may reach a runner. A new push needs a new approval.", s.Facts.Head), Effect: change.Effect{Approve: s.Facts.Head},
	}
}

func cancel(s *change.State) change.Answered {
	if len(s.Wanted()) == 0 {
		return refused("Nothing is queued or running.")
	}
	return change.Answered{OK: true, Reply: "The runs of this head end now. `/rebench` starts them again.", Effect: change.Effect{Cancel: s.Facts.Head}}
}

// rebench starts further attempts. What was measured of the machine code stays: an
// attempt adds rounds, so that nobody can roll the dice until they please. A comparison that
// the policy does not ask for is measured on the side and decides nothing.
func (k *Keeper) rebench(ctx context.Context, s *change.State, policy *policies.Policy, r command.Rebench) (change.Answered, error) {
	if s.Held() {
		return refused("The code is from a fork and waits for `/ok-to-test %s`.", s.Facts.Head), nil
	}
	if len(s.Runs) == 0 {
		return refused("There is nothing to measure: no kernel changed."), nil
	}
	var runs []change.Run
	for _, name := range r.Kernels {
		run, ok := s.ByKernel(name)
		if !ok {
			return refused("This change touches no kernel `%s`. It touches %s.", strings.ReplaceAll(name, "`", "'"), names(s.Runs)), nil
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		runs = s.Runs
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(run change.Run) bool { return run.Sources == "" })
	if len(runs) == 0 {
		return refused("There is nothing to measure: the kernel is gone."), nil
	}
	if r.Profile && !profiles(policy, runs) {
		return refused("No rule that applies here has a profile gate, so there is nothing to profile. Leave `profile` out."), nil
	}
	if r.Versus != "" || len(r.Shapes) > 0 || len(r.Seeds) > 0 {
		return k.sideways(ctx, s, runs, r)
	}
	return k.again(ctx, s, runs, r)
}

// profiles tells whether the policy asks for a profile of any of the runs.
func profiles(policy *policies.Policy, runs []change.Run) bool {
	return policy != nil && slices.ContainsFunc(policy.Rules, func(rule policies.Rule) bool {
		return rule.Gates.Profile != nil && slices.ContainsFunc(runs, func(run change.Run) bool { return run.Rule == rule.Name })
	})
}

func (k *Keeper) again(ctx context.Context, s *change.State, runs []change.Run, r command.Rebench) (change.Answered, error) {
	var effect change.Effect
	var busy, decided []change.Run
	for _, run := range runs {
		if run.Unfinished() {
			busy = append(busy, run)
			continue
		}
		// Before anything was timed no round has decided, and neither has an ERROR.
		if r := run.Result; r != nil && r.Attempt > 0 && r.Outcome != gates.Error && r.Reason != gates.ReasonInconclusive {
			decided = append(decided, run)
		}
		bundle, err := k.Planner.Rerun(ctx, s.ID, s.Facts, planner.Rerun{Folder: run.Folder, Rounds: r.Rounds, Profile: r.Profile})
		if err != nil {
			return badRequest(err)
		}
		effect.Rebench = append(effect.Rebench, change.Again{Kernel: run.Kernel, Bundle: bundle})
	}
	if len(effect.Rebench) == 0 {
		return refused("%s is queued or being measured already.", names(busy)), nil
	}
	reply := "Measuring again; the new rounds add to the evidence."
	if len(decided) > 0 {
		reply += fmt.Sprintf(" The rounds before have decided about %s: more rounds do not roll the dice again, nor does a commit that builds to the same machine code.", names(decided))
	}
	if len(busy) > 0 {
		reply += fmt.Sprintf(" %s is queued or being measured already.", names(busy))
	}
	return change.Answered{OK: true, Reply: reply, Effect: effect}, nil
}

func (k *Keeper) sideways(ctx context.Context, s *change.State, runs []change.Run, r command.Rebench) (change.Answered, error) {
	var effect change.Effect
	for _, run := range runs {
		bundle, err := k.Planner.Rerun(ctx, s.ID, s.Facts, planner.Rerun{
			Folder: run.Folder, Rounds: r.Rounds, Shapes: r.Shapes, Seeds: r.Seeds, Versus: r.Versus, Profile: r.Profile,
		})
		if err != nil {
			return badRequest(err)
		}
		one := r
		one.Kernels = []string{run.Kernel}
		effect.Side = append(effect.Side, change.Sideways{Kernel: run.Kernel, Bundle: bundle, Label: run.Label, Text: one.String()})
	}
	return change.Answered{OK: true, Reply: "Measuring on the side, for information: it changes no verdict, since it is not what the policy asks.", Effect: effect}, nil
}

// badRequest tells the author of a command what does not exist.
func badRequest(err error) (change.Answered, error) {
	var bad strict.Mistake
	if errors.As(err, &bad) {
		return refused("```text\n%s\n```", strings.ReplaceAll(bad.Error(), "```", "'''")), nil
	}
	return change.Answered{}, err
}

func names(runs []change.Run) string {
	var list []string
	for _, r := range runs {
		list = append(list, "`"+strings.ReplaceAll(r.Kernel, "`", "'")+"`")
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
