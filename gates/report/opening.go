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

const (
	stepsShown = 4
	notesShown = 8
)

// Meaning explains a DEFER to a reader who has never seen one.
const Meaning = "DEFER: not accepted yet; the check fails and says what is missing."

// meaningOfError explains an ERROR: the gates that passed are no verdict.
const meaningOfError = "ERROR: the machine failed, and not the kernel. Nothing is decided, and the check fails until the kernel is measured again."

// gateLine is all gates in one line.
func gateLine(v *gates.Verdict) []block {
	var l line
	var idle, before []string
	for _, g := range v.Gates {
		name := orDash(Plain(g.Gate.Title(v.Device.Kind)))
		switch {
		case g.Status == gates.NotRun:
			idle = append(idle, name)
			continue
		case v.Outcome == gates.Error && g.Status == gates.Passed:
			before = append(before, name) // six green marks would look like a pass
			continue
		}
		l = append(l, mark(signOfGate(g)), text(string(nbsp)+name+" · "))
	}
	if before != nil {
		l = append(l, text("passed before the fault: "+strings.Join(before, ", ")+" · "))
	}
	if idle != nil {
		l = append(l, text("not run: "+strings.Join(idle, ", ")))
	} else if l != nil {
		last := &l[len(l)-1]
		last.text = strings.TrimSuffix(last.text, " · ")
	}
	if l == nil {
		return nil
	}
	return []block{paragraph{l}}
}

// whyNot is the details about the shapes that do not pass, in addition to the tables.
func whyNot(v *gates.Verdict) []block {
	for _, g := range v.Gates {
		if why, _ := detailsOf(v, g); len(why) > 0 {
			var texts []string
			for _, d := range why {
				texts = append(texts, InNotation(d.Text))
			}
			return []block{bullets{proseLines(texts)}}
		}
	}
	return nil
}

// toPass is the steps to pass. Commands are in separate blocks, so that they can be copied.
func toPass(v *gates.Verdict) []block {
	steps := ToPass(v)
	if v.Outcome == gates.Pass || len(steps) == 0 {
		return nil
	}
	name := "To pass"
	if v.Outcome == gates.Error {
		name = "What to do"
	}
	var words, commands []string
	for _, step := range steps {
		if said, command, ok := Command(step); ok {
			commands = append(commands, said, command)
		} else {
			words = append(words, step)
		}
	}
	if len(commands) > 0 && words == nil {
		words, commands = commands[:1], append([]string{""}, commands[1:]...)
	}
	var blocks []block
	switch {
	case len(words) == 1:
		blocks = append(blocks, paragraph{append(line{bold(name + ":"), text(" ")}, prose(Clip(orDash(words[0]), remedyRunes))...)})
	default:
		blocks = append(blocks, paragraph{line{bold(name)}}, bullets{proseLines(words[:min(len(words), stepsShown)])})
		if more := len(words) - stepsShown; more > 0 {
			blocks = append(blocks, paragraph{cell(fmt.Sprintf("%s more below.", number.Plural(more, "step")))})
		}
	}
	for i := 0; i < len(commands); i += 2 {
		if commands[i] != "" {
			blocks = append(blocks, paragraph{prose(Clip(capital(commands[i]), remedyRunes))})
		}
		blocks = append(blocks, listing{commands[i+1]})
	}
	return blocks
}

// moreSteps is the steps that are not visible.
func moreSteps(v *gates.Verdict) []block {
	if v.Outcome == gates.Pass {
		return nil
	}
	var words []string
	for _, step := range ToPass(v) {
		if _, _, command := Command(step); !command {
			words = append(words, step)
		}
	}
	if len(words) <= stepsShown {
		return nil
	}
	return []block{heading{4, cell("More steps")}, bullets{proseLines(words[stepsShown:])}}
}

// capital is a sentence with a capital letter.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// Command parts a step that ends with a command of this program from the command.
func Command(step string) (words, command string, ok bool) {
	words, rest, ok := strings.Cut(Plain(step), ": kernelgate ")
	if !ok {
		return step, "", false
	}
	return words + ":", "kernelgate " + rest, true
}

func notes(v *gates.Verdict) []block {
	all := slices.Clone(v.Notes)
	for _, text := range v.Unsteady {
		all = append(all, capital(text)+".")
	}
	return some(all, notesShown, "notes")
}

// some is the first few texts as bullets, and the rest folded.
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

func proseLines(texts []string) []line {
	var out []line
	for _, t := range texts {
		out = append(out, prose(Clip(orDash(t), remedyRunes)))
	}
	return out
}
