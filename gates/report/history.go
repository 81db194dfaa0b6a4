package report

import (
	"cmp"
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
	return markdown(history(kernel, verdicts, lessons, historyTable))
}

// TerminalHistory is the same for a terminal.
func TerminalHistory(kernel string, verdicts []*gates.Verdict, lessons map[string]string, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	for _, bl := range history(kernel, verdicts, lessons, terminalHistoryTable) {
		w.block(bl)
	}
	return strings.Trim(w.b.String(), "\n") + "\n"
}

func history(kernel string, verdicts []*gates.Verdict, lessons map[string]string, table func([]Step) block) []block {
	blocks := []block{heading{1, line{text("History of "), mono(kernel)}}}
	steps := Steps(verdicts)
	if len(steps) == 0 {
		return append(blocks, paragraph{cell("There is no evidence that compares variants or commits yet.")})
	}
	for _, device := range devicesOf(steps) {
		of := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return s.Verdict.Device.Name != device })
		blocks = append(blocks, heading{2, line{text(device)}}, table(of))
		if failed := negatives(of, lessons); len(failed) > 0 {
			blocks = append(blocks, heading{3, cell("What did not work")}, bullets{failed})
		}
	}
	times, on := "", "the target shape"
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Target != nil && gates.IsStep(s.Target.Shape) }) {
		times, on = " Those of all launches of a step are sums of launches × time.", "what must gain (of two sums, the one of cold launches)"
	}
	return append(blocks, paragraph{cell(
		"Times are the geometric mean of the medians on each kind of input; that of a candidate is its baseline's divided by the speedup." + times + " A speedup is the median of paired ratios within one run, with the interval that decided; the factor is the product of the speedups since the first variant, on " + on + ".")})
}

// A Step is one variant or commit against the one before it.
type Step struct {
	Verdict       *gates.Verdict
	Before, After string
	Factor        float64           // of all steps up to this one, on the shape that must gain
	First         bool              // its baseline is the candidate of no step
	Target        *gates.Comparison // on that shape, or on all launches of a step; nil where none must gain
}

// Steps orders the verdicts along their chain of baselines; of two about the
// same step the later one counts.
func Steps(verdicts []*gates.Verdict) []Step {
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
	var steps []Step
	for key, v := range latest {
		s := Step{Verdict: v, Before: key[1], After: key[2]}
		judged := v.Judged()
		if i := slices.IndexFunc(judged, func(c gates.Comparison) bool { return c.Role == gates.RoleTarget }); i >= 0 {
			s.Target = &judged[i]
		}
		steps = append(steps, s)
	}
	steps = inOrder(steps)
	factors := map[string]float64{}
	for i := range steps {
		s := &steps[i]
		key := s.Verdict.Device.Name + " " + s.Before
		if _, known := factors[key]; !known {
			factors[key], s.First = 1, true
		}
		s.Factor = factors[key]
		if s.Target != nil {
			s.Factor *= 1 + s.gain()
		}
		factors[s.Verdict.Device.Name+" "+s.After] = s.Factor
	}
	return steps
}

// gain is what a step adds to the factor: that of the target. Of all launches of a step it is the cold one, because a product is of
// one sum.
func (s Step) gain() float64 {
	if w := s.Verdict.Weighted; w != nil && gates.IsStep(s.Target.Shape) {
		return w.Speedup.Value
	}
	return s.Target.Speedup.Value
}

// stateOf is the name of a side of a step: its variant, or else its commit.
func stateOf(c gates.Commit) string {
	if c.Variant == "" && !c.Dirty {
		return Short(c.SHA)
	}
	return c.Variant
}

// inOrder puts every step after the one that made its baseline. Independent steps are ordered by the
// name of the variant or the time of the commit, with a choice among variants last.
func inOrder(steps []Step) []Step {
	rank := func(s Step) string {
		switch v := s.Verdict; {
		case len(v.Builds) > 0 && len(v.Builds[len(v.Builds)-1].Parts) > 0:
			return "2" + s.After
		case v.Provenance.Head.Variant == "":
			return "1" + v.Provenance.Time.UTC().Format(time.RFC3339)
		}
		return "0" + s.After
	}
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a.After+" "+a.Before, b.After+" "+b.Before))
	})
	var ordered []Step
	for len(steps) > 0 {
		next := slices.IndexFunc(steps, func(s Step) bool {
			return !slices.ContainsFunc(steps, func(other Step) bool {
				return other.After == s.Before && other.Verdict.Device.Name == s.Verdict.Device.Name
			})
		})
		next = max(next, 0) // a circle begins anywhere
		ordered = append(ordered, steps[next])
		steps = slices.Delete(steps, next, next+1)
	}
	return ordered
}

func devicesOf(steps []Step) []string {
	var names []string
	for _, s := range steps {
		if !slices.Contains(names, s.Verdict.Device.Name) {
			names = append(names, s.Verdict.Device.Name)
		}
	}
	return names
}

// negatives are the steps that were not taken, with the finding and the lesson.
func negatives(steps []Step, lessons map[string]string) []line {
	var items []line
	for _, s := range steps {
		if s.Verdict.Outcome != gates.Defer {
			continue
		}
		item := append(line{mono(s.After), text(" over "), mono(s.Before), text(": ")}, prose(InNotation(s.Verdict.Summary))...)
		if lesson := lessons[s.After]; lesson != "" {
			item = append(item, text(". Lesson: "+lesson))
		}
		items = append(items, item)
	}
	return items
}
