package submission

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

// whyOf explains a result by a verdict without secret cases. A probe does not get the sentences about
// times and energy, which have exact figures.
func whyOf(done *Submission, v *gates.Verdict) *Why {
	probe := done.Intent == result.Probe
	w := &Why{Handle: done.Handle, Gates: []Gate{}}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", outcomeOf(done.Result), done.Result.Summary)
	for _, g := range v.Gates {
		one := Gate{Gate: string(g.Gate), Status: string(g.Status), Required: g.Required, Text: g.Text}
		for _, d := range g.Details {
			one.Details = append(one.Details, d.Text)
		}
		if probe && (g.Gate == gates.GatePerformance || g.Gate == gates.GateEnergy) {
			one.Text, one.Details = "The exact figures are not told to a probe; rounded times are in the verdict.", nil
		}
		w.Gates = append(w.Gates, one)
		if g.Status != gates.NotRun {
			fmt.Fprintf(&b, "- %s (%s): %s\n", one.Gate, one.Status, one.Text)
		}
	}
	w.Resources = v.Resources
	b.WriteString(resourcesText(v.Resources))
	for _, d := range v.Findings {
		text := messageOf(d)
		w.Messages = append(w.Messages, text)
		fmt.Fprintf(&b, "- %s\n", text)
	}
	for _, s := range done.Result.Shapes {
		if s.Roofline != nil {
			w.Roofline = append(w.Roofline, Share{s.Shape, *s.Roofline})
			fmt.Fprintf(&b, "- %s reaches %.2g of what the device can do\n", s.Shape, *s.Roofline)
		}
	}
	w.Text = b.String()
	return w
}

// resourcesText lists what both sides need.
func resourcesText(rows []gates.ResourceRow) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "- %s: %s → %s %s\n", r.Name, figure(r.Baseline), figure(r.Candidate), r.Unit)
	}
	return b.String()
}

func outcomeOf(r *result.Result) string {
	if r.Reason == "" {
		return string(r.Outcome)
	}
	return fmt.Sprintf("%s (%s)", r.Outcome, r.Reason)
}

func figure(x *float64) string {
	if x == nil {
		return "?"
	}
	return fmt.Sprintf("%g", *x)
}
