package chart

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

func pointer(v float64) *float64 { return &v }

// samples returns 40 values around a mean, the same every time.
func samples(seed uint64, middle, spread float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := make([]float64, 40)
	for i := range values {
		values[i] = middle + spread*r.NormFloat64()
	}
	return values
}

func sides() []Group {
	return []Group{
		{"baseline", "baseline", samples(1, 23.4, 0.3)}, {"control", "control", samples(2, 23.5, 0.3)}, {"candidate", "candidate", samples(3, 19.8, 0.2)},
	}
}

// placed assigns places and cards to the points of a trend.
func placed(points []Point, scale float64) []Point {
	var list []Point
	for i, p := range points {
		p.At, p.Card, p.Value, p.Lower, p.Upper = i, "commit\n"+p.Hint, p.Value*scale, pointer(*p.Lower*scale), pointer(*p.Upper*scale)
		list = append(list, p)
	}
	return list
}

// pictures draws one chart of each kind.
func pictures() map[string]string {
	history := make([]Point, 12)
	for i, v := range samples(4, 20, 0.4)[:12] {
		if i > 6 {
			v -= 3
		}
		history[i] = Point{Value: v, Lower: pointer(v - 0.5), Upper: pointer(v + 0.8), Class: "pass", Hint: fmt.Sprint("commit ", i), Link: fmt.Sprint("/runs/", i)}
	}
	order := Sequence{Groups: sides(), Values: [][]float64{nil, nil, nil}, Breaks: []int{0, 60}}
	for i := range 120 {
		for g := range order.Values {
			v := math.NaN()
			if i%3 == g {
				v = order.Groups[g].Values[i/3]
			}
			order.Values[g] = append(order.Values[g], v)
		}
	}
	return map[string]string{
		"strip": Strip("mission: all rounds", "µs", sides()),
		"ecdf":  ECDF("mission: distributions", "µs", []Group{sides()[0], sides()[2]}),
		"forest": Forest("Speedup against goals", []Interval{
			{Label: "mission", Value: 0.18, Lower: pointer(0.17), Upper: pointer(0.195), Goal: pointer(0.1), Class: "pass", Text: "+18 % (goal ≥ +10 %)"},
			{Label: "long", Value: -0.02, Lower: pointer(-0.03), Upper: pointer(0.001), Goal: pointer(-0.02), Class: "open", Text: "−2 %"},
			{Label: "old", Value: 0.05, Class: "info"},
		}),
		"kinds": Rows("by kind", []Interval{
			{Label: "normal", Value: 0.12, Lower: pointer(0.1), Upper: pointer(0.14), Class: "pass", Text: "+12.0 %"},
			{Label: "a kind of input with a long name", Value: -0.43, Class: "none", Text: "1.75× slower"},
		}),
		"trend": Trend(History{Title: "mission on main", Unit: "µs", Labels: strings.Fields("a11 b22 c33 d44 e55 f66 a77 b88 c99 d10 e11 f12"), Series: []Series{{"H200", "first", placed(history, 0.2)}, {"L4", "second", placed(history[3:9], 1)}},
			Marks: []Mark{{Before: 7, Text: "driver 575 → 580", Class: "environment"}}, Levels: []Level{{"other library", 5}}, Goal: &Level{"goal of the next change", 4.5}}),
		"order": Order("mission: samples in order", "µs", order),
		"tracks": Tracks("mission: the device", 120, order.Breaks, []Track{
			{"SM clock", "MHz", []float64{5, 11, 17, 59, 60, 90, 119}, []float64{1980, 1980, 1965, 1755, 1980, 1950, 1755}},
			{"power draw", "W", []float64{0, 59, 60, 119}, []float64{140, 610, 600, 690}},
			{"temperature", "°C", []float64{0, 119}, []float64{38, 38}}, {"fan", "%", nil, nil},
		}),
		"bars": Bars("What warps wait for", []Beside{{"data from global memory", 61.2, 12}, {"a barrier", 0, 33.3}, {"nothing: they issue", 14, 41}}),
		"arrow": Roofline("Roofline of a difference", 4.8e12, []Ceiling{{"fp8", 1.979e15}}, []Spot{
			{"mission, baseline", 90, 2e14, "baseline", "baseline", nil}, {"mission, candidate", 240, 4e14, "candidate", "candidate", &Spot{Intensity: 90, FLOPs: 2e14}}}),
		"spark": Spark("mission", samples(5, 20, 1)[:12]),
		"margin": strings.Join(Margins([]Interval{
			{Label: "mission", Value: 0.18, Lower: pointer(0.17), Upper: pointer(0.195), Goal: pointer(0.1), Class: "pass"},
			{Label: "long", Value: -0.33, Lower: pointer(-0.34), Upper: pointer(-0.32), Goal: pointer(-0.02), Class: "fail"},
			{Label: "free", Value: 0.18},
		}), ""),
		"fill":     Fill(226.0/227, "pass"),
		"funnel":   Funnel("Speedup so far", []Narrowing{{1, 0.2, -0.05, 0.5}, {2, 0.15, 0.02, 0.3}, {3, 0.17, 0.1, 0.24}, {4, 0.165, 0.12, 0.21}}, pointer(0.1)),
		"race":     Race("Best speedup", []RacePoint{{5, 0.02, "a", true}, {9, 0.05, "b", true}, {30, 0.045, "b", true}}, []RacePoint{{9, -0.1, "c <slow>", false}, {30, 0.045, "b", true}}),
		"roofline": Roofline("Roofline", 4.8e12, []Ceiling{{"fp8", 1.979e15}}, []Spot{{"mission", 120, 3e14, "candidate", "mission", nil}, {"mission", 120, 2e14, "baseline", "", nil}, {"small", 20, 1e12, "candidate", "small", nil}}),
	}
}

