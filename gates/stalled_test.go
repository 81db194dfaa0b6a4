package gates

import (
	"encoding/json"
	"strings"
	"testing"
)

// The explanation has the places of each side's kernel with most samples, the most frequent first, and evidence bounds them.
func TestStalledSides(t *testing.T) {
	e := passing()
	line := func(n, samples int) StalledLine { return StalledLine{File: "k.cu", Line: n, Samples: samples} }
	e.Explained = &Explained{Shapes: []ExplainedShape{{
		Shape:     e.Shapes[0].Name,
		Baseline:  []Counted{{Kernel: "a", Samples: 10, Lines: []StalledLine{line(3, 2), line(9, 7)}}, {Kernel: "b", Samples: 4}},
		Candidate: []Counted{{Kernel: "c", Samples: 6, Instructions: []StalledInstruction{{At: 16, Text: "LDS", Samples: 1}, {At: 32, Text: "BAR", Samples: 5, Reason: "barrier"}}}},
	}}}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseEvidence("e.json", data)
	if err != nil {
		t.Fatal(err)
	}
	s := Explain(read, nil)[0].Stalled
	if len(s) != 2 || s[0].Kernel != "a" || s[0].Lines[0].Line != 9 || s[1].Side != "candidate" || s[1].Instructions[0].Text != "BAR" || s[1].Samples != 6 {
		t.Errorf("%+v", s)
	}
	for want, spoil := range map[string]func(*Counted){
		"instructions are 9":           func(c *Counted) { c.Instructions = make([]StalledInstruction, 9) },
		"is not an instruction":        func(c *Counted) { c.Instructions = []StalledInstruction{{At: -1, Text: "LDS"}} },
		"samples is -1":                func(c *Counted) { c.Samples = -1 },
		"is not a line with a number":  func(c *Counted) { c.Lines = []StalledLine{{File: "k.cu"}} },
		"is not an instruction with a": func(c *Counted) { c.Instructions = []StalledInstruction{{Text: strings.Repeat("x", 301)}} },
	} {
		own := *e.Explained
		own.Shapes = []ExplainedShape{e.Explained.Shapes[0]}
		c := own.Shapes[0].Candidate[0]
		spoil(&c)
		own.Shapes[0].Candidate = []Counted{c}
		if field, problem := own.problem(map[string]bool{e.Shapes[0].Name: true}); !strings.Contains(field+" "+problem, want) {
			t.Errorf("%s %s, want %q", field, problem, want)
		}
	}
	for name, l := range map[string]CodeLoop{"nothing": {}, "backward": {First: 3, Last: 2}, "line": {First: 1, Last: 1, Line: 3, LastLine: 2}, "share": {First: 1, Last: 1, Sampled: 1.5}, "file": {First: 1, Last: 1, File: strings.Repeat("x", 301)}} {
		if l.problem() == "" {
			t.Errorf("%s: %+v is a loop", name, l)
		}
	}
}
