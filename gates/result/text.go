package result

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// Text is the result for a reader, in Markdown: for a model, or for a person without a browser.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.Outcome)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	fmt.Fprintf(&b, ": %s\n", r.Summary)
	if len(r.Shapes) > 0 {
		b.WriteString("\n| shape | role | status | baseline µs | candidate µs | speedup |\n| --- | --- | --- | ---: | ---: | ---: |\n")
		for _, w := range r.sums() {
			if w.Role == gates.RoleInfo {
				continue
			}
			label := gates.StepLabel
			if w == r.WeightedWarm {
				label = gates.WarmStepLabel
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", label, w.Role, w.Status, short(w.Baseline), short(w.Candidate), number.Gain(w.Speedup.Mid, w.Speedup.Low, w.Speedup.High))
		}
		for _, s := range r.Shapes {
			speedup := ""
			if s.Speedup != nil {
				speedup = number.Gain(s.Speedup.Mid, s.Speedup.Low, s.Speedup.High)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.Shape, s.Role, s.Status, short(s.Baseline), short(s.Candidate), speedup)
		}
	}
	if len(r.Failures) > 0 {
		b.WriteString("\nFailures:\n")
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "- %s", f.Gate)
			if f.Shape != "" {
				fmt.Fprintf(&b, ", %s", f.Shape)
			}
			fmt.Fprintf(&b, ": %s, %d", f.Kind, f.Count)
			if f.FirstBad != nil {
				fmt.Fprintf(&b, "; first: %s", f.FirstBad.where())
			}
			b.WriteString("\n")
		}
	}
	if len(r.ToPass) > 0 {
		b.WriteString("\nTo pass:\n")
		for _, step := range r.ToPass {
			fmt.Fprintf(&b, "- %s\n", step)
		}
	}
	if r.Budget != nil {
		fmt.Fprintf(&b, "\nBudget of %s: %d claims spent, %d left.", r.Budget.Day, r.Budget.Claimed, r.Budget.Left)
		if r.Budget.Advice != "" {
			b.WriteString(" " + r.Budget.Advice)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (f *FirstBad) where() string {
	text := f.Text
	if f.File != "" {
		text = fmt.Sprintf("%s:%d: %s", f.File, f.Line, text)
	}
	if f.Seed != nil {
		text = fmt.Sprintf("%s, seed %d, %s inputs: %s", f.Dims, *f.Seed, f.Inputs, text)
	}
	return text
}

func short(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.4g", *x)
}
