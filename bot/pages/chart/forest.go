package chart

import (
	"math"
	"strings"

	notation "github.com/kernelgate/kernelgate/gates/number"
)

// An Interval is one row of a forest plot. A nil bound or goal is unknown.
type Interval struct {
	Label string
	Value float64
	Lower *float64
	Upper *float64
	Goal  *float64 // the required value
	Class string   // result: pass, fail, open
	Text  string   // shown next to the label
}

// Forest draws one interval per row, all on one axis of shares (0.1 is +10 %), with a line at zero
// and a mark at each row's goal.
func Forest(title string, rows []Interval) string {
	all := []float64{0}
	any := false
	for _, r := range rows {
		some := finite(append(deref(r.Lower, r.Upper, r.Goal), r.Value))
		any = any || len(some) > 0
		all = append(all, some...)
	}
	if !any {
		return nothing("forest", title)
	}
	a, _ := newAxis(all, 12, width-12)
	const high = 38
	bottom := float64(4 + high*len(rows))
	description := "Intervals:"
	for _, r := range rows {
		description += " " + r.Label + " " + r.words() + ";"
	}
	c := begin("forest", title, description, width, bottom+20)
	a.bottom(c, 4, bottom, "", gain)
	c.line("zero", a.at(0), 4, a.at(0), bottom)
	for i, r := range rows {
		top := 4 + high*float64(i)
		room := (width - 24) / 2.0
		c.text("label", "start", 6, top+12, r.Label, room)
		c.text("figure", "end", width-6, top+12, r.Text, width-24-min(room, textWide(r.Label)))
		c.interval(r, a, top+25)
	}
	return c.end()
}

// interval draws one interval with its goal.
func (c *canvas) interval(r Interval, a axis, y float64) {
	if r.Goal != nil && !math.IsNaN(*r.Goal) {
		at := a.at(*r.Goal)
		c.line("goal", at, y-9, at, y+9)
	}
	if r.Lower != nil && r.Upper != nil && !math.IsNaN(*r.Lower) && !math.IsNaN(*r.Upper) {
		from, to := a.at(*r.Lower), a.at(*r.Upper)
		c.line("whisker "+r.Class, from, y, to, y)
		c.line("whisker "+r.Class, from, y-4, from, y+4)
		c.line("whisker "+r.Class, to, y-4, to, y+4)
	}
	if !math.IsNaN(r.Value) {
		c.dot("dot "+r.Class, a.at(r.Value), y, 4, r.Label+": "+r.words())
	}
}

// Rows draws one interval per row, with the names on the axis at the left and the figures at the right, so that no line crosses
// them.
func Rows(title string, rows []Interval) string {
	all := []float64{0}
	names, figures := 0.0, 0.0
	for _, r := range rows {
		all = append(all, finite(append(deref(r.Lower, r.Upper, r.Goal), r.Value))...)
		names, figures = max(names, textWide(r.Label)), max(figures, textWide(r.Text))
	}
	if len(all) == 1 {
		return nothing("forest", title)
	}
	const high, top, most = 20, 4, width / 3.0
	left, right := min(names, most)+10, width-min(figures, most)-10
	a, _ := newAxis(all, left+8, right-8)
	bottom := float64(top + high*len(rows))
	description := "Intervals:"
	for _, r := range rows {
		description += " " + r.Label + " " + r.words() + ";"
	}
	c := begin("forest", title, description, width, bottom+20)
	a.bottom(c, top, bottom, "", gain)
	c.line("axis", left, top, left, bottom)
	c.line("zero", a.at(0), top, a.at(0), bottom)
	for i, r := range rows {
		y := top + high*(float64(i)+0.5)
		c.text("label", "end", left-6, y+4, r.Label, left-10)
		c.text("figure", "end", width-4, y+4, r.Text, width-right)
		c.interval(r, a, y)
	}
	return c.end()
}

func (r Interval) words() string {
	text := notation.Gain(r.Value, r.Lower, r.Upper)
	if r.Lower != nil && r.Upper != nil {
		text += " " + notation.GainInterval(r.Value, r.Lower, r.Upper)
	}
	if r.Goal != nil {
		text += ", goal " + percent(*r.Goal)
	}
	return text
}

func deref(all ...*float64) []float64 {
	var values []float64
	for _, p := range all {
		if p != nil {
			values = append(values, *p)
		}
	}
	return values
}

// aloneStyle repeats the rules of the pages' style sheet for a forest plot outside of a page.
const aloneStyle = `<style>
svg { --page: #fff; --ink: #1f2328; --soft: #57606a; --rule: #d0d7de; --pass: #116329; --fail: #a40e26; --open: #7d4e00; font: 11px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --page: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --rule: #30363d; --pass: #56d364; --fail: #ff7b72; --open: #e3b341; } }
rect.paper { fill: var(--page); } text { fill: var(--ink); } path { fill: none; }
.tick, .unit { fill: var(--soft); } .grid { stroke: var(--rule); stroke-width: .7; } .axis { stroke: var(--soft); } .zero { stroke: var(--soft); stroke-width: 1.2; }
.goal { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 2; } .whisker { stroke: var(--soft); stroke-width: 2; } .dot { fill: var(--soft); }
.whisker.pass { stroke: var(--pass); } .whisker.fail { stroke: var(--fail); } .whisker.open { stroke: var(--open); }
.dot.pass { fill: var(--pass); } .dot.fail { fill: var(--fail); } .dot.open { fill: var(--open); }
</style><rect class="paper" width="100%" height="100%"/>`

// Alone adds colours to a forest plot, so that it can be shown outside of a page.
func Alone(svg string) string {
	head, rest, ok := strings.Cut(svg, "</title>")
	if !ok {
		return svg
	}
	return strings.Replace(head, "<svg ", `<svg width="540" `, 1) + "</title>" + aloneStyle + rest
}
