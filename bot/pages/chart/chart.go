// Package chart draws small SVG charts of measurements for web pages: strips of samples,
// distributions, intervals with goals, histories with bands and others. It knows nothing about
// gates or runs, and it computes nothing that is judged. It sets no colours: every mark has a
// class, and the page's style sheet defines colours for light and dark mode. The same data give the
// same bytes. For any data (none, one value, NaN, ±Inf, 1e308) the SVG is well-formed and no mark
// lies outside of it.
//
// We do not use gonum/plot or go-analyze/charts, because they put colours and fonts into style
// attributes. A strict Content-Security-Policy forbids those, and dark mode cannot change them.
// Neither library writes a title for screen readers. Both measure text with fonts that they bundle:
// gonum/plot adds eight modules and makes a program of 11 MB for a scatter plot of three points,
// and go-analyze/charts adds 0.6 MB of fonts. The eight kinds of charts here take fewer lines than
// configuring either library.
package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Group holds values of one kind, such as the samples of one side.
type Group struct {
	Name   string
	Class  string // class of its marks, such as candidate
	Values []float64
}

// Charts are drawn for a narrow screen, so that their text is readable there. A wide screen shows
// several charts next to each other.
const (
	width    = 360
	charWide = 6.3 // average width, at the style sheet's font size of 11 units
	lineHigh = 16
)

// textWide estimates the width of a text at a font size of 11 units. Signs and digits are wider
// than letters in common system fonts.
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

// A canvas is a chart under construction.
type canvas struct {
	strings.Builder
	w, h float64
}

// begin starts a chart. The title says what it is, the description what it shows. Both are for
// screen readers.
func begin(kind, title, description string, w, h float64) *canvas {
	c, role := &canvas{w: w, h: h}, "img"
	if kind == "line" { // its points may be links, which role img does not allow
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

// beginSmall starts a chart in a cell of a table. A page may have hundreds of them. It has no title: the figures are next to it.
func beginSmall(kind string, w, h float64) *canvas {
	c := &canvas{w: w, h: h}
	fmt.Fprintf(c, `<svg class="chart %s" viewBox="0 0 %s %s" aria-hidden="true">`, kind, number(w), number(h))
	return c
}

func (c *canvas) end() string {
	c.WriteString("</svg>\n")
	return c.String()
}

// nothing draws a chart without data.
func nothing(kind, title string) string {
	c := begin(kind, title, "no data", width, 2*lineHigh)
	c.text("none", "start", 4, lineHigh+4, "no data", width-8)
	return c.end()
}

func (c *canvas) x(v float64) float64 { return inside(v, 0, c.w) }
func (c *canvas) y(v float64) float64 { return inside(v, 0, c.h) }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fromX, fromY, toX, toY := number(c.x(x1)), number(c.y(y1)), number(c.x(x2)), number(c.y(y2))
	to := "L" + toX + " " + toY
	switch { // many lines are straight up or across, and a page has hundreds
	case fromX == toX:
		to = "V" + toY
	case fromY == toY:
		to = "H" + toX
	}
	fmt.Fprintf(c, `<path class="%s" d="M%s %s%s"/>`, words(class), fromX, fromY, to)
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

// hinted ends an element with the hint that is shown on hover.
func (c *canvas) hinted(element, hint string) {
	if hint == "" {
		c.WriteString("/>")
		return
	}
	fmt.Fprintf(c, `><title>%s</title></%s>`, escape(hint), element)
}

// text writes a line of text, truncated to its room. The anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, text string, room float64) {
	text = clip(text, room)
	half := textWide(text) / 2
	switch anchor { // move a label away from the edge
	case "middle":
		x = inside(x, half, max(half, c.w-half))
	case "end":
		x = inside(x, min(2*half, c.w), c.w)
	}
	attribute := ""
	if anchor != "start" { // the default
		attribute = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(c, `<text class="%s"%s x="%s" y="%s">%s</text>`, words(class), attribute, number(c.x(x)), number(c.y(y)), escape(text))
}

// A trail is a path that is built point by point.
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

// words reduces a class to letters: some classes derive from foreign text.
func words(class string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '-' || r == ' ' {
			return r
		}
		return -1
	}, class)
}

// number formats a coordinate. A tenth of a unit is finer than any screen.
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

// finite returns the values that are finite.
func finite(values []float64) []float64 {
	var kept []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept = append(kept, v)
		}
	}
	return kept
}

// clip truncates a text to the room that it has.
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

// escapeLines is escape for a text with several lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "&#10;")
}

// escape makes a text safe in XML, and drops characters that XML does not allow.
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
