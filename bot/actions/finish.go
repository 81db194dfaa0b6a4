package actions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// finish writes the results of the job: annotations, step summary, outputs and the exit status.
// trouble is the error that kept GitHub from showing the end.
func (s *session) finish(trouble error) (End, error) {
	checks := present.Checks(s.view())
	out := s.end()
	if len(s.beside) > 0 && out.Exit == exitPass && checks[0].Conclusion != "success" {
		// A branch may also require the job itself, and GitHub looks it up by commit.
		out = End{Verdict: gates.Defer, Reason: "same-head", Exit: exitDefer}
	}
	out.Results = s.results
	// GitHub shows the first ten annotations of a kind, so the most important come first.
	if title := checks[0].Title; out.Exit == exitPass {
		s.lines.note("kernelgate: " + title)
	} else {
		s.lines.say("error", title)
	}
	for _, err := range s.posts.Denied {
		s.lines.say("warning", err.Error())
	}
	if trouble != nil {
		s.lines.say("warning", fmt.Sprintf("GitHub does not show the end of this run: %v (run the job again)", trouble))
		out.Exit = max(out.Exit, exitError)
	}
	for _, c := range checks {
		for _, a := range c.Annotations {
			s.lines.annotate(a)
		}
	}
	if err := appendTo(s.env.summary, s.summary(checks[0])); err != nil {
		return out, err
	}
	return out, setOutputs(s.env.output, out)
}

// end returns the result of the kernels, unless a change of the rules waits for approval.
func (s *session) end() End {
	out := s.ofKernels()
	if out.Exit == exitPass && s.state.RulesWait(s.state.Current()) {
		return End{Verdict: gates.Defer, Reason: "rules", Exit: exitDefer}
	}
	return out
}

// ofKernels summarizes the runs. If one kernel has no verdict, the change has none.
func (s *session) ofKernels() End {
	plan := s.state.Current()
	switch {
	case plan == nil:
		return End{Verdict: gates.Error, Reason: "runner", Exit: exitError}
	case plan.UnknownMembers:
		return End{Verdict: gates.Defer, Reason: "unknown-member", Exit: exitDefer}
	case len(plan.Problems) > 0:
		return End{Verdict: gates.Error, Reason: "policy", Exit: exitInput}
	case plan.NoPolicy:
		return End{Verdict: gates.Pass, Reason: "no-policy"}
	case len(s.state.Runs) == 0:
		return End{Verdict: gates.Pass, Reason: "no-kernel"}
	case s.state.Held() && slices.ContainsFunc(s.state.Runs, change.Run.Unfinished):
		return End{Verdict: gates.Defer, Reason: "approval", Exit: exitDefer}
	}
	out := End{Verdict: gates.Pass}
	for _, r := range s.state.Runs {
		if r.Informs {
			continue // the comment has its verdict
		}
		one := End{Verdict: gates.Error, Reason: string(gates.ReasonRunner), Exit: exitError}
		if r.Result != nil && r.Result.Outcome == gates.Pass {
			one = End{Verdict: gates.Pass}
		}
		if r.Result != nil && r.Result.Outcome == gates.Defer {
			one = End{Verdict: gates.Defer, Reason: string(r.Result.Reason), Exit: exitDefer}
		}
		if r.Result != nil && !r.Result.Blocks() {
			one.Exit = exitPass // the outputs say what the verdict is
		}
		if one.Exit > out.Exit || one.Exit == out.Exit && out.Verdict == gates.Pass {
			out = one
		}
	}
	return out
}

// maxSummary is a little less than the size that GitHub shows for a step.
const maxSummary = 1<<20 - 1<<14

// summary returns the summary page of the job: the text of the required check, then each report.
func (s *session) summary(c present.Check) string {
	head := "# " + report.Escape(c.Name) + ": " + report.Escape(c.Title) + "\n\n" + strings.TrimSpace(c.Summary) + "\n\n" + s.unwritten()
	var verdicts []*gates.Verdict
	for _, r := range s.state.Runs {
		if v := s.verdicts[r.Job]; v != nil {
			verdicts = append(verdicts, v)
		}
	}
	for _, v := range verdicts {
		limit := max(1, (maxSummary-len(head))/len(verdicts))
		if len(s.state.Runs) == 1 { // the check's text has the rest
			head += report.Fold(report.FoldTitle, report.Markdown(v, report.Options{Part: report.Folded, MaxBytes: limit})) + "\n"
			continue
		}
		head += report.Markdown(v, report.Options{MaxBytes: limit}) + "\n"
	}
	return head
}

const permissions = "```yaml\npermissions:\n  contents: read\n  checks: write\n  statuses: write\n  pull-requests: write\n  issues: write\n```\n\n"

// unwritten lists what GitHub refused, and why.
func (s *session) unwritten() string {
	if len(s.posts.Denied) == 0 {
		return ""
	}
	text := "## Not written to GitHub\n\n"
	for _, err := range s.posts.Denied {
		text += "- " + report.EscapeProse(err.Error()) + "\n"
	}
	if s.state.Facts.Fork {
		return text + "\nGitHub gives a job for a fork's pull request a token that can only read, so neither verdict nor comment could be written. " +
			"A comment `/ok-to-test` or `/rebench` by someone with write access starts a job that can write.\n\n"
	}
	return text + "\nAdd this to the workflow:\n\n" + permissions
}
