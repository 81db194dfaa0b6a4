package actions

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
)

// maxAttempts at one machine code. Each is judged at half the error rate of the one
// before it; further ones could hardly decide anything.
const maxAttempts = 6

// maxCommits bounds how many of the change's commits are looked through for attempts
// at the same machine code, beside those that the comment remembers: each costs a
// request.
const maxCommits = 15

// A mark says which attempt at which machine code a check is about. It is a hidden
// line at the end of the check's summary, written before the first round: what is
// cancelled or fails is counted by it too. Whoever may write checks can change it.
type mark struct {
	attempt       int
	code, sources string // names of their accounts
}

func (m mark) String() string {
	return fmt.Sprintf("<!-- kernelgate:attempt:%d:%s:%s -->\n", m.attempt, m.code, m.sources)
}

var markPattern = regexp.MustCompile(`<!-- kernelgate:attempt:([1-9][0-9]{0,2}):(code-[0-9]{1,18}-[0-9a-f]{32}):(sources-[0-9]{1,18}-[0-9a-f]{32}) -->\s*$`)

// readMark finds the mark at the end of a summary.
func readMark(summary string) (mark, bool) {
	found := markPattern.FindStringSubmatch(summary)
	if found == nil {
		return mark{}, false
	}
	n, err := strconv.Atoi(found[1])
	return mark{n, found[2], found[3]}, err == nil
}

// A counter is a job's record of one run. It keeps no evidence: every attempt is
// measured anew, under a number of its own, which the gates give half the error
// rate of the one before it.
type counter struct {
	*session
	job string
}

// Earlier knows of nothing to go on with.
func (c counter) Earlier(context.Context, runners.Code) (runners.Earlier, error) {
	return runners.Earlier{}, nil
}

// Begin counts the attempts at the machine code, or at its sources, that the checks
// of this commit and of the change's earlier ones tell of.
func (c counter) Begin(ctx context.Context, code runners.Code) (int, error) {
	i := slices.IndexFunc(c.state.Runs, func(r change.Run) bool { return r.Job == c.job })
	run := &c.state.Runs[i]
	matter := change.MatterOf(c.state.ID, c.state.Plan, *run)
	now := mark{run.Attempt, matter.OfCode(code), matter.OfSources(run.Sources, code)}
	name := ""
	for _, check := range present.Checks(c.view()) {
		if _, folder, err := present.ParseExternalID(check.ExternalID); err == nil && folder == run.Folder {
			name = check.Name
		}
	}
	for _, head := range c.heads() {
		marks, err := c.marked(ctx, name, head)
		if err != nil {
			return 0, fmt.Errorf("reading the checks of %.12s: %w", head, err)
		}
		for _, m := range marks {
			if m.code == now.code || m.sources == now.sources {
				now.attempt = max(now.attempt, m.attempt+1)
			}
		}
	}
	if now.attempt > maxAttempts {
		return 0, fmt.Errorf("this machine code was measured %d times already, and a further attempt could prove nothing (change what the compiler emits)", maxAttempts)
	}
	run.Attempt = now.attempt
	c.marks[run.Job] = now.String()
	return now.attempt, c.posted(c.posts.Check(ctx, c.view(), name))
}

// heads is the commits of the change that may have been measured: the newest that
// git tells of, and those that the comment remembers, for a force-push may have
// thrown them out.
func (s *session) heads() []string {
	heads := append([]string{s.state.Facts.Head}, s.commits...)
	for _, r := range s.state.Past {
		if !slices.Contains(heads, r.Head) {
			heads = append(heads, r.Head)
		}
	}
	return slices.Compact(heads)
}

// fewer bounds the rounds, and says so where that matters.
func fewer(p *policies.Policy, rounds int) (note string) {
	if rounds <= 0 || !p.AtMost(rounds) {
		return ""
	}
	return fmt.Sprintf("At most %d rounds were allowed.", max(rounds, policies.MinRounds))
}
