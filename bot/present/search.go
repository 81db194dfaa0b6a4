package present

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// SearchReport is the comment with the result of a search.
func (v View) SearchReport(r change.Run) string {
	s, found := v.State, v.Reports[r.Job]
	by := ""
	if i := slices.IndexFunc(s.Commands, func(c change.Command) bool { return c.ID == r.Command }); i >= 0 {
		by = " — " + report.Escape("@"+s.Commands[i].By)
	}
	top := ReplyMarker(r.ReportID()) + "\n> " + report.EscapeCode(report.Clip(report.Plain(r.Search.String()), 300)) + by + "\n\n"
	return top + cut(mute(strings.TrimSpace(v.searchText(r, found, v.Pages[r.Job].URL))), maxComment-len(top)-100) + "\n"
}

// searchText is the result. There is no report if the search ended with a fault.
func (v View) searchText(r change.Run, found *search.Report, page string) string {
	if found == nil {
		return fmt.Sprintf("%s The search of %s ended without a result: %s", signError, kernelCode(r), report.Escape(report.Clip(r.Result.Line, 500)))
	}
	sign := signInform
	if found.Found {
		sign = signPass
		if found.Kind == search.Bisect {
			sign = signFail
		}
	}
	parts := []string{"### " + sign + " " + report.EscapeProse(report.Clip(found.Headline, 500))}
	if found.Diff != "" {
		parts = append(parts, "On the runner, the gate passes this candidate against the head of this pull request, with fresh rounds and inputs. Commit this change, and the gate will judge the pull request with it:",
			fenced("diff", found.Diff))
	}
	if found.First != nil {
		parts = append(parts, "**Commit:** "+v.fullCommit(found.First.SHA)+". Nothing was changed: fix or revert this commit.")
	}
	title := fmt.Sprintf("What was measured on %s (%.0f s)", report.EscapeSummary(report.Clip(found.Device, 100)), found.Seconds)
	parts = append(parts, details(title, fenced("text", found.Text)))
	if page != "" {
		parts = append(parts, "[All candidates, and the course of the search]("+page+")")
	}
	return strings.Join(parts, "\n\n")
}

// fenced returns a text as a code block. Nothing in the text can end the block.
func fenced(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(strings.ReplaceAll(text, "```", "'''"), "\n") + "\n```\n"
}

// NewReports are the searches whose report GitHub does not show yet.
func (v View) NewReports() []change.Run {
	return slices.DeleteFunc(slices.Clone(v.State.Searches), func(r change.Run) bool { return !r.Reports() })
}
