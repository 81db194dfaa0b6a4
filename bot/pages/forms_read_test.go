package pages_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A kindOfFigure is one of the five numbers of a shape.
type kindOfFigure string

const (
	before  kindOfFigure = "the time before"
	after   kindOfFigure = "the time after" // the time before divided by the speedup
	median  kindOfFigure = "the candidate's own median"
	speedup kindOfFigure = "the speedup"
	lower   kindOfFigure = "the lower bound"
	upper   kindOfFigure = "the upper bound"
)

var (
	allFigures = []kindOfFigure{before, after, speedup, lower, upper}
	ofJSON     = []kindOfFigure{before, median, speedup, lower, upper} // programs read what was measured
)

// A mention is a number of a shape in some form of a report.
type mention struct {
	shape string
	kind  kindOfFigure
	text  string
}

// figureText matches numbers in every notation that a form may use: 4.84 µs, 1.39 ms, +45.3 %, 6.4×, 2.9 % slower, 1.2e7.
var figureText = regexp.MustCompile(`^([+-]?)(\d+(?:\.(\d+))?)(?:e(-?\d+))?(?: ?(%|×|µs|ms|s))?( slower)?$`)

// read parses a number and returns its value and half a unit of its last digit. ok is false if the
// text is not a number.
func (s mention) read() (value, half float64, ok bool) {
	text, rounded := strings.CutPrefix(strings.TrimSpace(strings.ReplaceAll(s.text, "−", "-")), "~")
	m := figureText.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	value, _ = strconv.ParseFloat(m[2], 64)
	half = 0.5 * math.Pow(10, -float64(len(m[3])))
	if m[2] == "0" && m[5] == "%" {
		half = 0.005 // two more digits were rounded off
	}
	if exponent, err := strconv.Atoi(m[4]); err == nil {
		value, half = value*math.Pow(10, float64(exponent)), half*math.Pow(10, float64(exponent))
	}
	if rounded { // a product of figures that have six digits each
		half = 1e-5 * value
	}
	if m[1] == "-" {
		value = -value
	}
	switch m[5] {
	case "%":
		value, half = value/100, half/100
		if m[6] != "" {
			value = -value
		}
	case "×":
		if m[6] != "" { // it takes so many times as long
			value, half = 1/value, 1/(value-half)-1/value
		}
		value--
	case "ms":
		value, half = 1e3*value, 1e3*half
	case "s":
		value, half = 1e6*value, 1e6*half
	}
	return value, half * (1 + 1e-6), true
}

// A grid is a table of any form, with a head and rows of as many cells.
type grid struct {
	head []string
	rows [][]string
}

// roleOf returns what a column shows, from its title. A title may name a unit.
func roleOf(title string) string {
	title = strings.ToLower(strings.TrimSpace(title))
	title, _, _ = strings.Cut(title, " (")
	switch {
	case title == "shape" || title == "side" || title == "p50":
		return title
	case title == "baseline" || title == "a":
		return "before"
	case title == "candidate" || title == "b":
		return "after"
	case title == "speedup" || title == "speedup of b" || title == "speedup [interval]":
		return "speedup"
	case title == "interval" || title == "95 % interval":
		return "interval"
	}
	return ""
}

var intervalText = regexp.MustCompile(`\[([^,\]]+), ([^\]]+)\]`)

