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
	w := v.Weighted
	if w == nil || v.Outcome != gates.Pass && v.Outcome != gates.Defer || !number.Finite(w.Speedup.Value) {
		return ""
	}
	var b strings.Builder
	from := ""
	if len(w.Contexts) > 1 {
		from = ", from a cold and from a warm cache"
	}
	fmt.Fprintf(&b, "%s (%s%s): ", capital(gates.StepLabel), terms(w), from)
	if w.Role == gates.RoleInfo {
		fmt.Fprintf(&b, "%s, %s", number.FromTo(w.Baseline, w.Candidate), w.Speedup.Gain())
		if s := w.Speedup.Interval(); s != "" {
			b.WriteString(" " + s)
		}
		b.WriteString(", for information; ")
	}
	b.WriteString(savedWords(w.Saved))
	if s := w.Step; s != nil {
		fmt.Fprintf(&b, ". The kernel takes %s of a step of %s in the trace, so the step as a whole gains %s", number.Share(s.Share), number.Time(s.Micros), s.Speedup.Gain())
		if interval := s.Speedup.Interval(); interval != "" {
			b.WriteString(" " + interval)
		}
		if s.Most > 0 {
			fmt.Fprintf(&b, "; if the kernel took no time, it would gain %s", number.Gain(s.Most, nil, nil))
		}
	}
	if w.Unmatched > 0 {
		fmt.Fprintf(&b, ". %s launches per step are at sizes that no shape has, and are not counted", amountOfLaunches(w.Unmatched))
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
