package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// ReportOptions say how wide a report is, and how much of it is shown.
type ReportOptions struct {
	Width int // in characters; 0 means 100
	All   bool
	// Comment leaves out what only a terminal has, such as flags.
	Comment bool
}

// maxShown is how many slower candidates are shown.
const maxShown = 12

// Report is what was tried, best first, what each toggle was worth, and what won, as text for a
// terminal. The verdict of the gate and the change to commit are not part of it.
func (r *Result) Report(opt ReportOptions) string {
	width := cmp.Or(opt.Width, 100)
	var b strings.Builder
	h := r.Header
	tried := len(r.Tried) - 1
	fmt.Fprintf(&b, "%s on %s: %s of %s, %.0f s of measuring, proposer %s, seed %d\n", h.Space.Kernel, h.Device, number.Plural(tried, "candidate"), sizeText(h.Space.Size()), r.Seconds, h.Proposer, h.Seed)
	fmt.Fprintf(&b, "Timed on %s, each paired with the incumbent %s.\n\n", strings.Join(h.Shapes, ", "), h.Space.Start)
	writeTable(&b, r.rows(opt), width)
	for i, words := range h.Space.Configurations {
		fmt.Fprintf(&b, "%s=%d is the configuration %s.\n", Autotune, i, words)
	}
	for _, line := range r.counts(opt) {
		fmt.Fprintln(&b, line)
	}
	if chart := r.chart(min(width, 72)); chart != "" {
		fmt.Fprintf(&b, "\nBest speedup over the seconds of measuring:\n\n%s", chart)
	}
	if len(r.Worth) > 0 {
		b.WriteString("\nWhat each toggle was worth, all else being equal:\n\n")
		rows := [][]string{{"toggle", "from", "to", "speedup", "pairs"}}
		for _, w := range r.Worth {
			rows = append(rows, []string{w.Toggle, fmt.Sprint(w.From), fmt.Sprint(w.To), number.Speedup(w.Gain), fmt.Sprint(w.Pairs)})
		}
		writeTable(&b, rows, width)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Conclusion())
	return b.String()
}

// rows is the table of candidates: the raced ones best first, then the failures.
func (r *Result) rows(opt ReportOptions) [][]string {
	rows := [][]string{{"", "candidate", "speedup", "rounds", "result"}}
	shown := 0
	for _, s := range r.Ranking {
		t := r.Find(s.Arm)
		if t == nil || t.Status == Failed {
			continue
		}
		if shown++; s.Out && shown > maxShown && !opt.All {
			continue
		}
		rows = append(rows, []string{r.mark(t.ID), r.name(t), number.Speedup(s.Speedup), fmt.Sprint(s.Rounds), r.outcome(t)})
	}
	for _, t := range r.Tried {
		if t.Status == Failed || t.Status == Unknown {
			rows = append(rows, []string{"", r.name(&t), "", "", r.outcome(&t)})
		}
	}
	return rows
}

// mark is the place in the elite.
func (r *Result) mark(id string) string {
	if i := slices.Index(r.Elite, id); i >= 0 {
		return fmt.Sprintf("%d.", i+1)
	}
	return ""
}

func (r *Result) name(t *Tried) string { return r.Header.Space.Short(t.Candidate) }

// outcome is what became of a candidate, in a few words.
func (r *Result) outcome(t *Tried) string {
	switch {
	case t.ID == r.Winner:
		return "winner, confirmed by the gate"
	case t.ID == r.Tried[0].ID && t.Status == Racing:
		return "the incumbent"
	case t.ID == r.Tried[0].ID:
		return "the incumbent, " + t.Why
	case t.Status == Failed && t.Gate != "":
		return fmt.Sprintf("failed (%s): %s", t.Gate, t.Why)
	case t.Status == Racing && slices.Contains(r.Elite, t.ID):
		return "elite"
	case t.Status == Racing && r.Decided:
		return fmt.Sprintf("not more than %s faster than the best", number.Share(r.Header.Epsilon))
	case t.Status == Racing:
		return "not separated"
	}
	return cmp.Or(t.Why, string(t.Status))
}

