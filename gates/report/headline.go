package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/number"
)

const (
	headlineRunes = 300
	existingRunes = 80
	// remedyRunes is the room for a text that ends with what to do.
	remedyRunes = 2000
)

// Word is the verdict's word, with which its headline begins. That of a rule that does not block says so first, so that nobody takes
// a check that succeeds for a PASS.
func Word(v *gates.Verdict) string {
	word := Plain(string(v.Outcome))
	if word == "" {
		word = "NO VERDICT"
	}
	return unenforced(v.Enforce, v.Outcome) + word
}

// wordAndReason is such as DEFER (too-slow).
func wordAndReason(v *gates.Verdict) string {
	if reason := Plain(string(v.Reason)); reason != "" && v.Outcome != gates.Pass {
		return Word(v) + " (" + reason + ")"
	}
	return Word(v)
}

func verdictCell(v *gates.Verdict) line {
	return line{mark(signFor(v)), text(" " + wordAndReason(v))}
}

// Headline is the verdict with the number that it hangs on, in one line in which backticks set names apart:
// "PASS · `sdpa_fp8` is 25.0 % faster on `mission`: 57.6 → 46.1 µs".
func Headline(v *gates.Verdict) string {
	return Clip(wholeHeadline(v), headlineRunes-runes(existing(v))) + existing(v)
}

// cutOff is what the verdict found where the headline has no room for all of it: the remedy is at the end.
func cutOff(v *gates.Verdict) []block {
	if runes(wholeHeadline(v)) <= headlineRunes-runes(existing(v)) || stoppedBuild(v) != nil {
		return nil
	}
	return []block{paragraph{prose(Clip(capital(v.Summary), remedyRunes))}}
}

// wholeHeadline is the headline, however long.
func wholeHeadline(v *gates.Verdict) string {
	s := Word(v)
	said := finding(v)
	kernel := quoted(v.Kernel)
	if device := quoted(v.Provenance.Label); device != "" {
		kernel += gates.On + device
	}
	switch {
	case kernel == "" && said == "":
	case kernel == "" && strings.HasPrefix(said, ": "):
		s += " · " + strings.TrimPrefix(said, ": ")
	case kernel == "":
		s += " · the kernel" + said
	default:
		s += " · " + kernel + said
	}
	return s
}

// quoted is a name between backticks, which it may not have itself.
func quoted(name string) string {
	name = Clip(Plain(strings.ReplaceAll(name, "`", "'")), shapeRunes)
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}

// existing is what a pass leaves wrong. It is in the headline, so that the pass does not read as if
// everything were right, and is never cut off.
func existing(v *gates.Verdict) string {
	if v.Outcome != gates.Pass || len(v.Existing) == 0 {
		return ""
	}
	return "; " + Clip(Plain(strings.Join(v.Existing, ", ")), existingRunes)
}

// summary is the verdict's summary, without the part that existing has.
func summary(v *gates.Verdict) string {
	return plainText(prose(InNotation(strings.TrimSuffix(v.Summary, v.Remaining()))))
}

// labelled is the name of a row: that of a shape between backticks.
func labelled(c gates.Comparison) string {
	if gates.IsStep(c.Shape) {
		return c.Shape
	}
	return quoted(c.Label())
}

func runes(s string) int { return len([]rune(s)) }

// finding continues a sentence that begins with the kernel's name.
func finding(v *gates.Verdict) string {
	said := ""
	switch v.Outcome {
	case gates.Pass:
		said = passed(v)
	case gates.Defer:
		said = missed(v)
	}
	if said != "" {
		return said
	}
	s := summary(v)
	if rest, ok := strings.CutPrefix(s, "The candidate does not build"); ok {
		return " does not build" + rest
	}
	if s == "" {
		return ""
	}
	return ": " + lowered(s)
}