func TestGolden(t *testing.T) {
	for name, got := range pictures() {
		if again := pictures()[name]; again != got {
			t.Errorf("%s: two pictures of the same data differ", name)
		}
		for one := range strings.SplitSeq(strings.TrimSpace(got), "</svg>\n") {
			if err := check(strings.TrimSuffix(one, "</svg>") + "</svg>"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		file := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (rewrite with -update): %s", name, diff)
		}
	}
}

var coordinate = regexp.MustCompile(`([MLHVhZ])(-?[0-9.]+)?(?: (-?[0-9.]+))?`)

// check verifies that a chart is well-formed XML, that every mark lies within the viewBox, that it
// has a title unless it is hidden from screen readers, and that it has neither style nor script.
func check(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	var w, h float64
	within := func(text string, most float64) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > most {
			return fmt.Errorf("%q is not between 0 and %v", text, most)
		}
		return nil
	}
	titles, depth := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			if titles == 0 || depth != 0 {
				return fmt.Errorf("%d titles, %d elements are open", titles, depth)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w in %.300s", err, svg)
		}
		if _, ok := token.(xml.EndElement); ok {
			depth--
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		depth++
		attr := map[string]string{}
		for _, a := range e.Attr {
			attr[a.Name.Local] = a.Value
		}
		var bad error
		try := func(err error) {
			if bad == nil && err != nil {
				bad = fmt.Errorf("<%s>: %w", e.Name.Local, err)
			}
		}
		switch e.Name.Local {
		case "svg":
			if _, err := fmt.Sscanf(attr["viewBox"], "0 0 %g %g", &w, &h); err != nil {
				return err
			}
			if attr["aria-hidden"] == "true" {
				titles++ // it needs none
			}
		case "title":
			titles++
		case "desc":
		case "a":
			if !strings.HasPrefix(attr["href"], "/") {
				try(fmt.Errorf("a link to %q", attr["href"]))
			}
		case "rect":
			try(within(attr["x"], w))
			try(within(attr["y"], h))
			x, _ := strconv.ParseFloat(attr["x"], 64)
			y, _ := strconv.ParseFloat(attr["y"], 64)
			try(within(attr["width"], w-x+0.11)) // both are rounded
			try(within(attr["height"], h-y+0.11))
		case "circle":
			try(within(attr["cx"], w))
			try(within(attr["cy"], h))
		case "text":
			try(within(attr["x"], w))
			try(within(attr["y"], h))
		case "g":
		case "path":
			for _, m := range coordinate.FindAllStringSubmatch(attr["d"], -1) {
				switch m[1] {
				case "M", "L":
					try(within(m[2], w))
					try(within(m[3], h))
				case "H":
					try(within(m[2], w))
				case "V":
					try(within(m[2], h))
				}
			}
			if rest := strings.TrimSpace(coordinate.ReplaceAllString(attr["d"], "")); rest != "" {
				try(fmt.Errorf("a path with %q", rest))
			}
		default:
			return fmt.Errorf("an element <%s>", e.Name.Local)
		}
		if attr["style"] != "" {
			try(fmt.Errorf("a style"))
		}
		if bad != nil {
			return bad
		}
	}
}

// strange generates pathological values and texts.
type strange struct{ *rand.Rand }

func (r strange) value() float64 {
	list := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
		-math.SmallestNonzeroFloat64, 1e-300, 1e300, 1 << 53, 1<<53 + 2, r.NormFloat64(), 1e9 + r.Float64(), math.Copysign(0, -1)}
	return list[r.IntN(len(list))]
}

