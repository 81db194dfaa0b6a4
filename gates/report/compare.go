package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// CompareRuns is two runs side by side in a terminal: the speedup of B over A, drawn against no
// change, significant differences first; then the counters that differ.
func CompareRuns(a, b Result, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	say := func(text string) { w.b.WriteString(strings.Join(wrap(text, opt.Width), "\n") + "\n") }
	var drawn []gates.Comparison
	var timed, counted []Difference
	same, alone := 0, map[string][]string{}
	for _, d := range Differences(a, b) {
		switch {
		case d.Kind == "time":
			timed, drawn = append(timed, d), append(drawn, d.asSpeedup())
		case d.Kind != "time" && (d.A == nil) != (d.B == nil):
			side := d.side()
			name := Plain(d.Name)
			if d.Kind == "error" {
				name = "error on " + name
			}
			alone[side] = append(alone[side], name)
		case d.Kind == "resource" && d.Significant():
			counted = append(counted, d)
		case d.Kind == "resource":
			same++
		}
	}
	for i, r := range []Result{a, b} {
		say(string("AB"[i]) + "  " + clean(r.title()))
	}
	w.b.WriteString("\n")
	if len(timed) == 0 {
		say(untimed(a, b))
	}
	pictures := bars(drawn)
	for i, d := range timed {
		bar := cmp.Or(pictures[i], strings.Repeat(string(nbsp), barCells))
		lead, width := strings.Repeat(" ", indent)+w.sign(d.sign())+" "+bar+" ", 0
		if opt.Width > 0 {
			width = max(opt.Width-indent-barCells-3, 20)
		}
		for _, line := range wrap(clean(d.text()), width) {
			w.b.WriteString(lead + line + "\n")
			lead = strings.Repeat(" ", indent+barCells+3)
		}
	}
	if len(counted) > 0 {
		w.b.WriteString("\n")
		for _, d := range counted {
			say(fmt.Sprintf("  · %s: %s → %s", clean(d.Name), amountOf(d.A, d.Unit), amountOf(d.B, d.Unit)))
		}
	}
	if same > 0 {
		say(fmt.Sprintf("  · %s of the resources did not change", number.Plural(same, "figure")))
	}
	for _, side := range []string{"A", "B"} {
		if names := alone[side]; len(names) > 0 {
			say(fmt.Sprintf("  · only in %s: %s", side, strings.Join(names[:min(len(names), aloneShown)], ", ")) + more(len(names)-aloneShown))
		}
	}
	w.b.WriteString("\n")
	if text := apart(a.Evidence, b.Evidence); text != "" {
		say(clean(text))
	}
	say("┆ marks the speed of A; right of it B is faster. " + NotSideBySide)
	return w.b.String()
}

// aloneShown is how many figures that only one run has are named.
const aloneShown = 8

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

// side is the run that has a figure that the other lacks.
func (d Difference) side() string {
	if d.B == nil {
		return "A"
	}
	return "B"
}

// untimed says why there are no times to compare.
func untimed(a, b Result) string {
	text := "Neither of them was timed"
	var why []string
	for i, r := range []Result{a, b} {
		if v := r.Verdict; v != nil && v.Outcome != gates.Pass {
			why = append(why, fmt.Sprintf("%c ended with %s: %s", "AB"[i], wordAndReason(v), lowered(summary(v))))
		}
	}
	if why == nil {
		return text + "."
	}
	return text + ". " + strings.Join(why, ". ") + "."
}

// asSpeedup is a time as the bars draw it.
func (d Difference) asSpeedup() gates.Comparison {
	c := gates.Comparison{Shape: d.Name, Goal: "speedup >= 0%"}
	if d.Ratio == nil || d.Lower == nil || d.Upper == nil || d.A == nil || d.B == nil {
		return c
	}
	c.Baseline, c.Candidate = &stats.Summary{P50: *d.A}, &stats.Summary{P50: *d.B}
	c.Speedup = gates.Estimate{Value: *d.Ratio, Lower: d.Lower, Upper: d.Upper}
	return c
}

func (d Difference) sign() sign {
	switch d.Class {
	case "pass":
		return signPass
	case "fail":
		return signFail
	}
	return signInform
}

func (d Difference) text() string {
	switch {
	case d.A == nil && d.B == nil:
		return d.Name + " was not timed"
	case d.A == nil:
		return fmt.Sprintf("%s %s in B, not timed in A", d.Name, number.Time(*d.B))
	case d.B == nil:
		return fmt.Sprintf("%s %s in A, not timed in B", d.Name, number.Time(*d.A))
	}
	text := fmt.Sprintf("%s %s", d.Name, number.FromTo(d.Times()))
	if d.P == nil {
		return text + ", " + d.Finding()
	}
	return fmt.Sprintf("%s, %s, %s", text, d.Finding(), number.P(*d.P))
}

// title is a run in one line.
func (r Result) title() string {
	e, v := r.Evidence, r.Verdict
	text := e.Kernel
	if e.Provenance.Head.Variant != "" {
		text += " " + e.Provenance.Head.Variant
	}
	if e.Provenance.Head.SHA != "" {
		text += " at " + Short(e.Provenance.Head.SHA)
	}
	if e.Device.Name != "" {
		text += ", " + e.Device.Name
	}
	if v != nil {
		text += ": " + wordAndReason(v)
	}
	return text
}

// apart is what differs between the two runs, except the times of the kernel.
func apart(a, b *gates.Evidence) string {
	var said []string
	if a.Kernel != b.Kernel {
		said = append(said, fmt.Sprintf("These are different kernels: %s and %s.", a.Kernel, b.Kernel))
	}
	if a.Device.Name != b.Device.Name {
		said = append(said, fmt.Sprintf("They ran on different devices: %s and %s.", a.Device.Name, b.Device.Name))
	}
	if text := Moved(a.Device, b.Device, a.Provenance, b.Provenance); text != "" {
		said = append(said, "Changed between them: "+text+".")
	}
	return strings.Join(said, " ")
}

// Moved names what changed around the kernel between two runs, as far as both say it; "" where
// nothing did.
func Moved(before, after gates.Device, from, to gates.Provenance) string {
	var said []string
	say := func(what, from, to string) {
		if from != to && from != "" && to != "" {
			said = append(said, fmt.Sprintf("%s %s → %s", what, from, to))
		}
	}
	say("driver", before.Driver, after.Driver)
	say("host", from.Host, to.Host)
	for _, tool := range slices.Sorted(maps.Keys(to.Tools)) {
		say(tool, from.Tools[tool], to.Tools[tool])
	}
	return strings.Join(said, "; ")
}
