package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// ChoiceReport returns a text for a terminal: the speedup of every variant on every shape, and the choose
// list.
func (s *Session) ChoiceReport(width int) string {
	var b strings.Builder
	times := s.Times
	h := s.Result.Header
	fmt.Fprintf(&b, "%s on %s: %s on %s, %.0f s of measuring\n", h.Space.Kernel, h.Device, number.Plural(len(h.Space.Variants), "variant"), number.Plural(len(h.Shapes), "shape"), s.Result.Seconds)
	fmt.Fprintf(&b, "Speedup of each variant over the incumbent %s:\n\n", h.Space.Start)
	var variants []string
	for _, v := range h.Space.Variants {
		if slices.ContainsFunc(h.Shapes, func(shape string) bool { _, ok := times[shape][v]; return ok }) {
			variants = append(variants, v)
		}
	}
	head := append([]string{"shape"}, variants...)
	if s.Choice != nil {
		head = append(head, "served by", "behind the best")
	}
	rows := [][]string{head}
	for _, shape := range h.Shapes {
		row := []string{shape}
		for _, v := range variants {
			text := "–"
			if x, ok := times[shape][v]; ok {
				text = number.Speedup(1/x - 1)
			}
			row = append(row, text)
		}
		if s.Choice != nil {
			i := slices.IndexFunc(s.Choice.Served, func(one Served) bool { return one.Shape == shape })
			if i >= 0 {
				row = append(row, s.Choice.Served[i].Variant, number.Share(s.Choice.Served[i].Behind))
			}
		}
		rows = append(rows, row)
	}
	writeTable(&b, rows, max(width, 100))
	for _, t := range s.Result.Tried {
		if t.Status == Failed {
			fmt.Fprintf(&b, "%s failed (%s): %s\n", t.Variant, t.Gate, t.Why)
		}
	}
	b.WriteString("\n")
	switch {
	case s.Choice == nil:
		fmt.Fprintf(&b, "There is no choice within %s of the best variant on every shape: %v\n", number.Share(Nearest), s.NoChoice)
		return b.String()
	case len(s.Choice.Rules) == 1:
		fmt.Fprintf(&b, "%s is within %s of the best variant on every shape: no choice is needed.\n", s.Choice.Rules[0].Variant, number.Share(Nearest))
	default:
		fmt.Fprintf(&b, "The choice serves every shape within %s of its best variant.\n", number.Share(Nearest))
	}
	if diff := s.Choice.Diff(s.ManifestFile, s.Manifest); diff == "" {
		b.WriteString("The manifest already says so.\n")
	} else {
		fmt.Fprintf(&b, "\nThe change to commit, for kernelgate check to judge:\n\n%s", diff)
	}
	return b.String()
}
