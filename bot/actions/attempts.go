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

// maxAttempts is the limit of attempts at one machine code. Each attempt is judged at half the
// error rate of the previous one, so more attempts could hardly decide anything.
const maxAttempts = 6

// Attempts are marks: hidden lines, each at the end of a check's summary. The check is on the first
// commit of the base branch: no push, force-push or edit moves it, and GitHub never deletes checks.
// The mark is written before the first round, so cancelled and failed attempts count, too. Anyone
// who may write checks can change it.

// writeMark returns a mark as text.
func writeMark(m attempts.Mark) string {
	return fmt.Sprintf("<!-- kernelgate:attempt:%d:%s:%s:%s:%s -->\n", m.Pull, m.Code, m.Sources, m.Author, m.Listed)
}

var markPattern = regexp.MustCompile(`<!-- kernelgate:attempt:(0|[1-9][0-9]{0,8}):(code-[0-9]{1,18}-[0-9a-f]{32}):(sources-[0-9]{1,18}-[0-9a-f]{32}):(authorcodes-[0-9]{1,18}-[0-9a-f]{32}):([0-9a-f]{32}) -->\s*$`)

// readMark parses the mark at the end of a summary.
func readMark(summary string) (attempts.Mark, bool) {
	found := markPattern.FindStringSubmatch(summary)
	if found == nil {
		return attempts.Mark{}, false
	}
	n, err := strconv.Atoi(found[1])
	return attempts.Mark{Pull: n, Code: found[2], Sources: found[3], Author: found[4], Listed: found[5]}, err == nil
}

// A counter implements runners.Record for one run of a job. It keeps no evidence: every attempt is
// measured from the start under a new number, and the gates give it half the error rate of the
// previous one.
type counter struct {
	*session
	job string
}

// Earlier returns no evidence to continue from.
func (c counter) Earlier(context.Context, runners.Code) (runners.Earlier, error) {
	return runners.Earlier{}, nil
}

// Begin writes a mark and counts it together with the existing ones. If the attempts cannot be
// counted, nothing is measured. The exception is a token that may not write checks, such as a
// fork's: then the number of the job's runs has to do.
func (c counter) Begin(ctx context.Context, code runners.Code) (runners.Attempt, error) {
	i := slices.IndexFunc(c.state.Runs, func(r change.Run) bool { return r.Job == c.job })
	run := &c.state.Runs[i]
	a, err := c.written(ctx, *run, code)
	if err != nil {
		return a, fmt.Errorf("reading the attempts from the checks of the repository's first commit %.12s: %w", c.root, err)
	}
	if a.Number = max(a.Number, run.Attempt); a.Number > maxAttempts {
		return a, fmt.Errorf("this machine code was measured %d times already, and one more attempt cannot prove anything (change what the compiler emits)", maxAttempts)
	}
	run.Attempt = a.Number
	return a, nil
}

// written writes the mark of an attempt and reads all marks. GitHub numbers checks in the order of
// their creation, so two concurrent jobs never get the same number.
func (c counter) written(ctx context.Context, run change.Run, code runners.Code) (runners.Attempt, error) {
	uncounted := runners.Attempt{CodeNumber: 1}
	if !c.posts.MayCheck() {
		return uncounted, nil
	}
	author, now := c.state.Facts.Author, attempts.MarkOf(c.state, run, code)
	name := clipBytes(report.Plain(fmt.Sprintf("%s attempts by %s / %s", c.state.Plan.Check, author, run.Folder)), maxMarkName)
	id, err := c.hub.CreateCheck(ctx, c.env.repo, client.Check{
		Name: name, HeadSHA: c.root, DetailsURL: c.env.runURL(), Status: "completed", Conclusion: "neutral", Title: "One attempt at measuring a change",
		Summary: fmt.Sprintf("kernelgate counts here how often changes to %s were measured, because no push moves this commit. This attempt was for %.12s. It says nothing about this commit.\n\n%s",
			report.Escape(run.Folder), run.Head, writeMark(now)),
	})
	// The job can write a verdict, so its attempts must be counted.
	if err != nil && !c.hub.UsesChecks() {
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
	var marks []attempts.Mark
	for _, t := range there {
		if m, ok := readMark(t.Summary); ok && t.ID < id {
			marks = append(marks, m)
		}
	}
	return attempts.Count(append(marks, now)), nil
}

// maxMarkName keeps the name of a check well below the 255 bytes that a database may allow. Marks
// of different folders may share a name, because each mark says what it is about.
const maxMarkName = 200

// clipBytes truncates a text to a number of bytes, at a character boundary.
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

// fewer limits the rounds, and returns a note if that changes the policy.
func fewer(p *policy.Policy, rounds int) (limited *policy.Policy, note string) {
	if rounds <= 0 {
		return p, ""
	}
	limited, cut := p.AtMost(rounds)
	if cut {
		note = fmt.Sprintf("At most %d rounds were allowed.", max(rounds, policy.MinRounds))
	}
	return limited, note
}
