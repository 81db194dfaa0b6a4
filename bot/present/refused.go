package present

import (
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// refused is a change that holds more than is read of one: nothing is known of its
// kernels, so it cannot pass.
func refused(plan *change.Plan) standing {
	items := make([]string, len(plan.Problems))
	for i, p := range plan.Problems {
		items[i] = "- " + report.EscapeProse(report.Clip(p.Message, 1000))
		if p.File != "" {
			items[i] = "- " + report.EscapeCode(place(p)) + ": " + report.EscapeProse(report.Clip(p.Message, 1000))
		}
	}
	return newStanding(signFail, completed, failure, "The change is more than is read", spill(items, leadRoom, "reasons")+
		"\nNothing was measured. Every change is read before anybody has approved it, so there are limits to how much that is.")
}
