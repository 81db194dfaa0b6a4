package strict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A garden has a field of every kind that strict reads.
type garden struct {
	Name   string           `yaml:"name" required:"true" eg:"kew" doc:"What it is called."`
	Open   bool             `yaml:"open"`
	Rows   int              `yaml:"rows" eg:"4"`
	Small  int32            `yaml:"small"`
	Area   float64          `yaml:"area" eg:"0.5"`
	Beds   []bed            `yaml:"beds" eg:"[{plant: fern}]"`
	Tools  map[string]int   `yaml:"tools"`
	Fence  *fence           `yaml:"fence"`
	Depth  *int             `yaml:"depth"`
	Motto  *string          `yaml:"motto"`
	Colour colour           `yaml:"colour"`
	Tags   []string         `yaml:"tags"`
	Nested map[string][]int `yaml:"nested"`
	Hidden string           `yaml:"-"`
	Untold string
	common
}

type bed struct {
	Plant string `yaml:"plant" required:"true"`
	Count int    `yaml:"count"`
}

type fence struct {
	Height int `yaml:"height"`
	Width  int `yaml:"width"`
}

type common struct {
	Owner string `yaml:"owner"`
}

// A colour reads itself.
type colour string

func (c *colour) UnmarshalStrict(n *strict.Node) {
	text, _ := n.Text()
	if text != "red" && text != "green" {
		n.Errorf("%q is not a colour (write red or green)", text)
		return
	}
	*c = colour(text)
}

func (c *colour) JSONSchema() map[string]any { return map[string]any{"enum": []string{"red", "green"}} }