// counts are sentences about candidates that the table leaves out.
func (r *Result) counts(opt ReportOptions) []string {
	by := map[Status]int{}
	for _, t := range r.Tried {
		by[t.Status]++
	}
	var lines []string
	if hidden := r.hidden(); hidden > 0 && !opt.All {
		where := " (--all shows all)"
		if opt.Comment {
			where = ""
		}
		lines = append(lines, fmt.Sprintf("%s not shown%s.", number.Plural(hidden, "slower candidate")+isAre(hidden), where))
	}
	if n := by[Behind]; n > 0 {
		lines = append(lines, fmt.Sprintf("%s slower in the first look at all of them, and %s not raced.", number.Plural(n, "candidate")+" "+wasWere(n), wasWere(n)))
	}
	if n := by[Duplicate]; n > 0 {
		lines = append(lines, fmt.Sprintf("%s the machine code and the launch of another, and %s not measured.", number.Plural(n, "candidate")+map[bool]string{true: " has", false: " have"}[n == 1], wasWere(n)))
	}
	if n := by[Waiting]; n > 0 {
		lines = append(lines, fmt.Sprintf("%s not measured, because half of the budget was spent.", number.Plural(n, "candidate")+" "+wasWere(n)))
	}
	return lines
}

func (r *Result) hidden() int {
	shown, hidden := 0, 0
	for _, s := range r.Ranking {
		if t := r.Find(s.Arm); t != nil && t.Status != Failed {
			if shown++; s.Out && shown > maxShown {
				hidden++
			}
		}
	}
	return hidden
}

// Conclusion says in a sentence or two what the search has found.
func (r *Result) Conclusion() string {
	best := r.Tried[0].ID
	if len(r.Elite) > 0 {
		best = r.Elite[0]
	}
	if r.Header.Exhaustive && !r.Replayed {
		return fmt.Sprintf("The fastest of all that were measured is %s. An exhaustive search has no verdict: try a proposer on its log with --replay.", r.name(r.Find(best)))
	}
	certain := fmt.Sprintf("The race is decided: no candidate that was tried is more than %s faster.", number.Share(r.Header.Epsilon))
	switch {
	case r.Decided:
	case r.Spent && r.Replayed:
		certain = "The race is not decided: the log has no further round with all of its arms."
	case r.Spent:
		certain = "The race is not decided: the budget was spent (a larger budget or fewer candidates may decide it)."
	case r.Long:
		certain = "The race is not decided: it took as long as everything before it, and what is left in it is about equally fast (--max-rounds measures more)."
	default:
		certain = fmt.Sprintf("The race is not decided after %d rounds (more rounds, or a larger difference to look for, may decide it).", r.Header.MaxRounds)
	}
	switch last := len(r.Confirmed) - 1; {
	case r.Winner != "":
		return fmt.Sprintf("%s wins. %s", r.name(r.Find(r.Winner)), certain)
	case r.Replayed && best == r.Tried[0].ID:
		return fmt.Sprintf("The search would have found nothing better than the incumbent, in %.0f s of measuring. %s", r.Seconds, certain)
	case r.Replayed:
		return fmt.Sprintf("The search would have found %s, in %.0f s of measuring. %s A replay confirms nothing.", r.name(r.Find(best)), r.Seconds, certain)
	case r.Below != "":
		return fmt.Sprintf("Nothing that was found reaches the policy's goal, and the gate was not asked: %s. %s", r.Below, certain)
	case r.Header.NoGate && best != r.Tried[0].ID:
		return fmt.Sprintf("%s is the fastest. %s The gate was not asked (--no-gate).", r.name(r.Find(best)), certain)
	case last >= 0 && r.Confirmed[last].Outcome == gates.Error:
		return "The gate could not judge the best candidate: " + r.Confirmed[last].Summary
	case last >= 0:
		return fmt.Sprintf("Nothing is proven better than the incumbent: the gate defers %s. %s", r.name(r.Find(r.Confirmed[last].ID)), certain)
	}
	return "Nothing is better than the incumbent. " + certain
}

func isAre(n int) string   { return map[bool]string{true: " is", false: " are"}[n == 1] }
func wasWere(n int) string { return map[bool]string{true: "was", false: "were"}[n == 1] }

func sizeText(n float64) string {
	if n > 1e6 {
		return fmt.Sprintf("%.3g", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// writeTable aligns columns. A line that is too wide is cut.
func writeTable(b *strings.Builder, rows [][]string, width int) {
	for _, line := range report.Aligned(rows) {
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width-1]) + "…"
		}
		fmt.Fprintln(b, line)
	}
}
