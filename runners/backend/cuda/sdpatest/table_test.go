package sdpatest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// The generated part of a page lies between these lines.
const (
	tableBegin = "<!-- The choice and its rivals: make rivals writes this from evidence/all/rivals.json. -->\n"
	tableEnd   = "<!-- End of the generated part. -->\n"
)

var (
	kinds    = []string{"normal", "uniform", "dominant", "large", "constant"}
	backends = []string{"flash", "cudnn", "efficient", "math"}
)

// A row is one shape of the table: our times by kind of input, and the times of the rivals, in microseconds.
type row struct {
	shape   manifest.Shape
	variant string
	ours    map[string]float64
	rivals  map[string]float64
}

// size is such as (1,8,512,64), causal.
func (r row) size() string {
	d := r.shape.Dims
	text := fmt.Sprintf("(%d,%d,%d,%d)", value(d, "B"), value(d, "H"), value(d, "S"), value(d, "D"))
	if value(d, "causal") == 1 {
		text += ", causal"
	}
	return text
}

// best is the fastest rival.
func (r row) best() (name string, micros float64) {
	micros = math.Inf(1)
	for _, backend := range backends {
		if x, timed := r.rivals[backend]; timed && x < micros {
			name, micros = backend, x
		}
	}
	return name, micros
}

