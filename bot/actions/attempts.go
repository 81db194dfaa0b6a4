package actions

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// maxAttempts at one machine code. Each is judged at half the error rate of the one
// before it; further ones could hardly decide anything.
const maxAttempts = 6

// A mark says that an attempt at a machine code began. It is a hidden line at the end of
// a check's summary. The check is on the first commit of the base branch, where it stays
// whatever is pushed, force-pushed or edited: GitHub deletes no checks. It is written
// before the first round, so an attempt that is cancelled or fails counts too. Whoever
// may write checks can change it.
type mark struct {
	pull          int    // the pull request; 0 for a merge group, which brings no machine code of its own
	code, sources string // names of their accounts
	list          string // name of the author's list: codes against the same baseline
	hash          string // of the machine code in the list, see change.Matter.Listed
}

func (m mark) String() string {
	return fmt.Sprintf("<!-- kernelgate:attempt:%d:%s:%s:%s:%s -->\n", m.pull, m.code, m.sources, m.list, m.hash)
}

var markPattern = regexp.MustCompile(`<!-- kernelgate:attempt:(0|[1-9][0-9]{0,8}):(code-[0-9]{1,18}-[0-9a-f]{32}):(sources-[0-9]{1,18}-[0-9a-f]{32}):(authorcodes-[0-9]{1,18}-[0-9a-f]{32}):([0-9a-f]{32}) -->\s*$`)

// readMark finds the mark at the end of a summary.
func readMark(summary string) (mark, bool) {
	found := markPattern.FindStringSubmatch(summary)
	if found == nil {
		return mark{}, false
	}
	n, err := strconv.Atoi(found[1])
	return mark{n, found[2], found[3], found[4], found[5]}, err == nil
}

// count numbers the last of the marks, which are in the order in which they were
// written: how many attempts at its machine code or its sources there are, and which
// distinct machine code it is of its pull request or, if that is more, of its author
// against the same baseline.
func count(marks []mark) runners.Attempt {
	now := marks[len(marks)-1]
	a := runners.Attempt{CodeNumber: 1}
	var ofPull, ofAuthor []string
	for _, m := range marks {
		if m.code == now.code || m.sources == now.sources {
			a.Number++
		}
		if m.pull == 0 {
			continue
		}
		if m.pull == now.pull && !slices.Contains(ofPull, m.hash) {
			ofPull = append(ofPull, m.hash)
		}
		if m.list == now.list && !slices.Contains(ofAuthor, m.hash) {
			ofAuthor = append(ofAuthor, m.hash)
		}
	}
	a.CodeNumber = max(a.CodeNumber, 1+slices.Index(ofPull, now.hash), 1+slices.Index(ofAuthor, now.hash))
	return a
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

// Begin writes a mark, and counts it among those that are there. What cannot be counted
// is not measured. Only a token that may not write checks, as a fork's has, leaves
// nothing to count: then the number of the job's own runs is what there is.
func (c counter) Begin(ctx context.Context, code runners.Code) (runners.Attempt, error) {
	i := slices.IndexFunc(c.state.Runs, func(r change.Run) bool { return r.Job == c.job })
	run := &c.state.Runs[i]
	a, err := c.written(ctx, *run, code)
	if err != nil {
		return a, fmt.Errorf("reading the attempts from the checks of the repository's first commit %.12s: %w", c.root, err)
	}
	if a.Number = max(a.Number, run.Attempt); a.Number > maxAttempts {
		return a, fmt.Errorf("this machine code was measured %d times already, and a further attempt could prove nothing (change what the compiler emits)", maxAttempts)
	}
	run.Attempt = a.Number
	return a, nil
}

// written writes the mark of an attempt, and reads all of them. GitHub numbers checks in
// the order in which they were made, so two jobs at once never get the same number.
func (c counter) written(ctx context.Context, run change.Run, code runners.Code) (runners.Attempt, error) {
	uncounted := runners.Attempt{CodeNumber: 1}
	if !c.posts.MayCheck() {
		return uncounted, nil
	}
	matter := attempts.KeyOf(c.state.ID, c.state.Plan, run)
	author := c.state.Facts.Author
	now := mark{c.state.ID.Number, matter.OfCode(code), matter.OfSources(run.Sources, code), matter.OfAuthor(author, code), matter.Listed(code)}
	name := clipBytes(report.Plain(fmt.Sprintf("%s attempts by %s / %s", c.state.Plan.Check, author, run.Folder)), maxMarkName)
	id, err := c.hub.CreateCheck(ctx, c.env.repo, client.Check{
		Name: name, HeadSHA: c.root, DetailsURL: c.env.runURL(), Status: "completed", Conclusion: "neutral", Title: "One attempt at measuring a change",
		Summary: fmt.Sprintf("kernelgate counts here how often changes to %s were measured, because no push moves this commit. This attempt was for %.12s. It says nothing about this commit.\n\n%s",
			report.Escape(run.Folder), run.Head, now),
	})
	if err != nil && !c.hub.UsesChecks() { // a verdict can be written, so its attempts are counted
		return uncounted, fmt.Errorf("the workflow must grant checks: write, since attempts are counted in checks: %w", err)
	}
	if err != nil {
		return uncounted, c.posts.Unchecked(err)
	}
	there, err := c.hub.ListChecks(ctx, c.env.repo, c.root, name)
	if err != nil {
		return uncounted, err
	}
	slices.SortFunc(there, func(a, b client.ExistingCheck) int { return cmp.Compare(a.ID, b.ID) })
	var marks []mark
	for _, t := range there {
		if m, ok := readMark(t.Summary); ok && t.ID < id {
			marks = append(marks, m)
		}
	}
	return count(append(marks, now)), nil
}

// maxMarkName keeps the name of a check well below the 255 bytes that a database gives it. Marks
// of different folders may share a name: each says what it is about.
const maxMarkName = 200

// clipBytes shortens a text to so many bytes, and cuts no character apart.
func clipBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const sign = "…"
	end := most - len(sign)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + sign
}

// fewer bounds the rounds, and says so where that matters.
func fewer(p *policy.Policy, rounds int) (note string) {
	if rounds <= 0 || !p.AtMost(rounds) {
		return ""
	}
	return fmt.Sprintf("At most %d rounds were allowed.", max(rounds, policy.MinRounds))
}
