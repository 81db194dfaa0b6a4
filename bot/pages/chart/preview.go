package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// A Preview is a picture of a result for places that show no SVG: chats, mail, and sites that preview a link. It needs letters, so
// it uses golang.org/x/image, which has a typeface and adds 0.4 MB to the program.
type Preview struct {
	Word  string // such as PASS; without it the picture has only the rows
	Class string // its colour: pass, fail, open, error
	Title string
	Rows  []Interval
	Foot  string
	Dark  bool
}

// The size of a preview with a title, which sites ask for, and of its parts.
const (
	previewWide, previewHigh = 1200, 630
	previewEdge              = 48
	previewRow               = 46
	previewRows              = 7 // with a title
	intervalRows             = 24
)

// A raster is a picture under construction.
type raster struct {
	*image.RGBA
	colours       map[string]color.RGBA
	regular, bold *opentype.Font
}

var lightColours = map[string]color.RGBA{
	"page": {0xff, 0xff, 0xff, 0xff}, "ink": {0x1f, 0x23, 0x28, 0xff}, "soft": {0x57, 0x60, 0x6a, 0xff}, "rule": {0xd0, 0xd7, 0xde, 0xff}, "met": {0xe2, 0xed, 0xe5, 0xff},
	"pass": {0x11, 0x63, 0x29, 0xff}, "fail": {0xa4, 0x0e, 0x26, 0xff}, "error": {0xa4, 0x0e, 0x26, 0xff}, "open": {0x7d, 0x4e, 0x00, 0xff},
}

var darkColours = map[string]color.RGBA{
	"page": {0x0d, 0x11, 0x17, 0xff}, "ink": {0xe6, 0xed, 0xf3, 0xff}, "soft": {0x9a, 0xa4, 0xaf, 0xff}, "rule": {0x30, 0x36, 0x3d, 0xff}, "met": {0x14, 0x29, 0x1f, 0xff},
	"pass": {0x56, 0xd3, 0x64, 0xff}, "fail": {0xff, 0x7b, 0x72, 0xff}, "error": {0xff, 0x7b, 0x72, 0xff}, "open": {0xe3, 0xb3, 0x41, 0xff},
}

// PNG draws the preview.
func (p Preview) PNG() ([]byte, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the typeface: %w", err)
	}
	bold, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the typeface: %w", err)
	}
	rows, high, most := p.Rows, previewHigh, previewRows
	if p.Word == "" {
		most = intervalRows
		if high = previewEdge + previewRow*min(len(rows), most); p.Foot != "" || len(rows) > most {
			high += previewRow
		}
	}
	r := &raster{image.NewRGBA(image.Rect(0, 0, previewWide, high)), lightColours, regular, bold}
	if p.Dark {
		r.colours = darkColours
	}
	r.fill("page", 0, 0, previewWide, high)
	top := previewEdge / 2
	if p.Word != "" {
		if top, err = r.head(p); err != nil {
			return nil, err
		}
		most = min(most, (high-previewEdge-previewRow-top)/previewRow)
	}
	if err := r.rows(rows[:min(len(rows), max(0, most))], top); err != nil {
		return nil, err
	}
	foot := p.Foot
	if more := len(rows) - most; more > 0 {
		foot = strings.TrimPrefix(foot+" · ", " · ") + fmt.Sprintf("and %d more", more)
	}
	if err := r.text(r.regular, 24, "soft", previewEdge, high-previewEdge/2, previewWide-2*previewEdge, foot); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, r)
	return out.Bytes(), err
}

// head draws the word and the title, and returns where the rows begin.
func (r *raster) head(p Preview) (top int, err error) {
	class := p.Class
	if _, ok := r.colours[class]; !ok {
		class = "soft"
	}
	r.fill(class, 0, 0, 16, previewHigh)
	if err := r.text(r.bold, 60, class, previewEdge, 92, previewWide-2*previewEdge, p.Word); err != nil {
		return 0, err
	}
	face, err := opentype.NewFace(r.regular, &opentype.FaceOptions{Size: 34, DPI: 72})
	if err != nil {
		return 0, fmt.Errorf("reading the typeface: %w", err)
	}
	y := 150
	for _, line := range fold(face, p.Title, previewWide-2*previewEdge, 3) {
		r.write(face, "ink", previewEdge, y, line)
		y += 46
	}
	return y - 12, nil
}

