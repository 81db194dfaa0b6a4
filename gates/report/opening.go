package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

const (
	headlineRunes = 300
	existingRunes = 80
	stepsShown    = 4
	stepRunes     = 300
	notesShown    = 3
)

func word(v *gates.Verdict) string {
	if word := Plain(string(v.Outcome)); word != "" {
		return word
	}
	return "NO VERDICT"
}

// wordAndReason is such as DEFER (too-slow).
func wordAndReason(v *gates.Verdict) string {
	if reason := Plain(string(v.Reason)); reason != "" && v.Outcome != gates.Pass {
		return word(v) + " (" + reason + ")"
	}
	return word(v)
}

func verdictCell(v *gates.Verdict) line {
	return line{mark(signOfVerdict(v.Outcome, v.Reason)), text(" " + wordAndReason(v))}
}

// Headline is the verdict and why in one line of plain text: "DEFER scale: too slow on
// mission". The figures stand in the rows below it.
func Headline(v *gates.Verdict) string {
	s := word(v)
	if kernel := Plain(v.Kernel); kernel != "" {
		s += " " + kernel
	}
	if why := why(v); why != "" {
		s += ": " + why
	}
	return Clip(s, headlineRunes-runes(existing(v))) + existing(v)
}

// existing is what a pass leaves wrong, for the same line: it must not read as if all were
// right. It is never cut off.
func existing(v *gates.Verdict) string {
	if v.Outcome != gates.Pass || len(v.Existing) == 0 {
		return ""
	}
	return "; " + Clip(Plain(strings.Join(v.Existing, ", ")), existingRunes)
}

// summary is the verdict's, without what existing says.
func summary(v *gates.Verdict) string {
	return plainText(prose(strings.TrimSuffix(v.Summary, v.Remaining())))
}

func runes(s string) int { return len([]rune(s)) }

func why(v *gates.Verdict) string {
	missed, open := shapesThat(v, gates.Failed), shapesThat(v, gates.Open)
	switch {
	case v.Outcome == gates.Pass && v.Imported == "":
		if s := passed(v); s != "" {
			return s
		}
	case v.Outcome != gates.Defer:
	case v.Reason == gates.ReasonTooSlow && missed != "":
		return "too slow on " + missed
	case v.Reason == gates.ReasonRegression && missed != "":
		return "slower on " + missed
	case v.Reason == gates.ReasonInconclusive && open != "":
		if m := v.Measuring; m != nil && m.Rounds > 0 {
			return fmt.Sprintf("not decided on %s after %s", open, plural(m.Rounds, "round"))
		}
		return "not decided on " + open
	case v.Reason == gates.ReasonResources:
		var over []string
		for _, r := range v.Resources {
			if r.Status == gates.Failed {
				over = append(over, r.Name)
			}
		}
		if over != nil {
			return "over budget in " + listed(over)
		}
	case v.Reason == gates.ReasonProfile:
		return "the profile is not what the policy asks"
	}
	s := summary(v)
	if rest, ok := strings.CutPrefix(s, "The "); ok {
		return "the " + rest
	}
	return s
}

// passed is what a pass proves.
func passed(v *gates.Verdict) string {
	var gained, held []string
	faster := true
	for _, c := range v.Comparisons {
		switch {
		case c.Same && c.Status == gates.Passed:
			held = append(held, c.Label())
		case c.Status != gates.Passed || !measured(c):
			return ""
		case c.Role == gates.RoleTarget:
			gained = append(gained, c.Shape)
			faster = faster && c.Speedup.Lower != nil && *c.Speedup.Lower > 0
		default:
			held = append(held, c.Label())
		}
	}
	switch {
	case len(gained) > 0 && faster:
		return "proven faster on " + listed(gained)
	case len(gained) > 0:
		return "proven as fast as asked on " + listed(gained)
	case len(held) > 0:
		return "proven not slower than allowed on " + listed(held)
	}
	return ""
}

func shapesThat(v *gates.Verdict, s gates.Status) string {
	var names []string
	for _, c := range v.Comparisons {
		if c.Status == s {
			names = append(names, c.Label())
		}
	}
	return listed(names)
}

// listed names the first few.
func listed(names []string) string {
	for i, n := range names {
		names[i] = Clip(orDash(Plain(n)), shapeRunes)
	}
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

// imported warns that nobody measured for this verdict. It stands at the top:
// it is a limit of the verdict, not a detail of a table.
func imported(v *gates.Verdict) line {
	for _, c := range v.Comparisons {
		if measured(c) && c.Speedup.Lower == nil && c.Speedup.Upper == nil {
			return line{mark(signInform), text(" "), bold("Imported"), text(" from summaries in " + v.Imported + ": no interval, point estimates only.")}
		}
	}
	return line{mark(signInform), text(" "), bold("Imported"), text(" from " + v.Imported + ": the figures are copied, not measured in this run.")}
}

func toPass(v *gates.Verdict) []block {
	if v.Outcome == gates.Pass || len(v.ToPass) == 0 {
		return nil
	}
	name := "To pass"
	if v.Outcome == gates.Error {
		name = "What to do"
	}
	if len(v.ToPass) == 1 {
		return []block{paragraph{append(line{bold(name + ":"), text(" ")}, prose(Clip(orDash(v.ToPass[0]), stepRunes))...)}}
	}
	return append([]block{paragraph{line{bold(name)}}}, some(v.ToPass, stepsShown, "steps")...)
}

func notes(v *gates.Verdict) []block { return some(v.Notes, notesShown, "notes") }

// some is the first few texts as bullets, and the others folded.
func some(texts []string, n int, what string) []block {
	if len(texts) == 0 {
		return nil
	}
	n = min(n, len(texts))
	blocks := []block{bullets{proseLines(texts[:n])}}
	if rest := texts[n:]; len(rest) > 0 {
		blocks = append(blocks, details{summary: cell(fmt.Sprintf("%d more %s", len(rest), what)), blocks: []block{bullets{proseLines(rest)}}})
	}
	return blocks
}

// judgedBy names the rule and the device, since a verdict belongs to both.
func judgedBy(v *gates.Verdict) []block {
	var l line
	if v.Rule != "" {
		l = append(l, text("Rule "), mono(v.Rule))
		if v.Policy != "" {
			l = append(l, text(" of "), mono(v.Policy))
		}
	}
	if v.Device.Name != "" {
		if l == nil {
			l = append(l, text("Judged"))
		}
		l = append(l, text(", on "+v.Device.Name))
		if v.Device.Arch != "" {
			l = append(l, text(" ("+v.Device.Arch+")"))
		}
	}
	if l == nil {
		return nil
	}
	return []block{paragraph{append(l, text("."))}}
}

func proseLines(texts []string) []line {
	var out []line
	for _, t := range texts {
		out = append(out, prose(Clip(orDash(t), stepRunes)))
	}
	return out
}