// mistakes returns what an author reads.
func mistakes(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestEveryKindIsRead(t *testing.T) {
	var got garden
	err := strict.Decode("g.yaml", []byte(`
name: kew
open: true
rows: -4
small: +7
area: 2.5e-1
beds:
  - {plant: fern, count: 3}
  - plant: "5"
tools: {spade: 1, "rake": 2}
fence: {height: 2}
depth: 9
motto: none
colour: green
tags: [a, 'b', c d]
nested: {x: [1, 2], y: []}
owner: crown
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	nine, motto := 9, "none"
	want := garden{
		Name: "kew", Open: true, Rows: -4, Small: 7, Area: 0.25,
		Beds:  []bed{{"fern", 3}, {"5", 0}},
		Tools: map[string]int{"spade": 1, "rake": 2}, Fence: &fence{Height: 2}, Depth: &nine, Motto: &motto,
		Colour: "green", Tags: []string{"a", "b", "c d"}, Nested: map[string][]int{"x": {1, 2}, "y": {}},
		common: common{Owner: "crown"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(garden{})); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"unknown field, close to one", "name: x\nrosw: 1", []string{
			`g.yaml:2:1: rosw: unknown field (did you mean rows?)`}},
		{"unknown field, close in capitals", "name: x\nBeds: []", []string{
			`g.yaml:2:1: Beds: unknown field (did you mean beds?)`}},
		{"unknown field, close to none", "name: x\nfence: {gate: 1}", []string{
			`g.yaml:2:9: fence.gate: unknown field (known here: height, width)`}},
		{"unknown field, cut short", "name: x\nfence: {hei: 1, width_of_it: 2}", []string{
			`g.yaml:2:9: fence.hei: unknown field (did you mean height?)`,
			`g.yaml:2:17: fence.width_of_it: unknown field (did you mean width?)`}},
		{"unknown field, the start of several", "name: x\nn: 1\nnot: 2", []string{
			`g.yaml:2:1: n: unknown field (known here: area, beds, colour, depth, fence, motto, name, nested, open, owner, rows, small, tags, tools)`,
			`g.yaml:3:1: not: unknown field (known here: area, beds, colour, depth, fence, motto, name, nested, open, owner, rows, small, tags, tools)`}},
		{"a short word is not guessed at", "name: x\nfence: {wi: 1}", []string{
			`g.yaml:2:9: fence.wi: unknown field (known here: height, width)`}},
		{"a field without a key, and one that is hidden", "name: x\nUntold: a\nfence: {Hidden: a}", []string{
			`g.yaml:2:1: Untold: unknown field (known here: area, beds, colour, depth, fence, motto, name, nested, open, owner, rows, small, tags, tools)`,
			`g.yaml:3:9: fence.Hidden: unknown field (known here: height, width)`}},
		{"in a list, in a mapping", "name: x\nbeds: [{plant: a, cuont: 1}]\nnested: {a: [1, x]}", []string{
			`g.yaml:2:19: beds[0].cuont: unknown field (did you mean count?)`,
			`g.yaml:3:17: nested.a[1]: "x" is not a whole number (write e.g. 128)`}},

		{"text: a list", "name: [x]", []string{`g.yaml:1:7: name: is a list (write a text)`}},
		{"text: nothing", "name:", []string{`g.yaml:1:6: name: is empty (write a text)`}},
		{"bool: yes", "name: x\nopen: yes", []string{`g.yaml:2:7: open: "yes" is not true or false`}},
		{"bool: a mapping", "name: x\nopen: {}", []string{`g.yaml:2:7: open: is a mapping (write true or false)`}},
		{"int: a word", "name: x\nrows: four", []string{`g.yaml:2:7: rows: "four" is not a whole number (write e.g. 128)`}},
		{"int: a fraction", "name: x\nrows: 4.0", []string{`g.yaml:2:7: rows: "4.0" is not a whole number (write e.g. 128)`}},
		{"int: hexadecimal", "name: x\nrows: 0x10", []string{`g.yaml:2:7: rows: "0x10" is not a whole number (write e.g. 128)`}},
		{"int: with underscores", "name: x\nrows: 1_000", []string{`g.yaml:2:7: rows: "1_000" is not a whole number (write e.g. 128)`}},
		{"int: too large for its type", "name: x\nsmall: 3000000000", []string{`g.yaml:2:8: small: "3000000000" is not a whole number (write e.g. 128)`}},
		{"int: nothing", "name: x\nrows: ~", []string{`g.yaml:2:7: rows: is empty (write a number)`}},
		{"float: a word", "name: x\narea: big", []string{`g.yaml:2:7: area: "big" is not a number (write e.g. 0.06)`}},
		{"float: infinite", "name: x\narea: inf", []string{`g.yaml:2:7: area: "inf" is not a number (write e.g. 0.06)`}},
		{"float: not a number", "name: x\narea: NaN", []string{`g.yaml:2:7: area: "NaN" is not a number (write e.g. 0.06)`}},
		{"float: too large", "name: x\narea: 1e999", []string{`g.yaml:2:7: area: "1e999" is not a number (write e.g. 0.06)`}},
		{"float: hexadecimal", "name: x\narea: 0x1p4", []string{`g.yaml:2:7: area: "0x1p4" is not a number (write e.g. 0.06)`}},
		{"list: a text", "name: x\ntags: a", []string{`g.yaml:2:7: tags: is "a" (write a list: [a, b])`}},
		{"list: nothing", "name: x\ntags:", []string{`g.yaml:2:6: tags: is empty (write a list: [a, b])`}},
		{"map: a list", "name: x\ntools: [a]", []string{`g.yaml:2:8: tools: is a list (write a mapping: name: value)`}},
		{"struct: a text", "name: x\nfence: high", []string{`g.yaml:2:8: fence: is "high" (write a mapping with height, width)`}},
		{"struct: a list", "name: x\nbeds: [[a]]", []string{`g.yaml:2:8: beds[0]: is a list (write a mapping with plant, count)`}},
		{"struct: none, where it cannot be left out", "name: x\nbeds: [none]", []string{`g.yaml:2:8: beds[0]: is "none" (write a mapping with plant, count)`}},
		{"the whole file is a list", "- a", []string{
			`g.yaml:1:1: is a list (write a mapping with name, open, rows, small, area, beds, tools, fence, depth, motto, colour, tags, nested, owner)`}},
		{"a type that reads itself", "name: x\ncolour: blue", []string{`g.yaml:2:9: colour: "blue" is not a colour (write red or green)`}},

		{"required, with an example", "rows: 1", []string{`g.yaml:1:1: name: is required (write e.g. name: kew)`}},
		{"required, without one", "name: x\nbeds: [{count: 1}]", []string{`g.yaml:2:8: beds[0].plant: is required`}},
		{"twice in a struct", "name: x\nrows: 1\nrows: 2", []string{`g.yaml:3:1: rows: is set twice (delete one)`}},
		{"twice in a mapping", "name: x\ntools: {a: 1, a: 2}", []string{`g.yaml:2:15: tools.a: is set twice (delete one)`}},
		{"thrice", "name: x\nrows: 1\nrows: 2\nrows: 3", []string{
			`g.yaml:3:1: rows: is set twice (delete one)`, `g.yaml:4:1: rows: is set twice (delete one)`}},

		{"several, in the order of the lines", "tags: a\nrows: x\nfence: {height: y, depth: 1}\nopen: 1", []string{
			`g.yaml:1:1: name: is required (write e.g. name: kew)`,
			`g.yaml:1:7: tags: is "a" (write a list: [a, b])`,
			`g.yaml:2:7: rows: "x" is not a whole number (write e.g. 128)`,
			`g.yaml:3:17: fence.height: "y" is not a whole number (write e.g. 128)`,
			`g.yaml:3:20: fence.depth: unknown field (known here: height, width)`,
			`g.yaml:4:7: open: "1" is not true or false`}},
		{"a key with a line break stays on one line", "name: x\n\"a\\nb\": 1\ntools: {c d: x}", []string{
			`g.yaml:2:1: "a\nb": unknown field (known here: area, beds, colour, depth, fence, motto, name, nested, open, owner, rows, small, tags, tools)`,
			`g.yaml:3:14: tools."c d": "x" is not a whole number (write e.g. 128)`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g garden
			if diff := cmp.Diff(tt.want, mistakes(strict.Decode("g.yaml", []byte(tt.text), &g))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoneAndNullTakeAway(t *testing.T) {
	for _, tt := range []struct {
		name, text      string
		fence, d, motto bool // still there
	}{
		{"not named", "name: x", true, true, true},
		{"null", "name: x\nfence: ~\ndepth: null\nmotto:", false, false, false},
		{"none; a text keeps the word", "name: x\nfence: none\ndepth: none\nmotto: none", false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			depth, motto := 3, "grow"
			g := garden{Fence: &fence{Height: 1}, Depth: &depth, Motto: &motto}
			if err := strict.Decode("g.yaml", []byte(tt.text), &g); err != nil {
				t.Fatal(err)
			}
			if got := [3]bool{g.Fence != nil, g.Depth != nil, g.Motto != nil}; got != [3]bool{tt.fence, tt.d, tt.motto} {
				t.Errorf("fence, depth, motto left: %v", got)
			}
		})
	}
}

func TestDecodeKeepsWhatIsNotNamed(t *testing.T) {
	g := garden{Name: "old", Rows: 5, Fence: &fence{Height: 1, Width: 2}, Tags: []string{"a", "b"}, Tools: map[string]int{"a": 1}}
	if err := strict.Decode("g.yaml", []byte("fence: {height: 9}\ntags: [c]\ntools: {b: 2}"), &g); err != nil {
		t.Fatal(err)
	}
	want := garden{Name: "old", Rows: 5, Fence: &fence{Height: 9, Width: 2}, Tags: []string{"c"}, Tools: map[string]int{"b": 2}}
	if diff := cmp.Diff(want, g, cmp.AllowUnexported(garden{})); diff != "" {
		t.Error(diff)
	}
}

func TestLongMistakesAreCut(t *testing.T) {
	var g garden
	long := strings.Repeat("é", 5000)
	got := mistakes(strict.Decode("g.yaml", []byte("name: x\nrows: "+long), &g))
	if len(got) != 1 || len(got[0]) > 1000 || !strings.HasPrefix(got[0], `g.yaml:2:7: rows: "éé`) ||
		!strings.Contains(got[0], "é … é") || !strings.HasSuffix(got[0], `é" is not a whole number (write e.g. 128)`) {
		t.Errorf("got %q", got)
	}
	got = mistakes(strict.Decode("g.yaml", []byte("name: x\n? "+long+"\n: 1"), &g))
	if len(got) != 1 || len(got[0]) > 1000 {
		t.Errorf("got %d lines, the first %d bytes long", len(got), len(got[0]))
	}
}

func TestManyMistakesAreCut(t *testing.T) {
	var g garden
	got := mistakes(strict.Decode("g.yaml", []byte("name: x\nnested: {a: ["+strings.Repeat("x, ", 500)+"]}"), &g))
	if len(got) != 101 || got[100] != "g.yaml: has more mistakes than these 100 (fix these first)" {
		t.Errorf("got %d lines, the last %q", len(got), got[len(got)-1])
	}
	got = mistakes(strict.Decode("g.yaml", []byte("name: x\nnested: {a: ["+strings.Repeat("x, ", 100)+"]}"), &g))
	if len(got) != 100 || !strings.HasPrefix(got[99], "g.yaml:2:311: nested.a[99]: ") {
		t.Errorf("got %d lines, the last %q", len(got), got[len(got)-1])
	}
}

func TestDecodeRefusesWhatItCannotFill(t *testing.T) {
	for name, into := range map[string]any{
		"a struct": garden{}, "nil": (*garden)(nil), "an interface": new(struct {
			A any `yaml:"a"`
		}),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic: the mistake is the programmer's")
				}
			}()
			_ = strict.Decode("g.yaml", []byte("a: 1"), into)
		})
	}
}