// fold breaks a text into lines, and cuts what does not fit.
func fold(face font.Face, text string, wide, most int) []string {
	var lines []string
	fits := func(s string) bool { return font.MeasureString(face, s).Ceil() <= wide }
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && fits(lines[n-1]+" "+word) {
			lines[n-1] += " " + word
			continue
		}
		if len(lines) == most {
			lines[most-1] += "…"
			break
		}
		lines = append(lines, word)
	}
	for i := range lines {
		lines[i] = cutTo(face, lines[i], wide)
	}
	return lines
}

func cutTo(face font.Face, text string, wide int) string {
	if font.MeasureString(face, text).Ceil() <= wide {
		return text
	}
	runes := []rune(strings.TrimSuffix(text, "…"))
	for len(runes) > 0 && font.MeasureString(face, string(runes)+"…").Ceil() > wide {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// rows draws one interval a row: its name, the interval against its goal on the scale of Margins, and the figures.
func (r *raster) rows(rows []Interval, top int) error {
	const from, to = 380, 700
	all := []float64{0}
	for _, row := range rows {
		if row.drawable() {
			for _, v := range append(finite(deref(row.Lower, row.Upper)), row.Value) {
				all = append(all, row.distance(v))
			}
		}
	}
	a, _ := newAxis(all, from+8, to-8)
	a.low, a.high = min(a.low, -a.high/6), max(a.high, -a.low/6)
	for i, row := range rows {
		y := top + previewRow*i
		if err := r.text(r.regular, 26, "ink", previewEdge, y+31, from-previewEdge-16, row.Label); err != nil {
			return err
		}
		if err := r.text(r.regular, 26, "ink", to+24, y+31, previewWide-previewEdge-to-24, row.Text); err != nil {
			return err
		}
		if !row.drawable() {
			continue
		}
		goal, class := int(a.at(0)), row.Class
		if _, ok := r.colours[class]; !ok {
			class = "soft"
		}
		r.fill("met", goal, y+4, to, y+previewRow-4)
		r.fill("ink", goal-1, y+4, goal+2, y+previewRow-4)
		if row.Lower != nil && row.Upper != nil && len(finite([]float64{*row.Lower, *row.Upper})) == 2 {
			r.fill(class, int(a.at(row.distance(*row.Lower))), y+previewRow/2-2, int(a.at(row.distance(*row.Upper)))+1, y+previewRow/2+2)
		}
		r.dot(class, int(a.at(row.distance(row.Value))), y+previewRow/2)
	}
	return nil
}

func (r *raster) fill(colour string, left, top, right, bottom int) {
	draw.Draw(r.RGBA, image.Rect(left, top, right, bottom), image.NewUniform(r.colours[colour]), image.Point{}, draw.Src)
}

// dot draws a disc with a soft edge.
func (r *raster) dot(colour string, x, y int) {
	const radius, fine = 8, 4
	for dy := -radius - 1; dy <= radius+1; dy++ {
		for dx := -radius - 1; dx <= radius+1; dx++ {
			in := 0
			for s := range fine * fine {
				u, v := float64(dx)+(float64(s%fine)+0.5)/fine-0.5, float64(dy)+(float64(s/fine)+0.5)/fine-0.5
				if u*u+v*v <= radius*radius {
					in++
				}
			}
			mask := image.NewUniform(color.Alpha{uint8(255 * in / (fine * fine))})
			draw.DrawMask(r.RGBA, image.Rect(x+dx, y+dy, x+dx+1, y+dy+1), image.NewUniform(r.colours[colour]), image.Point{}, mask, image.Point{}, draw.Over)
		}
	}
}

// text writes a line, cut to its room.
func (r *raster) text(typeface *opentype.Font, size float64, colour string, x, y, room int, text string) error {
	face, err := opentype.NewFace(typeface, &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		return fmt.Errorf("reading the typeface: %w", err)
	}
	r.write(face, colour, x, y, cutTo(face, text, room))
	return nil
}

func (r *raster) write(face font.Face, colour string, x, y int, text string) {
	d := font.Drawer{Dst: r.RGBA, Src: image.NewUniform(r.colours[colour]), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}
