// Package chart draws small pictures of measurements as SVG, for pages: strips of
// samples, distributions, intervals against goals, a history with its band. It
// knows nothing of gates or runs, computes nothing that is judged, and has no
// colours: every mark bears a class, and the page's style sheet gives it one for
// light and for dark.
//
// It is ours because of what it writes. gonum/plot and go-analyze/charts both draw
// well, but put colours and fonts into style attributes, which a strict
// Content-Security-Policy forbids and a dark page cannot change; neither writes a
// title for those who cannot see the picture; and they measure text with fonts that
// they bring along (eight more modules and a program of 11 MB for a scatter of three
// points with gonum/plot, 0.6 MB of fonts with go-analyze/charts). What is needed
// here is eight forms of chart, in fewer lines than either would take to configure.
//
// The same data give the same bytes. Whatever the data (none at all, one value, NaN,
// ±Inf, 1e308), the result is well-formed and no mark lies outside the picture.
package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Group is values of one kind, such as the samples of one side.
type Group struct {
	Name   string
	Class  string // of its marks, such as candidate
	Values []float64
}

// Pictures are drawn for a narrow screen, so that their text can be read there; a
// wide one shows several beside each other.
const (
	width    = 360
	charWide = 6.3 // of the style sheet's 11 units, on average
	lineHigh = 16
)

// textWide is how wide a text is at 11 units. Signs and digits are wider than letters in the fonts that systems have.
func textWide(text string) float64 {
	wide := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" .,:;'|ijl", r):
			wide += 3.8
		case strings.ContainsRune("%mwMW", r):
			wide += 10.6
		case strings.ContainsRune("+−<>=≥≤→×~", r):
			wide += 9.3
		case r >= '0' && r <= '9' || r >= 'A' && r <= 'Z':
			wide += 7.2
		default:
			wide += 6.6
		}
	}
	return wide
}

// A canvas is a picture on its way.
type canvas struct {
	strings.Builder
	w, h float64
}

// begin opens a picture. The title says what it is, the description what it shows,
// to those who hear it read.
func begin(kind, title, description string, w, h float64) *canvas {
	c, role := &canvas{w: w, h: h}, "img"
	if kind == "line" { // its points may be links, which an image must not hold
		role = "group"
	}
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" class="chart %s" viewBox="0 0 %s %s" role="%s" aria-label="%s">`,
		kind, number(w), number(h), role, escape(title))
	fmt.Fprintf(c, `<title>%s</title>`, escape(title))
	if description != "" {
		fmt.Fprintf(c, `<desc>%s</desc>`, escape(description))
	}
	return c
}

func (c *canvas) end() string {
	c.WriteString("</svg>\n")
	return c.String()
}

// nothing is the picture of no data.
func nothing(kind, title string) string {
	c := begin(kind, title, "no data", width, 2*lineHigh)
	c.text("none", "start", 4, lineHigh+4, "no data", width-8)
	return c.end()
}

func (c *canvas) x(v float64) float64 { return inside(v, 0, c.w) }
func (c *canvas) y(v float64) float64 { return inside(v, 0, c.h) }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, `<path class="%s" d="M%s %sL%s %s"/>`, words(class), number(c.x(x1)), number(c.y(y1)), number(c.x(x2)), number(c.y(y2)))
}

func (c *canvas) rect(class string, x, y, w, h float64, hint string) {
	x, y = c.x(x), c.y(y)
	w, h = inside(w, 0, c.w-x), inside(h, 0, c.h-y)
	fmt.Fprintf(c, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, words(class), number(x), number(y), number(w), number(h))
	c.hinted("rect", hint)
}

func (c *canvas) dot(class string, x, y, r float64, hint string) {
	fmt.Fprintf(c, `<circle class="%s" cx="%s" cy="%s" r="%s"`, words(class), number(inside(x, r, c.w-r)), number(inside(y, r, c.h-r)), number(r))
	c.hinted("circle", hint)
}

// hinted ends an element, with what is shown when somebody points at it.
func (c *canvas) hinted(element, hint string) {
	if hint == "" {
		c.WriteString("/>")
		return
	}
	fmt.Fprintf(c, `><title>%s</title></%s>`, escape(hint), element)
}

// text writes a line that is cut to the room it has. The anchor is start, middle or
// end.
func (c *canvas) text(class, anchor string, x, y float64, text string, room float64) {
	text = clip(text, room)
	half := textWide(text) / 2
	switch anchor { // near an edge a label moves inwards
	case "middle":
		x = inside(x, half, max(half, c.w-half))
	case "end":
		x = inside(x, min(2*half, c.w), c.w)
	}
	fmt.Fprintf(c, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, words(class), anchor, number(c.x(x)), number(c.y(y)), escape(text))
}

// A trail is a path point by point.
type trail struct {
	*canvas
	d strings.Builder
}

func (t *trail) to(command string, x, y float64) {
	t.d.WriteString(command + number(t.x(x)) + " " + number(t.y(y)))
}

func (t *trail) draw(class string) {
	if t.d.Len() > 0 {
		fmt.Fprintf(t.canvas, `<path class="%s" d="%s"/>`, words(class), t.d.String())
	}
}

// words keeps a class to letters: some are made of what others wrote.
func words(class string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '-' || r == ' ' {
			return r
		}
		return -1
	}, class)
}

// number writes a coordinate: a tenth of a unit is finer than any screen.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	if text = strings.TrimSuffix(text, ".0"); text == "-0" {
		return "0"
	}
	return text
}

func inside(v, low, high float64) float64 {
	if math.IsNaN(v) {
		return low
	}
	return max(low, min(v, high))
}

// finite leaves out what has no place on an axis.
func finite(values []float64) []float64 {
	var kept []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept = append(kept, v)
		}
	}
	return kept
}

// clip cuts a text to the room that it has.
func clip(text string, room float64) string {
	if textWide(text) <= room {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && textWide(string(runes)+"…") > room {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// escapeLines is escape for a text of several lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "&#10;")
}

// escape makes a text safe in XML, and drops what XML cannot hold.
func escape(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case r == '\t' || r == '\n' || r == '\r':
			b.WriteByte(' ')
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xFFFE || r == 0xFFFF:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
