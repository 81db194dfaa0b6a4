package pages

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// functions are the functions that templates may call. None of them turns text into markup.
func (s *Server) functions() template.FuncMap {
	return template.FuncMap{
		"ago":          func(t time.Time) string { return ago(s.Now(), t) },
		"bytes":        number.Bytes,
		"counter":      facts.Figure,
		"whyOf":        func(p *RunPage) whyPage { return whyPage{p, p.Reasons} },
		"energyChange": report.EnergyChange,
		"weighted":     report.WeightedWords,
		"joules":       number.Joules,
		"seconds":      number.Elapsed,
		"about":        number.About,
		"signed":       number.Percent,
		"speedup":      func(v float64) string { return number.Speedup(v) },
		"gain":         func(c gates.Comparison) string { return c.Speedup.Gain(goalsOf(c)...) },
		"interval":     func(c gates.Comparison) string { return c.Speedup.Interval(goalsOf(c)...) },
		"steps":        report.ToPass,
		"words":        wordsOf,
		"significance": number.P,
		"difference":   differenceSign,
		"asked":        asked,
		"fine":         fine,
		"faults":       faults,
		"micros":       number.Time,
		"time": func(v *float64) string {
			if v == nil {
				return "–"
			}
			return number.Time(*v)
		},
		"figure":  figure,
		"percent": number.PlainShare,
		"short":   report.Short,
		"brief":   brief,
		"status":  statusOf,
		"gate":    stepSign,
		"row":     rowSign,
		"advice":  adviceOf,
		"device":  deviceName,
		"outcome": outcomeOf,
		"kernel":  KernelPath,
		"repo":    func(repo string) string { return "/kernels/" + repo },
		"repoAt":  s.repoAt, "pullAt": s.pullAt, "issueAt": s.issueAt, "commitAt": s.commitAt, "folderAt": s.folderAt, "sourceAt": s.sourceAt, "stall": why.StallWords,
		"runs":   listOf,
		"matrix": func(m *Matrix, label string) labelled { return labelled{m, label} },
		"share":  number.Share,
		"use": func(u Use) string {
			return figure(&u.Value, u.Unit) + " " + strings.Replace(u.Name, "per SM", "an SM", 1)
		},
		"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"when":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"inc":    func(n int) int { return n + 1 },
		"lastOf": func(rows []VariantRow) int { return len(rows) - 1 },
		"join":   strings.Join,
		"deref": func(v *float64) float64 {
			if v == nil {
				return math.NaN()
			}
			return *v
		},
	}
}

// wordsOf writes a stored sentence like the figures next to it, and does not say "slower" twice.
func wordsOf(stored string) string {
	text := strings.ReplaceAll(report.InNotation(stored), "`", "")
	if strings.Contains(text, number.Slower) {
		text = strings.Replace(text, "Slower: ", "", 1)
	}
	return text
}

// A list is a table of runs. It omits columns that its surroundings make redundant.
type list struct {
	Rows           []Row
	Label          string // distinguishes the page's tables for screen readers
	Kernel, Change bool   // columns to show
}

// A labelled matrix distinguishes the page's tables for screen readers.
type labelled struct {
	*Matrix
	Label string
}

func listOf(rows []Row, label string, columns ...string) list {
	return list{rows, label, slices.Contains(columns, "kernel"), slices.Contains(columns, "change")}
}

// A Piece is a part of a sentence: plain text or a name.
type Piece struct {
	Text string
	Name bool
}

// pieces splits a sentence at the backticks around names, without the given first word.
func pieces(sentence, word string) []Piece {
	sentence = strings.TrimLeft(strings.TrimPrefix(sentence, word), " ·")
	var list []Piece
	for i, text := range strings.Split(sentence, "`") {
		if text != "" {
			list = append(list, Piece{text, i%2 == 1})
		}
	}
	return list
}

// A sign shows a status as a mark, a word and a class, so that nobody depends on colours.
type sign struct{ Mark, Word, Class string }

func statusOf(s gates.Status) sign {
	switch s {
	case gates.Passed:
		return sign{"✓", "pass", "pass"}
	case gates.Failed:
		return sign{"✗", "fail", "fail"}
	case gates.Open:
		return sign{"?", "not decided", "open"}
	case gates.Informs:
		return sign{"i", "informs only", "inform"}
	case gates.Missing:
		return sign{"?", "missing", "open"}
	}
	return sign{"–", "not run", "none"}
}

// gateSign distinguishes a gate that proved a miss from a gate that needs more evidence.
func gateSign(g gates.GateResult) sign {
	if g.Status == gates.Failed && g.Reason == gates.ReasonInconclusive {
		return statusOf(gates.Open)
	}
	return statusOf(g.Status)
}

