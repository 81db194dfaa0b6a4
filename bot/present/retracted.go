package present

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates/report"
)

// retracted is the checks on the head that GitHub shows as concluded, and whose conclusion is not about this
// change as it is now: it was reached for a different base or different rules, or by a change that is closed. While
// there is no plan, each of them could let the head in, under whichever name the base requires.
func (v View) retracted(wanted []Check) []Check {
	s := v.State
	if !s.Facts.Open || v.plan() != nil {
		return nil
	}
	var out []Check
	for _, name := range slices.Concat(s.Outdated(), v.Shown) {
		same := func(c Check) bool { return c.Name == name }
		if slices.ContainsFunc(wanted, same) || slices.ContainsFunc(out, same) {
			continue
		}
		out = append(out, Check{Check: client.Check{
			Name: name, HeadSHA: s.Facts.Head, ExternalID: externalID(s.ID, change.KernelKey{}), DetailsURL: v.RunURL, Status: inProgress, Title: readingTitle,
			Summary: "The last conclusion of this check was for a different base branch, or for different rules. The bot is reading the change again.\n",
		}, State: "pending", Mark: "unplanned"})
	}
	return out
}

// withVoided says which decisions about the head do not hold any more, and why.
func (v View) withVoided(at checkStatus) checkStatus {
	s := v.State
	if !s.Facts.Open || len(s.Voided) == 0 {
		return at
	}
	var items []string
	for _, d := range s.Voided {
		why := fmt.Sprintf("it was given for the base branch %s", baseName(d.For.Base))
		if d.For.Base == s.Facts.Base {
			why = "the rules of the base branch have changed since"
		}
		if item := fmt.Sprintf("- %s by %s: %s.", report.EscapeCode("/"+d.Command), report.Escape("@"+d.By), why); !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	at.lead = joined(at.lead, "Decisions that do not hold any more:\n\n"+strings.Join(items, "\n")+"\n")
	return at
}