// figures returns the numbers of a table with one row per shape. Other tables have none.
func (g grid) figures(names []string) []mention {
	roles := map[string]int{}
	for i, title := range g.head {
		if role := roleOf(title); role != "" {
			roles[role] = i
		}
	}
	if _, ok := roles["shape"]; !ok {
		return nil
	}
	var list []mention
	for _, row := range g.rows {
		if len(row) != len(g.head) {
			continue
		}
		name := nameIn(row[roles["shape"]], names)
		if name == "" {
			continue
		}
		cell := func(role string) string {
			if i, ok := roles[role]; ok {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		add := func(kind kindOfFigure, text string) {
			if text != "" && text != "–" {
				list = append(list, mention{name, kind, text})
			}
		}
		add(before, cell("before"))
		add(after, cell("after"))
		switch cell("side") {
		case "baseline":
			add(before, cell("p50"))
		case "candidate":
			add(median, cell("p50"))
		}
		value, _, _ := strings.Cut(cell("speedup"), "[")
		add(speedup, strings.TrimSpace(value))
		for _, bounds := range intervalText.FindAllStringSubmatch(cell("speedup")+cell("interval"), 1) {
			first, last := boundsOf(strings.TrimSpace(value), bounds[1], bounds[2])
			add(lower, first)
			add(upper, last)
		}
	}
	return list
}

// boundsOf returns the bounds of a speedup. Those of a loss that is a factor are times, the shorter first.
func boundsOf(value, first, last string) (lower, upper string) {
	if strings.HasSuffix(value, "× slower") && first != "" && last != "" {
		return last + " slower", first + " slower"
	}
	return first, last
}

// nameIn returns the shape that a cell begins with, after the mark of its result.
func nameIn(cell string, names []string) string {
	cell = strings.TrimLeftFunc(strings.TrimSpace(cell), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	for _, name := range names {
		if cell == name || strings.HasPrefix(cell, name+" ") {
			return name
		}
	}
	return ""
}

// history returns the numbers of a table with one row per variant and one column per shape: the
// times of one row, and the speedup on the target shape.
func (g grid) history(variant, target string, kind kindOfFigure, names []string) []mention {
	column := func(title string) int {
		return slices.IndexFunc(g.head, func(h string) bool { return strings.TrimSpace(h) == title })
	}
	if column("variant") < 0 {
		return nil
	}
	var list []mention
	for _, row := range g.rows {
		if len(row) != len(g.head) || nameIn(row[column("variant")], []string{variant}) == "" {
			continue
		}
		for _, name := range names {
			if i := column(name); i >= 0 && strings.TrimSpace(row[i]) != "–" && strings.TrimSpace(row[i]) != "" {
				list = append(list, mention{name, kind, strings.TrimSpace(row[i])})
			}
		}
		if kind != after || target == "" {
			continue
		}
		of := grid{head: []string{"shape", "speedup"}, rows: [][]string{{target, row[column("speedup")]}}}
		if i := column("interval"); i >= 0 {
			of.rows[0][1] += " " + row[i]
		}
		list = append(list, of.figures([]string{target})...)
	}
	return list
}

const (
	gainPattern = `([+−-]?\d+(?:\.\d+)?(?: ?%|×)(?: slower)?)`
	timePattern = `(\d+(?:\.\d+)?(?:e\d+)?(?: (?:µs|ms|s))?)`
)

// A pattern is one way to write the numbers of a shape in a line. The group "name" matches the
// shape.
type pattern struct {
	// starts are the words that it can begin with. Searching for them is faster than the
	// expression.
	starts []string
	text   *regexp.Regexp
	kinds  []kindOfFigure // kinds of the other groups, in order
}

// longest is an upper bound for the bytes of a match.
const longest = 200

// patterns returns patterns for the numbers of these shapes in running text, and in lines such as
// "✓ mission +44.6 % [+43.2 %, +46.0 %]".
func patterns(names []string) []pattern {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	name, interval := `(?P<name>`+strings.Join(quoted, "|")+`)`, ` \[`+gainPattern+`, `+gainPattern+`\]`
	of := func(starts []string, text string, kinds ...kindOfFigure) pattern {
		return pattern{starts, regexp.MustCompile(`^` + text), kinds}
	}
	return []pattern{
		of(names, name+` `+gainPattern+interval, speedup, lower, upper),
		of(names, name+` ([+−-]\d+(?:\.\d+)?(?: ?%)|\d+(?:\.\d+)?(?: %|×) slower)(?:$|\s)`, speedup), // summaries have no interval
		of(names, name+` `+gainPattern+` between `+gainPattern+` and `+gainPattern, speedup, lower, upper),
		of([]string{"speedup"}, `speedup `+gainPattern+`(?:`+interval+`)? on `+name+`(?:$|[\s;.])`, speedup, lower, upper),
		of(names, name+`:? `+timePattern+` → `+timePattern+`(?:[ ,(]+`+gainPattern+`(?: faster)?(?:`+interval+`)?)?`, allFigures...),
	}
}

// inOneUnit completes figures that share a unit or a word: "57.6 → 46.1 µs", "1.75× slower [1.72×, 1.79×]".
func inOneUnit(figures []string, kinds []kindOfFigure) {
	at := func(kind kindOfFigure) *string {
		if i := slices.Index(kinds, kind); i >= 0 {
			return &figures[i]
		}
		return new(string)
	}
	if _, unit, ok := strings.Cut(*at(after), " "); ok && !strings.Contains(*at(before), " ") {
		*at(before) += " " + unit
	}
	*at(lower), *at(upper) = boundsOf(*at(speedup), *at(lower), *at(upper))
}

// sentences finds numbers by patterns. A match starts at the beginning of a word.
func sentences(text string, all []pattern) []mention {
	var list []mention
	for _, p := range all {
		at := p.text.SubexpIndex("name")
		for _, start := range p.starts {
			for from := 0; ; from += len(start) {
				next := strings.Index(text[from:], start)
				if next < 0 {
					break
				}
				if from += next; from > 0 && !strings.ContainsRune(" (*", rune(text[from-1])) {
					continue
				}
				m := p.text.FindStringSubmatch(strings.ToValidUTF8(text[from:min(len(text), from+longest)], ""))
				if m == nil {
					continue
				}
				figures := slices.Delete(slices.Clone(m), at, at+1)[1:]
				inOneUnit(figures, p.kinds)
				for i, found := range figures {
					if found != "" {
						list = append(list, mention{m[at], p.kinds[i], found})
					}
				}
			}
		}
	}
	return list
}
