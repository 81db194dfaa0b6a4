package gates

import (
	"encoding/json"
	"strings"
	"testing"
)

// The explanation says why the warps of a side were not found, and nothing where both were. With the machine code, each shape has
// that of its own kernels.
func TestUnsampled(t *testing.T) {
	e := passing()
	side := func(samples int) []Counted { return []Counted{{Kernel: "k", Samples: samples}} }
	e.Explained = &Explained{Unsampled: "no source", Shapes: []ExplainedShape{
		{Shape: e.Shapes[0].Name, Baseline: side(3), Candidate: side(3)}, {Shape: e.Shapes[1].Name, Baseline: side(0), Candidate: side(3)},
	}}
	v := &Verdict{Why: Explain(e, nil)}
	if v.Why[0].Unsampled != "" || v.Why[1].Unsampled != "no source" {
		t.Errorf("%+v", v.Why)
	}
	hottest := &HottestLoop{Baseline: CodeLoop{First: 1, Last: 3}, Candidate: CodeLoop{First: 1, Last: 2}}
	v.MachineCode = &MachineCode{Changes: []CodeChange{{Kernel: "all", Hottest: hottest, Diff: "-A\n+B\n"}, {Kernel: "second", Shapes: []string{e.Shapes[1].Name}}}}
	with := WithMachineCode(v)
	if len(with) != 2 || len(with[0].MachineCode) != 1 || with[0].MachineCode[0].Hottest != hottest || len(with[1].MachineCode) != 2 || with[1].MachineCode[1].Kernel != "second" {
		t.Errorf("with the machine code: %+v", with)
	}
	if v.Why[0].MachineCode != nil {
		t.Error("the verdict has its machine code twice")
	}
}

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
