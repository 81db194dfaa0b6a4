package grammar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// An entry of the grammar holds everything about one command except its effect. usage is Markdown
// for a code span.
type entry struct {
	of          Command // an empty value of its type
	needs       func(policy.Commands) policy.Role
	anywhere    bool // a workflow can execute it, although it does not run permanently
	usage, does string
	read        func(arguments string) (Command, error)
}

var grammar = []entry{
	{Rebench{}, func(p policy.Commands) policy.Role { return p.Rebench }, true,
		"/rebench [kernel…] [on DEVICE] [shapes=a,b] [seeds=0,1] [rounds=N] [vs=REF|self] [profile]",
		"Measures the head once more: every changed kernel, or those named (by name or folder), on every device of the policy or on one. `vs=self` measures the noise.", readRebench},
	{Why{}, func(p policy.Commands) policy.Role { return p.Explain }, true,
		"/why [kernel…] [shape…]",
		"Says why a kernel became faster or slower. Where no evidence has it, it profiles both sides, which needs the role of `/rebench`.", readWhy},
	{Tune{}, func(p policy.Commands) policy.Role { return p.Tune }, false,
		"/tune [kernel] [on DEVICE] [shapes=a,b] [variants=a,b] [budget=10m] [candidates=100] [proposer=local]",
		"Searches the variants and toggles of a kernel for a faster one, and answers with a change to commit.", readTune},
	{Bisect{}, func(p policy.Commands) policy.Role { return p.Bisect }, false,
		"/bisect [kernel] [on DEVICE] [GOOD..BAD] [shapes=a,b] [rounds=N]",
		"Finds the commit that made a kernel slower or wrong: among the commits of this pull request, or in the range.", readBisect},
	{Cancel{}, func(p policy.Commands) policy.Role { return p.Cancel }, false,
		"/cancel", "Stops the run and frees the GPU.", without(Cancel{})},
	{Explain{}, func(p policy.Commands) policy.Role { return p.Explain }, true,
		"/explain", "Says which rule applies and what it asks.", without(Explain{})},
	{Override{}, func(p policy.Commands) policy.Role { return p.Override }, false,
		"/override <reason>", "Lets this commit pass in spite of the gates. Name and reason are recorded; the next push ends it.", readOverride},
	{OKToTest{}, func(p policy.Commands) policy.Role { return p.OKToTest }, true,
		"/ok-to-test <commit>", "Lets this one commit of a fork reach a runner. Write its full id.", readOKToTest},
	{ApprovePolicy{}, func(p policy.Commands) policy.Role { return p.ApprovePolicy }, true,
		"/approve-policy <commit>", "Lets this one commit change the policy, a manifest or a reference. Write its full id.", readApprovePolicy},
	{ShowHelp{}, func(p policy.Commands) policy.Role { return p.Help }, true,
		"/help", "Lists the commands.", without(ShowHelp{})},
}

func entryOf(name string) (entry, bool) {
	i := slices.IndexFunc(grammar, func(g entry) bool { return g.of.Name() == name })
	if i < 0 {
		return entry{}, false
	}
	return grammar[i], true
}

// Needs returns the role that the author of a command must have under the policy.
func Needs(c Command, roles policy.Commands) policy.Role {
	g, ok := entryOf(c.Name())
	if !ok {
		return "" // nobody may run it
	}
	return g.needs(roles)
}

// Followed reports whether a command can be executed: by a workflow, or by a bot that runs
// permanently.
func Followed(name string, workflow bool) bool {
	g, ok := entryOf(name)
	return ok && (g.anywhere || !workflow)
}

// Help lists the commands that can be executed, with the role that the policy requires, as
// Markdown.
func Help(roles policy.Commands, workflow bool) string {
	var b strings.Builder
	b.WriteString("| comment | what it does | needs |\n| --- | --- | --- |\n")
	for _, g := range grammar {
		if workflow && !g.anywhere {
			continue
		}
		needs := cmp.Or(string(g.needs(roles)), "nobody may")
		// A vertical bar ends a table cell, even in a code span.
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(g.usage, "|", `\|`), g.does, needs)
	}
	b.WriteString("\nOnly the first line of a comment that starts with `/` is read, and only if GitHub shows it as plain text, not as a quote, code or HTML. An edited comment is not read.\n")
	return b.String()
}
