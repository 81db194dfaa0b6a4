package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// bringsShown is how many shapes have a step of their own. Of more, as many share one.
const bringsShown = 4

// ToPass is what would make the verdict pass: the verdict's own steps, and one for each other shape that does not meet its goal. A
// verdict names the shapes of its reason only, and an author who mends these must not be surprised by the next.
func ToPass(v *gates.Verdict) []string {
	var bring, words, or []string
	for _, step := range v.ToPass {
		switch step = InNotation(step); {
		case strings.HasPrefix(step, "bring `"):
			bring = append(bring, step)
		case strings.HasPrefix(step, "or"):
			or = append(or, step)
		default:
			words = append(words, step)
		}
	}
	if v.Outcome == gates.Defer && speedDecides(v) {
		named := strings.Join(append(slices.Clone(bring), words...), "\n")
		for _, c := range v.Judged() {
			if unmet(c) && !names(named, c.Label()) {
				if step := stepOf(c); strings.HasPrefix(step, "bring `") {
					bring = append(bring, step)
				} else {
					words = append(words, step)
				}
			}
		}
	}
	if len(bring) > bringsShown {
		var shared []string
		for several := range slices.Chunk(bring, bringsShown) {
			shared = append(shared, "bring "+strings.ReplaceAll(strings.Join(several, ", "), "bring ", ""))
		}
		bring = shared
	}
	return slices.Concat(bring, words, or)
}

func unmet(c gates.Comparison) bool { return c.Status == gates.Failed || c.Status == gates.Open }

// names reports whether the steps have the shape as a word.
func names(steps, shape string) bool {
	part := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for rest := steps; shape != ""; {
		before, after, found := strings.Cut(rest, shape)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !part(last) && !part(next) {
			return true
		}
		rest = string(last) + after
	}
	return true
}

// stepOf is the step of one shape that does not meet its goal.
func stepOf(c gates.Comparison) string {
	goal, asked := speedupGoal(c.Goal)
	shape := labelled(c)
	switch {
	case c.Status == gates.Open && c.RoundsNeeded > 0:
		return fmt.Sprintf("prove %s: it is not decided yet, and about %d rounds would decide", shape, c.RoundsNeeded)
	case c.Status == gates.Open:
		return fmt.Sprintf("prove %s: it is not decided yet", shape)
	case asked && c.Baseline != nil && c.Speedup.Value < goal && goal > -1:
		return fmt.Sprintf("bring %s to ≤%c%s", shape, nbsp, number.TimeAtMost(c.Baseline.P50/(1+goal)))
	}
	if c.KindLimit != nil {
		var kinds []string
		for _, k := range c.Kinds {
			if k.Speedup.Value < *c.KindLimit {
				kinds = append(kinds, fmt.Sprintf("to ≤%c%s on %s inputs", nbsp, number.TimeAtMost(k.Baseline/(1+*c.KindLimit)), Plain(k.Kind)))
			}
		}
		if kinds != nil {
			return fmt.Sprintf("bring %s %s", shape, strings.Join(kinds, ", "))
		}
	}
	return fmt.Sprintf("make %s meet its goal: %s", shape, goalWords(c.Goal))
}
