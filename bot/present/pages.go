package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// linksShown is how many kernels' pages a comment names.
const linksShown = 10

// links leads to the pages of the runs.
func (v View) links() string {
	var list []string
	for _, r := range v.inOrder() {
		page := v.Pages[r.Job].URL
		if page == "" || r.Phase != change.Done {
			continue
		}
		if v.alone() != nil {
			return fmt.Sprintf("[Every sample and picture](%s).", page)
		}
		if len(list) < linksShown {
			list = append(list, fmt.Sprintf("[%s](%s)", report.Escape(report.Clip(r.Kernel, nameRunes)), page))
		}
	}
	if list == nil {
		return ""
	}
	return "Every sample and picture: " + strings.Join(list, ", ") + "."
}

// picture is the intervals on one scale, which bars of text do not have.
func (v View) picture(r change.Run) string {
	verdict, page := v.known(r), v.Pages[r.Job]
	if verdict == nil || page.Picture == "" {
		return ""
	}
	for _, c := range verdict.Comparisons {
		if c.Baseline != nil {
			return fmt.Sprintf("[![Each shape's speedup with its interval and its goal, on one scale](%s)](%s)\n", page.Picture, page.URL)
		}
	}
	return ""
}
