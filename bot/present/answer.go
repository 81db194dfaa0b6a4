package present

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// AnswerText is the answer to a command in Markdown; "" before there is one.
func AnswerText(c change.Command) string {
	switch a := c.Answer; a.Kind {
	case "":
		return ""
	case change.AnswerMisread:
		if c.Request.Mistake == nil {
			return "This is not a command."
		}
		return c.Request.Mistake.Problem
	default:
		for _, group := range []func(change.Answer) string{general, explanation, approval, rebench, why} {
			if text := group(a); text != "" {
				return text
			}
		}
		return fmt.Sprintf("This kernelgate does not know the answer %s: a newer one gave it.", code(string(a.Kind)))
	}
}

// general writes what may be the answer to any command.
func general(a change.Answer) string {
	switch a.Kind {
	case change.AnswerNoCommand:
		return "This is not a command."
	case change.AnswerRole:
		return fmt.Sprintf("`/%s` needs the role `%s` in this repository, and you have `%s`.", a.Command, a.Needs, a.Has)
	case change.AnswerUnavailable:
		return fmt.Sprintf("`/%s` is not available on this server.", a.Command)
	case change.AnswerBaseGone:
		return "The base branch is gone, and with it the policy and the kernels. Choose a different base branch, or push this one again; then repeat the command."
	case change.AnswerHeadMoved:
		return fmt.Sprintf("The head has moved to %.12s. Read that commit, then repeat the command.", a.Head)
	case change.AnswerBaseMoved:
		return fmt.Sprintf("The base branch is now %s, which has its own policy. Read what the check says for that branch, then repeat the command.", report.EscapeCode(report.Clip(report.Plain(a.Base), nameRunes)))
	case change.AnswerRulesMoved:
		return "The rules of the base branch have changed since this command was written. Read what the check says now, then repeat the command."
	case change.AnswerNotHead:
		return fmt.Sprintf("`%s` is not the full id of the head commit, which is `%s`. Read that commit, then comment `/%s %[2]s`.", a.SHA, a.Head, a.Command)
	case change.AnswerHelp:
		roles := policy.DefaultCommands()
		if a.Roles != nil {
			roles = *a.Roles
		}
		text := grammar.Help(roles, a.Workflow)
		if a.Workflow {
			text += "\nkernelgate runs here as a workflow. Other commands need the bot (`kernelgate serve`)."
		}
		return text
	}
	return ""
}

// approval writes the answers to /override, /ok-to-test, /cancel and /approve-policy.
func approval(a change.Answer) string {
	const someoneElse = "someone else must approve its changes to the rules."
	switch a.Kind {
	case change.AnswerOverridden:
		text := fmt.Sprintf("The required check passes for %.12s, whatever the gates say. This ends with the next push, a different base branch, or changed rules on the base branch.", a.Head)
		if a.RulesWait {
			text += " Its changes to the rules still wait for `/approve-policy`."
		}
		return text
	case change.AnswerNoFork:
		return "This pull request is not from a fork: it needs no approval."
	case change.AnswerNeverForks:
		return "The policy never runs code from forks (`forks: {run: never}`)."
	case change.AnswerForkWaits:
		return fmt.Sprintf("The code is from a fork and waits for `/ok-to-test %s`.", a.Head)
	case change.AnswerForkApproved:
		return fmt.Sprintf("Runners may now run %.12s. A new push, a different base branch, or changed rules on the base branch need a new approval.", a.Head)
	case change.AnswerNothingRuns:
		return "Nothing is queued or running."
	case change.AnswerCancelled:
		return "Everything that was queued or running for this head is cancelled. `/rebench` measures the head again."
	case change.AnswerUnread:
		return "The change is still being read. Repeat the command in a moment."
	case change.AnswerRulesUnchanged:
		return "This change does not touch the policy, the manifests or the references: there is nothing to approve."
	case change.AnswerRulesTightened:
		return "This change only tightens the rules, which needs no approval."
	case change.AnswerOwnChange:
		return "You are the author of this change: " + someoneElse
	case change.AnswerOwnPush:
		return fmt.Sprintf("You pushed `%s`, the head of this change: %s", a.Head, someoneElse)
	case change.AnswerPusherUnknown:
		return fmt.Sprintf("GitHub does not say who pushed `%s`, so only an administrator can approve its changes to the rules. Ask one, or push the branch again.", a.Head)
	case change.AnswerRulesApproved:
		return fmt.Sprintf("%.12s may now change the rules. A new push, a different base branch, or changed rules on the base branch need a new approval.", a.Head)
	}
	return ""
}