// lowered is a sentence that continues after a colon.
func lowered(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if slices.Contains([]string{"The", "Too", "Over", "Slower", "Slower:", "Not", "No", "Nothing", "Timed,", "Proven:"}, first) {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// passed is the speed that a pass proves; "" where no speed decides it.
func passed(v *gates.Verdict) string {
	var targets, guards, alone []gates.Comparison
	for _, c := range v.Judged() {
		switch {
		case c.Role == gates.RoleInfo:
		case c.Same && c.Status == gates.Passed:
		case c.Status != gates.Passed || c.Candidate == nil:
			return ""
		case c.Baseline == nil:
			alone = append(alone, c)
		case !number.Finite(c.Speedup.Value):
			return ""
		case c.Role == gates.RoleTarget:
			targets = append(targets, c)
		default:
			guards = append(guards, c)
		}
	}
	switch {
	case len(alone) > 0:
		c := slices.MaxFunc(alone, func(a, b gates.Comparison) int { return urgency(a) - urgency(b) })
		return fmt.Sprintf(" is new: %s takes %s", labelled(c), number.Time(c.Candidate.P50, goalFigures(c.Goal).micros...))
	case len(targets) > 0:
		c := targets[0]
		said := fmt.Sprintf(" is as fast as asked on %s: %s (%s)", labelled(c), beforeAfter(c), against(c))
		if lower := c.Speedup.Lower; lower == nil && c.Speedup.Value > 0 || lower != nil && *lower > 0 {
			said = fmt.Sprintf(" is %s on %s: %s", c.Speedup.Words(goalFigures(c.Goal).shares...), labelled(c), beforeAfter(c))
		}
		targets = slices.DeleteFunc(targets, func(other gates.Comparison) bool {
			return gates.IsStep(c.Shape) && other.Shape != c.Shape && gates.IsStep(other.Shape)
		})
		if more := len(targets) - 1; more > 0 {
			said += fmt.Sprintf(" (and on %s)", number.Plural(more, "more target"))
		}
		return said
	case len(guards) == 1:
		return fmt.Sprintf(" is not slower on %s: %s (%s)", labelled(guards[0]), beforeAfter(guards[0]), against(guards[0]))
	case len(guards) > 1:
		c := slices.MinFunc(guards, func(a, b gates.Comparison) int {
			if a.Speedup.Value < b.Speedup.Value {
				return -1
			}
			return 1
		})
		return fmt.Sprintf(" is not slower on %d shapes; the least gain is on %s: %s (%s)", len(guards), labelled(c), beforeAfter(c), against(c))
	}
	return ""
}

// missed is the figure that keeps a deferred kernel from passing; "" where it is no figure.
func missed(v *gates.Verdict) string {
	switch v.Reason {
	case gates.ReasonTooSlow, gates.ReasonRegression:
		return slower(v)
	case gates.ReasonInconclusive:
		return undecided(v)
	case gates.ReasonResources:
		return exceeded(v)
	case gates.ReasonEnergy:
		return ": a launch takes more energy than the policy allows"
	case gates.ReasonProfile:
		return ": the profile does not meet the policy"
	}
	return ""
}

// slower names the shape that lost or gained too little, or the kind of input.
func slower(v *gates.Verdict) string {
	all := v.Judged()
	failed := func(c gates.Comparison) bool {
		return c.Status == gates.Failed && measured(c) && number.Finite(c.Speedup.Value)
	}
	decides := func(c gates.Comparison) bool {
		return failed(c) && (c.Role == gates.RoleTarget) == (v.Reason == gates.ReasonTooSlow)
	}
	i := slices.IndexFunc(all, func(c gates.Comparison) bool {
		goal, asked := speedupGoal(c.Goal)
		return decides(c) && asked && c.Speedup.Value < goal
	})
	if i < 0 {
		i = slices.IndexFunc(all, decides)
	}
	if i < 0 {
		return ""
	}
	c := all[i]
	goal, asked := speedupGoal(c.Goal)
	said := ""
	switch kind := worstKind(c); {
	case asked && c.Speedup.Value < goal && v.Reason == gates.ReasonTooSlow:
		said = fmt.Sprintf(" is too slow on %s: %s (%s)", labelled(c), beforeAfter(c), against(c))
	case asked && c.Speedup.Value < goal:
		said = fmt.Sprintf(" is %s on %s: %s", c.Speedup.Words(goalFigures(c.Goal).shares...), labelled(c), beforeAfter(c))
		if asked := askedBound(c); asked != "" {
			said += " (" + asked + ")"
		}
	case kind != nil && c.KindLimit != nil:
		said = fmt.Sprintf(" is %s on %s with %s inputs: %s (each kind must reach %s)", kind.Speedup.Words(*c.KindLimit), labelled(c), Plain(kind.Kind),
			number.FromTo(kind.Baseline, kind.CandidateTime()), limit(*c.KindLimit))
	default: // a tail, or launches that ran alone
		return detailed(v, c)
	}
	var others []string
	for j, other := range all {
		if j != i && failed(other) {
			others = append(others, labelled(other))
		}
	}
	if len(others) > 0 {
		said += "; also on " + listed(others)
	}
	return said
}

// detailed is the detail of the performance gate about a shape whose speedup is as asked.
func detailed(v *gates.Verdict, c gates.Comparison) string {
	for _, g := range v.Gates {
		for _, d := range g.Details {
			if why, ok := strings.CutPrefix(InNotation(d.Text), c.Label()+": "); ok && g.Gate == gates.GatePerformance {
				if d.Kind == facts.DetailCapped {
					return fmt.Sprintf(" gains %s on %s, %s", c.Speedup.Gain(), labelled(c), plainText(prose(why)))
				}
				return fmt.Sprintf(" on %s: %s", labelled(c), plainText(prose(why)))
			}
		}
	}
	return ""
}

// worstKind is the kind of input that gains least, or nil.
func worstKind(c gates.Comparison) *gates.KindTime {
	var worst *gates.KindTime
	for i, k := range c.Kinds {
		if number.Finite(k.Speedup.Value) && (worst == nil || k.Speedup.Value < worst.Speedup.Value) {
			worst = &c.Kinds[i]
		}
	}
	return worst
}

func undecided(v *gates.Verdict) string {
	for _, c := range v.Judged() {
		if c.Status != gates.Open || !measured(c) || !number.Finite(c.Speedup.Value) {
			continue
		}
		after := ""
		if m := v.Measuring; m != nil && m.Rounds > 0 {
			after = " after " + number.Plural(m.Rounds, "round")
		}
		said := fmt.Sprintf(" is not decided on %s%s: %s", labelled(c), after, plainText(gain(c.Speedup, goalFigures(c.Goal).shares)))
		if asked := askedBound(c); asked != "" {
			said += ", " + asked
		}
		return said
	}
	return ""
}

// exceeded names the first resource of which there is too much.
func exceeded(v *gates.Verdict) string {
	var said string
	more := 0
	for _, r := range v.Resources {
		switch {
		case r.Status != gates.Failed:
		case said == "":
			said = fmt.Sprintf(" is over budget: %s %s", Plain(r.Name), amountOf(r.Candidate, r.Unit))
			if r.Limit != "" {
				said += ", limit " + number.Condition(r.Limit)
			}
		default:
			more++
		}
	}
	if more > 0 {
		said += fmt.Sprintf("; and %d more", more)
	}
	return said
}

// beforeAfter is a shape's time before and after: "57.6 → 46.1 µs".
func beforeAfter(c gates.Comparison) string {
	return number.FromTo(c.Baseline.P50, c.CandidateTime(), goalFigures(c.Goal).micros...)
}

// against is the speedup of a shape with its goal: "+2.3 %, goal +10 %".
func against(c gates.Comparison) string {
	said := c.Speedup.Gain(goalFigures(c.Goal).shares...)
	if asked := askedBound(c); asked != "" {
		said += ", " + asked
	}
	return said
}

// askedBound is the goal of a shape, named by its role: "goal +10 %", "limit −2 %".
func askedBound(c gates.Comparison) string {
	asked := askedWords(c.Goal)
	if asked == "" {
		return ""
	}
	name := "limit "
	if c.Role == gates.RoleTarget {
		name = "goal "
	}
	asked = strings.TrimPrefix(asked, "≥"+string(nbsp))
	if loss, negative := strings.CutPrefix(asked, minus); negative {
		asked = loss + number.Slower
	}
	return name + asked
}

// limit is a bound as policies write it: −2 %, and not −2.0 %.
func limit(x float64) string {
	s := strings.TrimSuffix(number.Percent(x), string(nbsp)+"%")
	if math.Abs(100*x-math.Round(100*x)) < 1e-9 {
		s = strings.TrimSuffix(strings.TrimSuffix(s, ".00"), ".0")
	}
	return s + string(nbsp) + "%"
}

// listed names the first few.
func listed(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n <= 3:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return fmt.Sprintf("%s, %s and %d more", names[0], names[1], len(names)-2)
}
