package chart

import "math"

// An Interval is one row of a forest. What is nil is not known.
type Interval struct {
	Label string
	Value float64
	Lower *float64
	Upper *float64
	Goal  *float64 // what it is held against
	Class string   // how it came out: pass, fail, open
	Text  string   // beside the label
}

// Forest shows an interval a row, all on one axis of shares (0.1 is +10 %), with a
// line at zero and a mark at each row's goal.
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
	a.bottom(c, 4, bottom, "", percent)
	c.line("zero", a.at(0), 4, a.at(0), bottom)
	for i, r := range rows {
		top := 4 + high*float64(i)
		room := (width - 24) / 2.0
		c.text("label", "start", 6, top+12, r.Label, room)
		c.text("figure", "end", width-6, top+12, r.Text, width-24-min(room, float64(len([]rune(r.Label)))*charWide))
		y := top + 25
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
	return c.end()
}

func (r Interval) words() string {
	text := percent(r.Value)
	if r.Lower != nil && r.Upper != nil {
		text += " between " + percent(*r.Lower) + " and " + percent(*r.Upper)
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
