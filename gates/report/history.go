package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// History is the performance history of one kernel in Markdown, made of verdicts
// that compared one variant, or one commit, with another: what each step gained, what
// all steps gained together, and what did not work, so that the next author need not
// try it again; lessons, by variant, say why it did not. A work tree is nobody's to
// look up, and left out.
func History(kernel string, verdicts []*gates.Verdict, lessons map[string]string) string {
	blocks := []block{heading{1, line{text("History of "), mono(kernel)}}}
	steps := stepsOf(verdicts)
	if len(steps) == 0 {
		return markdown(append(blocks, paragraph{cell("There is no evidence that compares variants or commits yet.")}))
	}
	for _, device := range devicesOf(steps) {
		of := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.verdict.Device.Name != device })
		blocks = append(blocks, heading{2, line{text(device)}}, historyTable(of))
		if failed := negatives(of, lessons); len(failed) > 0 {
			blocks = append(blocks, heading{3, cell("What did not work")}, bullets{failed})
		}
	}
	return markdown(append(blocks, paragraph{cell(
		"Times are p50 in µs. A speedup is the median of paired ratios within one run, with the interval that decided; the factor is the product of the speedups since the first variant on the shape that must gain.")}))
}

// A step is one variant or commit against the one before it.
type step struct {
	verdict       *gates.Verdict
	before, after string
	factor        float64
	first         bool // its baseline is nobody's candidate
	target        *gates.Comparison
}

// stepsOf orders the verdicts along their chain of baselines; of two about the
// same step the later one counts.
func stepsOf(verdicts []*gates.Verdict) []step {
	latest := map[[3]string]*gates.Verdict{}
	for _, v := range verdicts {
		key := [3]string{v.Device.Name, stateOf(v.Provenance.Base), stateOf(v.Provenance.Head)}
		if key[1] == "" || key[2] == "" || key[1] == key[2] {
			continue
		}
		if had := latest[key]; had == nil || had.Provenance.Time.Before(v.Provenance.Time) {
			latest[key] = v
		}
	}
	var steps []step
	for key, v := range latest {
		s := step{verdict: v, before: key[1], after: key[2]}
		for i := range v.Comparisons {
			if v.Comparisons[i].Role == gates.RoleTarget {
				s.target = &v.Comparisons[i]
				break
			}
		}
		steps = append(steps, s)
	}
	steps = inOrder(steps)
	factors := map[string]float64{}
	for i := range steps {
		s := &steps[i]
		key := s.verdict.Device.Name + " " + s.before
		if _, known := factors[key]; !known {
			factors[key], s.first = 1, true
		}
		s.factor = factors[key]
		if s.target != nil {
			s.factor *= 1 + s.target.Speedup.Value
		}
		factors[s.verdict.Device.Name+" "+s.after] = s.factor
	}
	return steps
}

// stateOf is what a side of a step is called: its variant, or else its commit.
func stateOf(c gates.Commit) string {
	if c.Variant == "" && !c.Dirty {
		return Short(c.SHA)
	}
	return c.Variant
}

// inOrder has every step behind the one that made its baseline. Beside each other variants
// stand by their names, commits by their time, and a choice among variants behind them.
func inOrder(steps []step) []step {
	rank := func(s step) string {
		switch v := s.verdict; {
		case len(v.Builds) > 0 && len(v.Builds[len(v.Builds)-1].Parts) > 0:
			return "2" + s.after
		case v.Provenance.Head.Variant == "":
			return "1" + v.Provenance.Time.UTC().Format(time.RFC3339)
		}
		return "0" + s.after
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a.after+" "+a.before, b.after+" "+b.before))
	})
	var ordered []step
	for len(steps) > 0 {
		next := slices.IndexFunc(steps, func(s step) bool {
			return !slices.ContainsFunc(steps, func(other step) bool {
				return other.after == s.before && other.verdict.Device.Name == s.verdict.Device.Name
			})
		})
		next = max(next, 0) // a circle begins anywhere
		ordered = append(ordered, steps[next])
		steps = slices.Delete(steps, next, next+1)
	}
	return ordered
}

