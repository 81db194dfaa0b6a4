package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// maxTerms is how many shapes the sentence about a step names.
const maxTerms = 4

// WeightedWords says what the change saves of a step, and what that means for the step as a whole; "" where the manifest has no
// weights or the times are no comparison.
func WeightedWords(v *gates.Verdict) string {
	if v.Outcome != gates.Pass && v.Outcome != gates.Defer {
		return ""
	}
	var said []string
	unmatched, before := 0.0, (*gates.WholeStep)(nil)
	for _, w := range v.Sums() {
		if number.Finite(w.Speedup.Value) {
			said, unmatched = append(said, sumWords(w, before)), w.Unmatched
			before = w.Step
		}
	}
	if unmatched > 0 && len(said) > 0 {
		said = append(said, amountOfLaunches(unmatched)+" launches per step are at sizes that no shape has, and are not counted.")
	}
	return strings.Join(said, " ")
}

// sumWords is the sentences about one sum. What is the same of the sum before is not said again.
func sumWords(w *gates.WeightedSpeed, before *gates.WholeStep) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): ", capital(w.Comparison().Shape), terms(w))
	if w.Role == gates.RoleInfo {
		fmt.Fprintf(&b, "%s, %s", number.FromTo(w.Baseline, w.Candidate), w.Speedup.Gain())
		if s := w.Speedup.Interval(); s != "" {
			b.WriteString(" " + s)
		}
		b.WriteString(", for information; ")
	}
	b.WriteString(savedWords(w.Saved))
	if s := w.Step; s != nil {
		first := before == nil
		switch {
		case first:
			fmt.Fprintf(&b, ". The kernel takes %s of a step of %s in the trace, so the step as a whole gains %s", number.Share(s.Share), number.Time(s.Micros), s.Speedup.Gain())
		case before.Share != s.Share: // the trace does not say how long the kernel takes, so each sum has its own share
			fmt.Fprintf(&b, ". By these times it takes %s of the step, so the step as a whole gains %s", number.Share(s.Share), s.Speedup.Gain())
		default:
			fmt.Fprintf(&b, ", and the step as a whole gains %s", s.Speedup.Gain())
		}
		if interval := s.Speedup.Interval(); interval != "" {
			b.WriteString(" " + interval)
		}
		if first && s.Most > 0 {
			fmt.Fprintf(&b, "; if the kernel took no time, it would gain %s", number.Gain(s.Most, nil, nil))
		}
	}
	return b.String() + "."
}

// savedWords is such as "saves 36.0 µs per step [34.1 µs, 38.0 µs]".
func savedWords(s gates.Span) string {
	verb, value, low, high := "saves ", s.Value, s.Lower, s.Upper
	if value < 0 {
		verb, value = "costs ", -value
		low, high = negated(s.Upper), negated(s.Lower)
	}
	said := verb + micros(value) + " per step"
	if low != nil && high != nil {
		said += fmt.Sprintf(" [%s, %s]", micros(*low), micros(*high))
	}
	return said
}

// micros is a difference of times, which may be negative or zero.
func micros(x float64) string {
	switch {
	case x < 0:
		return minus + number.Time(-x)
	case x == 0:
		return "0" + string(nbsp) + "µs"
	}
	return number.Time(x)
}

func negated(x *float64) *float64 {
	if x == nil {
		return nil
	}
	return new(-*x)
}

// terms is such as "36 × small, 1 × mission".
func terms(w *gates.WeightedSpeed) string {
	var all []string
	for i, s := range w.Shapes {
		if i == maxTerms {
			all = append(all, fmt.Sprintf("and %d more", len(w.Shapes)-i))
			break
		}
		all = append(all, amountOfLaunches(s.Launches)+string(nbsp)+"×"+string(nbsp)+Clip(Plain(s.Shape), shapeRunes))
	}
	return strings.Join(all, ", ")
}

func amountOfLaunches(x float64) string { return number.Significant(x, 4) }