func (r strange) values() []float64 {
	list := make([]float64, []int{0, 1, 2, 3, 50, 2000}[r.IntN(6)])
	same := r.value()
	for i := range list {
		if list[i] = same; r.IntN(3) > 0 {
			list[i] = r.value()
		}
	}
	return list
}

func (r strange) pointer() *float64 {
	if r.IntN(3) == 0 {
		return nil
	}
	return pointer(r.value())
}

func (r strange) text() string {
	list := []string{"", "mission", "<script>alert(1)</script>", `"><b onload='x'>&amp;`, "\x00\x01\x1b[31m", "\xff\xfe", "日本語のとても長い名前です", strings.Repeat("w", 500), "]]>", "\u202e\ufffe\n"}
	return list[r.IntN(len(list))]
}

func (r strange) groups() []Group {
	list := make([]Group, r.IntN(4))
	for i := range list {
		list[i] = Group{r.text(), r.text(), r.values()}
	}
	return list
}

// TestStrangeData checks that for any data the chart is well-formed and nothing lies outside of it.
func TestStrangeData(t *testing.T) {
	for seed := range uint64(120) {
		r := strange{rand.New(rand.NewPCG(seed, 9))}
		rows, points := make([]Interval, r.IntN(4)), make([]Point, r.IntN(30))
		for i := range rows {
			rows[i] = Interval{r.text(), r.value(), r.pointer(), r.pointer(), r.pointer(), r.text(), r.text()}
		}
		for i := range points {
			points[i] = Point{r.value(), r.pointer(), r.pointer(), r.text(), r.text(), "/" + r.text(), r.IntN(60) - 9, r.text() + "\n" + r.text()}
		}
		rounds := make([]Narrowing, r.IntN(6))
		for i := range rounds {
			rounds[i] = Narrowing{r.IntN(9) - 2, r.value(), r.value(), r.value()}
		}
		spots := make([]Spot, r.IntN(5))
		for i := range spots {
			spots[i] = Spot{r.text(), r.value(), r.value(), r.text(), r.text(), &Spot{Intensity: r.value(), FLOPs: r.value()}}
		}
		best, arms := make([]RacePoint, r.IntN(5)), make([]RacePoint, r.IntN(5))
		for _, list := range [][]RacePoint{best, arms} {
			for i := range list {
				list[i] = RacePoint{r.value(), r.value(), r.text(), r.IntN(2) == 0}
			}
		}
		groups := r.groups()
		sequence := Sequence{Groups: groups, Breaks: []int{0, 7, 1 << 40, -3}}
		for _, g := range groups {
			sequence.Values = append(sequence.Values, g.Values)
		}
		groupAt := r.values()
		for name, svg := range map[string]string{
			"strip": Strip(r.text(), r.text(), groups), "ecdf": ECDF(r.text(), r.text(), groups), "forest": Forest(r.text(), rows),
			"trend": Trend(History{Title: r.text(), Unit: r.text(), Labels: slices.Repeat([]string{r.text()}, r.IntN(40)), Series: []Series{{r.text(), r.text(), points}, {r.text(), r.text(), points[len(points)/2:]}}[:1+r.IntN(2)],
				Marks: []Mark{{-1, "", ""}, {3, r.text(), r.text()}, {1 << 50, "", ""}}, Levels: []Level{{r.text(), r.value()}}, Goal: &Level{r.text(), r.value()}}), "kinds": Rows(r.text(), rows), "spark": Spark(r.text(), r.values()),
			"order": Order(r.text(), r.text(), sequence), "fill": Fill(r.value(), r.text()),
			"bars":     Bars(r.text(), []Beside{{r.text(), r.value(), r.value()}, {r.text(), r.value(), r.value()}}),
			"tracks":   Tracks(r.text(), r.IntN(40)-2, sequence.Breaks, []Track{{r.text(), r.text(), r.values(), r.values()}, {r.text(), r.text(), groupAt, groupAt}}),
			"race":     Race(r.text(), best, arms),
			"funnel":   Funnel(r.text(), rounds, r.pointer()),
			"roofline": Roofline(r.text(), r.value(), []Ceiling{{r.text(), r.value()}, {r.text(), r.value()}}, spots),
		} {
			if err := check(svg); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
		}
		for i, svg := range Margins(rows) {
			if svg == "" && rows[i].drawable() {
				t.Fatalf("seed %d: the margin of %+v is not drawn", seed, rows[i])
			}
			if err := check(svg); svg != "" && err != nil {
				t.Fatalf("seed %d, margin: %v", seed, err)
			}
		}
	}
}