// tableRows reads the rows from evidence. Every shape that it knows must have been timed on all kinds of input, together
// with at least one rival.
func tableRows(m *manifest.Manifest, e *gates.Evidence) ([]row, error) {
	times := kindTimes(e)
	var rows []row
	for _, s := range m.Shapes {
		if !slices.ContainsFunc(e.Shapes, func(known gates.Shape) bool { return known.Name == s.Name }) {
			continue // it is newer than the evidence
		}
		r := row{shape: s, ours: map[string]float64{}, rivals: map[string]float64{}}
		for _, kind := range kinds {
			x, timed := times[s.Name][kind]
			if !timed {
				return nil, fmt.Errorf("%s was not timed on %s inputs", s.Name, kind)
			}
			r.ours[kind] = x.candidate
		}
		for _, x := range e.Rivals {
			for _, backend := range backends {
				if x.Shape == s.Name && x.Failure == "" && x.Name == "torch-"+backend+"-graph" {
					r.rivals[backend] = x.Stats.P50
				}
			}
		}
		if len(r.rivals) == 0 {
			return nil, fmt.Errorf("no rival was timed on %s", s.Name)
		}
		for _, part := range e.Candidate.Parts {
			if slices.Contains(part.Shapes, s.Name) {
				r.variant = part.Variant
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func micros(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// casesWon says how many cases of all shapes and kinds are faster than every rival.
func casesWon(rows []row) string {
	won := 0
	for _, r := range rows {
		_, best := r.best()
		for _, kind := range kinds {
			if r.ours[kind] < best {
				won++
			}
		}
	}
	return fmt.Sprintf("%d of %d cases: %d shapes", won, len(rows)*len(kinds), len(rows))
}

// renderTable writes the rows, and which of them lose to the fastest rival on which kinds of input.
func renderTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| shape (B,H,S,D) | normal | uniform | dominant | large | constant | flash | cuDNN | efficient | math | variant |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |\n")
	lost := map[string][]string{}
	for _, r := range rows {
		_, best := r.best()
		fmt.Fprintf(&b, "| %s %s |", r.shape.Name, r.size())
		for _, kind := range kinds {
			if x := r.ours[kind]; x < best {
				fmt.Fprintf(&b, " **%s** |", micros(x))
			} else {
				fmt.Fprintf(&b, " %s |", micros(x))
				lost[kind] = append(lost[kind], fmt.Sprintf("%s (+%.0f %%)", r.shape.Name, 100*(x/best-1)))
			}
		}
		for _, backend := range backends {
			if x, timed := r.rivals[backend]; timed {
				fmt.Fprintf(&b, " %s |", micros(x))
			} else {
				b.WriteString(" – |")
			}
		}
		fmt.Fprintf(&b, " `%s` |\n", r.variant)
	}
	b.WriteString("\nTimes are p50 in µs; bold ones are faster than every rival.")
	for _, kind := range kinds {
		if n := len(lost[kind]); n > 0 {
			fmt.Fprintf(&b, " On %s inputs, %d of %d shapes are slower than the fastest rival: %s.", kind, n, len(rows), strings.Join(lost[kind], ", "))
		}
	}
	b.WriteString("\n\n" + missedGoals(rows))
	return b.String()
}

// goal is how many times as fast as the fastest rival a shape is meant to be; 0 if it only has to be faster.
func goal(d manifest.Dims) float64 {
	switch {
	case value(d, "D") == 128:
		return 1.1
	case value(d, "S") >= 1024:
		return 1.3
	}
	return 0
}

// missedGoals says which shapes are below their goal on normal inputs, and how fast big is.
func missedGoals(rows []row) string {
	missed, asked, text := []string{}, 0, ""
	for _, r := range rows {
		_, best := r.best()
		if factor := best / r.ours["normal"]; goal(r.shape.Dims) > 0 {
			asked++
			if factor < goal(r.shape.Dims) {
				missed = append(missed, fmt.Sprintf("%s (%.2f×)", r.shape.Name, factor))
			}
		}
		if r.shape.Name == "big" {
			flops := 4 * float64(value(r.shape.Dims, "B")) * float64(value(r.shape.Dims, "H")) * math.Pow(float64(value(r.shape.Dims, "S")), 2) * float64(value(r.shape.Dims, "D"))
			text = fmt.Sprintf(" big runs at %.0f TFLOP/s; the goal is 650.", flops/r.ours["normal"]/1e6)
		}
	}
	return fmt.Sprintf("The goals on normal inputs are 1.3 times the speed of the fastest rival for D = 64 from S = 1024 on, and 1.1 times for D = 128. Of %d shapes, %d are below: %s.%s\n",
		asked, len(missed), strings.Join(missed, ", "), text)
}

// insertTable puts the table between the marker lines of a page.
func insertTable(page, table string) (string, error) {
	before, rest, begins := strings.Cut(page, tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("the page has no lines %q and %q", strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return before + tableBegin + "\n" + table + "\n" + tableEnd + after, nil
}

// The rivals were timed next to the choice before it was changed for problems with few heads. What serves their shapes is the same
// machine code as in the run that passed.
func TestRivalsOfTheChoice(t *testing.T) {
	rivals, passed := readEvidence(t, folder+"evidence/all/rivals.json"), readEvidence(t, folder+"evidence/all/choose.json")
	code := func(e *gates.Evidence, shape string) (variant, digest string) {
		for _, part := range e.Candidate.Parts {
			if slices.Contains(part.Shapes, shape) {
				return part.Variant, part.Code
			}
		}
		return "", ""
	}
	shapes := 0
	for _, s := range rivals.Shapes {
		if s.Secret {
			continue
		}
		shapes++
		variant, digest := code(rivals, s.Name)
		if now, same := code(passed, s.Name); digest == "" || variant != now || digest != same {
			t.Errorf("%s was timed next to the rivals as %s (%.12s) and passed as %s (%.12s)", s.Name, variant, digest, now, same)
		}
	}
	if shapes < 20 || rivals.Device.Name != passed.Device.Name {
		t.Errorf("%d shapes on %s", shapes, rivals.Device.Name)
	}
}

// The table of the choice and its rivals is what the evidence says; `make rivals` writes it. The README says how many cases win.
func TestChoiceTable(t *testing.T) {
	m, _ := readManifest(t)
	e := readEvidence(t, folder+"evidence/all/rivals.json")
	rows, err := tableRows(m, e)
	if err != nil {
		t.Fatal(err)
	}
	const page = "../../../../docs/sdpa_fp8.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := insertTable(string(text), renderTable(rows))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if *update {
		err = os.WriteFile(page, []byte(want), 0o644)
	} else if want != string(text) {
		err = fmt.Errorf("%s is not what the evidence says (make rivals writes it)", page)
	}
	if err != nil {
		t.Error(err)
	}
	readme, err := os.ReadFile("../../../../README.md")
	if won := casesWon(rows); err != nil || !strings.Contains(string(readme), won) {
		t.Errorf("the README does not say %q: %v", won, err)
	}
}

// A table names every shape that loses, by kind of input, and refuses evidence with gaps.
func TestRenderedTable(t *testing.T) {
	shape := func(name string, values ...int) manifest.Shape {
		s := manifest.Shape{Name: name}
		for i, dim := range []string{"B", "H", "S", "D", "causal"} {
			s.Dims = append(s.Dims, manifest.Dim{Name: dim, Value: values[i]})
		}
		return s
	}
	rows := []row{
		{shape("big", 4, 16, 2048, 64, 0), "stage7", map[string]float64{"normal": 121, "uniform": 120, "dominant": 130.4, "large": 158, "constant": 120}, map[string]float64{"flash": 242, "cudnn": 154, "math": 4127}},
		{shape("wide", 1, 8, 512, 128, 1), "stage6_split", map[string]float64{"normal": 6.61, "uniform": 6.6, "dominant": 8.7, "large": 9, "constant": 6.5}, map[string]float64{"flash": 14.6, "cudnn": 12.3, "efficient": 21, "math": 80}},
	}
	full := renderTable(rows)
	for _, want := range []string{
		"| big (4,16,2048,64) | **121** | **120** | **130** | 158 | **120** | 242 | 154 | – | 4127 | `stage7` |\n",
		"| wide (1,8,512,128), causal | **6.61** | **6.6** | **8.7** | **9** | **6.5** | 14.6 | 12.3 | 21 | 80 | `stage6_split` |\n",
		"On large inputs, 1 of 2 shapes are slower than the fastest rival: big (+3 %).\n",
		"Of 2 shapes, 1 are below: big (1.27×). big runs at 568 TFLOP/s; the goal is 650.\n",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("the table lacks %q:\n%s", want, full)
		}
	}
	if won := casesWon(rows); won != "9 of 10 cases: 2 shapes" {
		t.Errorf("%s won", won)
	}
	page, err := insertTable("before\n"+tableBegin+"old\n"+tableEnd+"after\n", "new\n")
	if err != nil || page != "before\n"+tableBegin+"\nnew\n\n"+tableEnd+"after\n" {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := insertTable("no lines", "new\n"); err == nil {
		t.Error("a page without marker lines gets a table")
	}
	m := &manifest.Manifest{Shapes: []manifest.Shape{rows[0].shape}}
	series := gates.Series{Shape: "big", Distributions: kinds, Order: "bc bc bc bc bc", Nanos: slices.Repeat([]float64{2000, 1000}, 5)}
	e := &gates.Evidence{Shapes: []gates.Shape{{Name: "big"}}, Candidate: &gates.Build{}, Performance: &gates.Performance{Rounds: []gates.Round{{Series: []gates.Series{series}}}}}
	if _, err := tableRows(m, e); err == nil || !strings.Contains(err.Error(), "no rival was timed on big") {
		t.Errorf("evidence without rivals: %v", err)
	}
	e.Rivals = []gates.Rival{{Name: "torch-cudnn-graph", Shape: "big", Stats: stats.Summary{P50: 3}}, {Name: "torch-cudnn", Shape: "big", Stats: stats.Summary{P50: 0.5}}}
	got, err := tableRows(m, e)
	if err != nil || len(got) != 1 || got[0].ours["large"] != 1 || got[0].rivals["cudnn"] != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	e.Performance.Rounds[0].Series[0].Distributions = kinds[:1]
	if _, err := tableRows(m, e); err == nil || !strings.Contains(err.Error(), "big was not timed on uniform inputs") {
		t.Errorf("evidence of one kind: %v", err)
	}
}
