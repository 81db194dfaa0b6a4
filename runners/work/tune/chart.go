package tune

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates/number"
)

// chart draws the best speedup so far over the seconds, with block characters.
func (r *Result) chart(width int) string {
	const rows = 6
	if len(r.Curve) < 2 {
		return ""
	}
	end := r.Curve[len(r.Curve)-1].Seconds
	top := 0.0
	for _, m := range r.Curve {
		top = max(top, m.Speedup)
	}
	label := utf8.RuneCountInString(number.Speedup(top))
	columns := make([]float64, max(width-label, 10))
	at := 0
	for i := range columns {
		for at+1 < len(r.Curve) && r.Curve[at+1].Seconds <= end*float64(i+1)/float64(len(columns)) {
			at++
		}
		if r.Curve[at].Seconds <= end*float64(i+1)/float64(len(columns)) {
			columns[i] = max(r.Curve[at].Speedup, 0)
		}
	}
	if top == 0 {
		return ""
	}
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for row := rows - 1; row >= 0; row-- {
		text := ""
		if row == rows-1 {
			text = number.Speedup(top)
		} else if row == 0 {
			text = "0 %"
		}
		fmt.Fprintf(&b, "%*s │", label, text)
		for _, v := range columns {
			level := v/top*rows - float64(row)
			b.WriteRune(blocks[int(8*min(max(level, 0), 1)+0.5)])
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%*s └%s\n%*s  0 s%*s\n", label, "", strings.Repeat("─", len(columns)), label, "", len(columns)-3, fmt.Sprintf("%.0f s", end))
	return b.String()
}

// ChartFile is the name of the chart in the folder of a search.
const ChartFile = "chart.svg"

// SVG is the same chart as a picture: the best speedup so far as steps, and a dot for every
// candidate at the moment when it was last timed. The dots of the elite are red.
func (r *Result) SVG() string {
	const width, height, left, right, top, bottom = 720, 300, 70, 20, 20, 40
	end, low, high := 1.0, 0.0, 0.01
	for _, m := range r.Curve {
		end, high = max(end, m.Seconds), max(high, m.Speedup)
	}
	for _, s := range r.Ranking {
		low, high = min(low, s.Speedup), max(high, s.Speedup)
	}
	low = max(low, -high) // what is far behind is drawn at the lower edge
	x := func(seconds float64) float64 { return left + seconds/end*(width-left-right) }
	y := func(speedup float64) float64 {
		return top + (high-max(speedup, low))/(high-low)*(height-top-bottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="Best speedup over the seconds of measuring">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for _, tick := range []float64{0, high} {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ccc"/><text x="%d" y="%.1f" text-anchor="end" fill="#333">%s</text>`+"\n", left, width-right, y(tick), y(tick), left-8, y(tick)+4, number.Speedup(tick))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#333">0 s</text><text x="%d" y="%d" text-anchor="end" fill="#333">%.0f s of measuring</text>`+"\n", left, height-12, width-right, height-12, end)
	path := ""
	for _, m := range r.Curve {
		if path == "" {
			path = fmt.Sprintf("M%.1f %.1f", x(m.Seconds), y(m.Speedup))
		} else {
			path += fmt.Sprintf(" H%.1f V%.1f", x(m.Seconds), y(m.Speedup))
		}
	}
	if path != "" {
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="#1f6feb" stroke-width="2"/>`+"\n", path)
	}
	for _, s := range r.Ranking {
		colour := "#999"
		if r.mark(s.Arm) != "" {
			colour = "#d1242f"
		}
		t := r.Find(s.Arm)
		if t == nil || s.Rounds == 0 {
			continue
		}
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity="0.7"><title>%s %s</title></circle>`+"\n", x(t.measured), y(s.Speedup), colour, html.EscapeString(r.name(t)), number.Speedup(s.Speedup))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