// TestCheckSees checks that check finds each kind of defect.
func TestCheckSees(t *testing.T) {
	for name, svg := range map[string]string{
		"outside":      `<svg viewBox="0 0 10 10"><title>x</title><path d="M1 2L11 2"/></svg>`,
		"not a number": `<svg viewBox="0 0 10 10"><title>x</title><circle cx="NaN" cy="1"/></svg>`,
		"style":        `<svg viewBox="0 0 10 10"><title>x</title><path style="fill:red" d="M1 2L3 4"/></svg>`,
		"open":         `<svg viewBox="0 0 10 10"><title>x</title>`,
		"untitled":     `<svg viewBox="0 0 10 10"></svg>`,
		"script":       `<svg viewBox="0 0 10 10"><title>x</title><script/></svg>`,
		"far link":     `<svg viewBox="0 0 10 10"><title>x</title><a href="javascript:x"/></svg>`,
	} {
		if check(svg) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      []float64
	}{
		{0, 1, []float64{0, 0.25, 0.5, 0.75, 1}}, {19.3, 24.1, []float64{20, 22, 24}}, {-0.03, 0.2, []float64{0, 0.1, 0.2}}, {5, 5, []float64{5}},
	} {
		if diff := cmp.Diff(tt.want, axis{low: tt.low, high: tt.high}.ticks(4)); diff != "" {
			t.Errorf("%v to %v: %s", tt.low, tt.high, diff)
		}
	}
}

func TestWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 23.456: "23.46", 1234.6: "1235", -0.5: "−0.5", 1e7: "1e07", 2e-5: "2e-05"} {
		if got := plain(v); got != want {
			t.Errorf("plain(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0 %", 0.1: "+10 %", -0.02: "−2 %", 0.1234: "+12.34 %"} {
		if got := percent(v); got != want {
			t.Errorf("percent(%v) = %q, want %q", v, got, want)
		}
	}
}

// TestFiguresAreWhole checks that the goal of a funnel is never truncated.
func TestFiguresAreWhole(t *testing.T) {
	for _, goal := range []float64{-0.2, 0.1, 0.3} {
		svg := Funnel("mission", []Narrowing{{1, 0.1, 0, 0.2}, {2, 0.1, 0.05, 0.15}}, &goal)
		m := regexp.MustCompile(`y="([0-9.]+)">goal ([^<]*)<`).FindStringSubmatch(svg)
		if m == nil || m[2] != percent(goal) {
			t.Errorf("the goal is cut off in %s", svg)
		} else if y, err := strconv.ParseFloat(m[1], 64); err != nil || y < 10 {
			t.Errorf("the goal is written at %s, above the picture", m[1])
		}
	}
}

// TestPercentRoundsOnce checks that a share is rounded only once: 496.046 % must not become 496.1
// %.
func TestPercentRoundsOnce(t *testing.T) {
	for v, want := range map[float64]string{4.96046: "+496 %", 1.00649: "+100.6 %", 0.446123: "+44.61 %", -0.029: "−2.9 %", 0.00001: "+0 %", 0: "0 %"} {
		if got := percent(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestFillLooksFull checks that a bar near its limit looks full, and one beyond it not longer than that.
func TestFillLooksFull(t *testing.T) {
	for share, want := range map[float64]string{226.0 / 227: "99.6", 0.5: "50", 3: "100", 0: "0"} {
		if svg := Fill(share, "pass"); !strings.Contains(svg, `<rect class="used pass" x="0" y="0" width="`+want+`"`) {
			t.Errorf("%v is drawn as %s", share, svg)
		}
	}
}

// TestMarginsShareTheGoal checks that all goals are in one column, and that a value that misses its goal is left of it.
func TestMarginsShareTheGoal(t *testing.T) {
	rows := []Interval{{Value: 0.09, Goal: pointer(0.1)}, {Value: 7, Goal: pointer(-0.02)}, {Value: 0.1, Goal: pointer(0.1)}}
	goal, dot := regexp.MustCompile(`class="goal" d="M([0-9.]+) `), regexp.MustCompile(`cx="([0-9.]+)"`)
	at := func(p *regexp.Regexp, svg string) float64 {
		v, err := strconv.ParseFloat(p.FindStringSubmatch(svg)[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	drawn := Margins(rows)
	for i, left := range []bool{true, false, false} {
		if at(goal, drawn[i]) != at(goal, drawn[0]) || (at(dot, drawn[i]) < at(goal, drawn[i])) != left {
			t.Errorf("row %d is drawn as %s", i, drawn[i])
		}
	}
}