// goalsOf returns the speedup that a shape must not seem to reach by rounding.
func goalsOf(c gates.Comparison) []float64 {
	if goal := goalOf(c); goal != nil {
		return []float64{*goal}
	}
	return nil
}

// differenceSign says which of two runs is faster, or that the times cannot tell.
func differenceSign(d report.Difference) sign {
	switch {
	case d.A == nil:
		return sign{"–", "only in B", "none"}
	case d.B == nil:
		return sign{"–", "only in A", "none"}
	case d.Class == "pass":
		return sign{"✓", "faster", "pass"}
	case d.Class == "fail":
		return sign{"✗", "slower", "fail"}
	}
	return sign{"?", d.Finding(), "none"}
}

// stepSign is gateSign for a gate with evidence. If an earlier gate failed, evidence exists that
// nobody judged: "not run" next to a duration would be a contradiction.
func stepSign(s Step) sign {
	if s.Status == gates.NotRun && s.Seconds > 0 {
		return sign{"–", "not judged", "none"}
	}
	return gateSign(s.GateResult)
}

// rowSign returns the sign of a shape. A shape without a judgement was timed in a run that failed before.
func rowSign(c gates.Comparison) sign {
	switch {
	case c.Status == gates.NotRun:
		return sign{"–", "not judged", "none"}
	case c.Status == gates.Failed && c.Role == gates.RoleTarget:
		return sign{"✗", "missed", "fail"}
	}
	return statusOf(c.Status)
}

// deviceName removes the boilerplate of manufacturers from a device's name.
func deviceName(name string) string {
	name = strings.NewReplacer("(R)", "", "(TM)", "", " Processor", "", " CPU", "", " @ ", " ").Replace(name)
	return strings.Join(strings.Fields(name), " ")
}

// outcomeOf distinguishes proven misses from results that are not decided.
func outcomeOf(o gates.Outcome, r gates.Reason) sign {
	switch o {
	case gates.Pass:
		return sign{"✓", "PASS", "pass"}
	case gates.Error:
		return sign{"!", "ERROR", "error"}
	case gates.Defer:
		if r == gates.ReasonInconclusive {
			return sign{"?", "DEFER", "open"}
		}
		return sign{"✗", "DEFER", "fail"}
	}
	return sign{"…", "no verdict", "none"}
}

// KernelPath returns the path of a kernel's page.
func KernelPath(repo, folder string) string {
	return "/kernels/" + repo + "/" + (&url.URL{Path: folder}).EscapedPath()
}

// brief returns a verdict's line without the part that the columns next to it already show.
func brief(line string) string {
	if _, rest, ok := strings.Cut(line, ": "); ok {
		return rest
	}
	return line
}

func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// advice says what would make a verdict pass, and the command for it.
type advice struct{ Words, Command string }

func adviceOf(text string) advice {
	text = strings.ReplaceAll(text, "`", "") // remove Markdown
	if words, command, ok := strings.Cut(text, ": kernelgate "); ok {
		return advice{words, "kernelgate " + command}
	}
	return advice{Words: text}
}

// asked formats a policy's goal for a shape with the same signs as the numbers next to it.
func asked(goal string) string {
	goal, _, _ = strings.Cut(goal, " on ")
	goal = strings.TrimPrefix(goal, "speedup ")
	goal = strings.NewReplacer(">=", "≥", "<=", "≤", " -", " −", "%", " %").Replace(goal)
	return strings.Join(strings.Fields(goal), " ")
}

// fine formats a share, with two decimals if it is below 10 %.
func fine(v float64) string {
	if math.Abs(v) >= 0.1 || math.IsNaN(v) {
		return number.Percent(v)
	}
	return strings.Replace(fmt.Sprintf("%+.2f %%", 100*v), "-", "−", 1)
}

// faults describes the faults that a GPU's driver reported.
func faults(g *protocol.GPU) string {
	var said []string
	if g.ECCErrors != nil && *g.ECCErrors > 0 {
		said = append(said, fmt.Sprintf("memory errors that could not be repaired: %d", *g.ECCErrors))
	}
	if n := len(g.Xids); n > 0 {
		said = append(said, fmt.Sprintf("faults that the driver reported (Xid): %d", n))
	}
	return strings.Join(said, ", ")
}

// figure writes what a compiler or a profiler counted, with the digits that comments have.
func figure(v *float64, unit string) string {
	if v == nil {
		return "–"
	}
	return number.PlainAmount(*v, unit)
}
