package submission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
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
	for _, cause := range v.Why {
		one := causeOf(cause, probe)
		w.Causes = append(w.Causes, one)
		b.WriteString(one.line())
	}
	w.Text = b.String()
	return w
}

// causeOf is the explanation of one shape. A probe gets its figures with two digits, as all of its figures.
func causeOf(w gates.Why, probe bool) Cause {
	c := Cause{Shape: w.Shape, Text: w.Sentence, Cause: w.Cause, Static: w.Static, Occupancy: w.Lift, Note: w.Note}
	if probe {
		w.Rows = slices.Clone(w.Rows)
		for i := range w.Rows {
			w.Rows[i].Baseline, w.Rows[i].Candidate = rounded(w.Rows[i].Baseline), rounded(w.Rows[i].Candidate)
		}
		c.Text = facts.Explained{Explanation: w.Explanation}.Sentence()
	}
	if l := w.Baseline.Limiter; l != nil {
		c.Baseline = l.Name
	}
	if l := w.Candidate.Limiter; l != nil {
		c.Candidate = l.Name
	}
	for _, r := range w.Rows {
		c.Measures = append(c.Measures, Measure{r.Name, r.Unit, r.Baseline, r.Candidate, r.Moved})
	}
	return c
}

// rounded is a figure for a probe. Zero says that something does not happen at all.
func rounded(v *float64) *float64 {
	if v != nil && *v == 0 {
		return v
	}
	return result.TwoDigits(v)
}

// line is the explanation for a reader: the sentence, and the counters behind it.
func (c Cause) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- why %s differs: %s\n", c.Shape, c.Text)
	for _, m := range c.Measures {
		still := ""
		if !m.Moved {
			still = " (did not move)"
		}
		fmt.Fprintf(&b, "  - %s: %s → %s%s\n", m.Name, facts.Figure(m.Baseline, m.Unit), facts.Figure(m.Candidate, m.Unit), still)
	}
	for _, more := range []string{c.Occupancy, c.Note} {
		if more != "" {
			fmt.Fprintf(&b, "  - %s\n", more)
		}
	}
	return b.String()
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