// rebench writes the answers to /rebench.
func rebench(a change.Answer) string {
	const busy = "%s is queued or being measured already."
	switch a.Kind {
	case change.AnswerPlanMistakes:
		return "The policy or a manifest on the base branch has mistakes: nothing can be measured until they are fixed."
	case change.AnswerNoKernel:
		text := "There is nothing to measure: no kernel changed."
		if a.Workflow {
			text += " The workflow reads the approvals again and publishes the verdict again."
		}
		return text
	case change.AnswerWorkflowAsks:
		return "A workflow measures only what the policy asks: write only kernels and `rounds`."
	case change.AnswerUnknownKernel:
		return fmt.Sprintf("This change touches no kernel %s. It touches %s.", code(a.Word), names(a.Kernels))
	case change.AnswerUnknownDevice:
		if len(a.Devices) == 0 {
			return fmt.Sprintf("The policy asks for one run of a kernel, on any of its runners, so %s cannot be chosen. Leave `on` out.", code(a.Word))
		}
		return fmt.Sprintf("The policy does not ask for a run on %s. It asks for %s.", code(a.Word), names(a.Devices))
	case change.AnswerSeveralKernels:
		var folders []string
		for _, f := range a.Kernels {
			folders = append(folders, code(f))
		}
		return fmt.Sprintf("%d kernels are called %s: name the folder that you mean, %s.", len(folders), code(a.Word), strings.Join(folders, " or "))
	case change.AnswerKernelGone:
		return "There is nothing to measure: the kernel is gone."
	case change.AnswerNoProfile:
		return "No rule that applies here has a profile gate, so there is nothing to profile. Leave `profile` out."
	case change.AnswerSpent:
		return fmt.Sprintf("%s: %s.", names(a.Kernels), a.Quote)
	case change.AnswerRemeasuring:
		return fmt.Sprintf("Measuring %s from the start: a workflow keeps no evidence of earlier attempts. Each attempt at the same machine code is judged at half the error rate of the one before it.", names(a.Kernels))
	case change.AnswerBusy:
		return fmt.Sprintf(busy, names(a.Busy))
	case change.AnswerMoreRounds:
		text := "Measuring again; the new rounds add to the evidence."
		if len(a.Decided) > 0 {
			text += fmt.Sprintf(" The earlier rounds already decided the verdict on %s: more rounds cannot change it, nor can a commit that builds to the same machine code.", names(a.Decided))
		}
		if len(a.Busy) > 0 {
			text += " " + fmt.Sprintf(busy, names(a.Busy))
		}
		return text
	case change.AnswerExtraRun:
		return "This is an extra measurement, for information. It does not change the verdict, because the policy does not ask for it."
	case change.AnswerTuning:
		return fmt.Sprintf("Searching the variants and toggles of %s for a faster one. A second comment will have the result and the change to commit. The search changes no verdict, and a push ends it.", names(a.Kernels))
	case change.AnswerBisecting:
		return fmt.Sprintf("Searching for the commit that made %s slower or wrong. A second comment will have the result. The search changes no verdict, and a push ends it.", names(a.Kernels))
	case change.AnswerWhichKernel:
		return fmt.Sprintf("A search takes one kernel, and this change touches %s. Name one kernel, as in `/%s %s`.", names(a.Kernels), a.Command, strings.ReplaceAll(slices.Min(a.Kernels), "`", "'"))
	case change.AnswerSearchRuns:
		return fmt.Sprintf("A `/%s` of %s is already queued or running (`/cancel` ends it).", a.Command, names(a.Kernels))
	case change.AnswerCannotServe:
		return fenced("text", a.Quote)
	}
	return ""
}

// names lists kernels.
func names(all []string) string {
	var list []string
	for _, name := range all {
		list = append(list, code(name))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }
