package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// why writes the answers to /why.
func why(a change.Answer) string {
	var parts []string
	for _, r := range a.Reasons {
		text := report.MarkdownWhy(r.Shapes)
		if len(a.Reasons) > 1 {
			text = fmt.Sprintf("#### %s\n\n%s", report.EscapeCode(report.Clip(report.Plain(r.Kernel), nameRunes)), text)
		}
		parts = append(parts, strings.TrimSpace(text))
	}
	switch a.Kind {
	case change.AnswerReasons:
		if len(a.Kernels) > 0 {
			parts = append(parts, fmt.Sprintf("Profiling both sides of %s: the comment will have the explanation, among the extra measurements. It decides nothing.", names(a.Kernels)))
		}
		if len(a.Busy) > 0 {
			parts = append(parts, fmt.Sprintf("%s is queued or being measured already. Its report explains times that differ, unless the policy says `explain: none`.", names(a.Busy)))
		}
	case change.AnswerWhyNeedsRun:
		parts = append(parts, fmt.Sprintf("No evidence explains %s. Profiling both sides takes the time of a runner, so it needs the role `%s` in this repository, and you have `%s`.", names(a.Kernels), a.Needs, a.Has))
	default:
		return ""
	}
	return strings.Join(parts, "\n\n")
}