func devicesOf(steps []step) []string {
	var names []string
	for _, s := range steps {
		if !slices.Contains(names, s.verdict.Device.Name) {
			names = append(names, s.verdict.Device.Name)
		}
	}
	return names
}

func historyTable(steps []step) block {
	var shapes []string
	for _, s := range steps {
		for _, c := range s.verdict.Comparisons {
			if !slices.Contains(shapes, c.Shape) {
				shapes = append(shapes, c.Shape)
			}
		}
	}
	columns := []column{{title: "variant"}, {title: "against"}}
	for _, shape := range shapes {
		columns = append(columns, column{title: shape, right: true})
	}
	columns = append(columns, column{title: "┆ goal", optional: true}, column{title: "speedup"}, column{title: "factor", right: true}, column{title: "registers", right: true},
		column{title: "shared memory", right: true}, column{title: "verdict"})
	targets := make([]gates.Comparison, len(steps))
	for i, s := range steps {
		if s.target != nil {
			targets[i] = *s.target
		}
	}
	drawn := bars(targets)
	var rows [][]line
	for i, s := range steps {
		if s.first {
			rows = append(rows, s.row(shapes, true, ""))
		}
		rows = append(rows, s.row(shapes, false, drawn[i]))
	}
	return newTable(columns, rows)
}

// row is one variant's line: of the step's candidate, or of the baseline that
// everything began with.
func (s step) row(shapes []string, asBaseline bool, bar string) []line {
	name, against, speedup, factor := s.after, codeCell(s.before), cell("–"), s.factor
	verdict := line{mark(signOfVerdict(s.verdict.Outcome, s.verdict.Reason)), text(" " + verdictWord(s.verdict))}
	if s.target != nil {
		speedup = cell(plainText(estimate(s.target.Speedup, nil)))
	}
	if asBaseline {
		name, against, speedup, factor, verdict = s.before, cell("–"), cell("–"), 1, cell("where it began")
	}
	row := []line{codeCell(name), against}
	for _, shape := range shapes {
		time := "–"
		for _, c := range s.verdict.Comparisons {
			if side := c.Candidate; c.Shape == shape {
				if asBaseline {
					side = c.Baseline
				}
				if side != nil {
					time = micros(side.P50)
				}
			}
		}
		row = append(row, cell(time))
	}
	resource := func(name string) line {
		for _, r := range s.verdict.Resources {
			// Of a choice, those of the variant that stands first.
			if of, _, _ := strings.Cut(r.Name, " of "); of == name {
				if asBaseline {
					return cell(amountOf(r.Baseline, r.Unit))
				}
				return cell(amountOf(r.Candidate, r.Unit))
			}
		}
		return cell("–")
	}
	picture := cell(dash)
	if bar != "" {
		picture = line{{style: code, text: bar}}
	}
	return append(row, picture, speedup, cell(fmt.Sprintf("%.2f×", factor)), resource("registers"), resource("shared memory"), verdict)
}

func verdictWord(v *gates.Verdict) string {
	if v.Reason != "" {
		return fmt.Sprintf("%s (%s)", v.Outcome, v.Reason)
	}
	return string(v.Outcome)
}

// negatives are the steps that were not taken, with what was found and learnt.
func negatives(steps []step, lessons map[string]string) []line {
	var items []line
	for _, s := range steps {
		if s.verdict.Outcome != gates.Defer {
			continue
		}
		item := append(line{mono(s.after), text(" over "), mono(s.before), text(": ")}, prose(s.verdict.Summary)...)
		if lesson := lessons[s.after]; lesson != "" {
			item = append(item, text(". Lesson: "+lesson))
		}
		items = append(items, item)
	}
	return items
}
