package pages

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A VariantTable shows the gain of a kernel's variants on one device, each relative to its
// predecessor.
type VariantTable struct {
	Device string       `json:"device"`
	Shapes []string     `json:"shapes"`
	Rows   []VariantRow `json:"variants"`
}

// A VariantRow is one variant.
type VariantRow struct {
	Variant  string             `json:"variant"`
	Against  string             `json:"against,omitempty"` // empty for the first variant
	Verdicts []Word             `json:"verdicts,omitempty"`
	P50      map[string]float64 `json:"p50_us"` // by shape
	Gain     *gates.Estimate    `json:"speedup,omitempty"`
	Shape    string             `json:"of_shape,omitempty"` // the target shape
	Factor   float64            `json:"factor"`             // product of all steps since the first
	Uses     []Use              `json:"resources,omitempty"`
}

// A Word is a verdict that runs reached about a variant.
type Word struct {
	Job     string        `json:"job"` // newest run with this verdict
	Outcome gates.Outcome `json:"outcome"`
	Reason  gates.Reason  `json:"reason,omitempty"`
	Times   int           `json:"times"`
}

// A Use is one resource that a variant needs, as the compiler reports it.
type Use struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// A Negative is a change or a variant that was not accepted.
type Negative struct {
	Row
	Variant string `json:"variant,omitempty"`
	Against string `json:"against,omitempty"`
	Lesson  string `json:"lesson,omitempty"`
}

// mostVariants limits the rows of a table.
const mostVariants = 60

// variants returns one table for each device, with the variants that were timed. Runs that compare
// two commits of one variant belong to the history instead.
func (s *Server) variants(ctx context.Context, runs []ledger.RunRow) []VariantTable {
	var verdicts []*gates.Verdict
	said := map[[3]string][]Word{} // by device and step, newest first
	seen := map[string]bool{}
	for _, r := range runs {
		if r.Phase != change.Done || r.Extra || seen[r.Job] {
			continue
		}
		seen[r.Job] = true
		v := s.digest(ctx, r.Verdict).step()
		if v == nil {
			continue
		}
		if slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Baseline != nil && c.Candidate != nil }) {
			verdicts = append(verdicts, v) // a verdict without times has no step
		}
		key := [3]string{v.Device.Name, v.Provenance.Base.Variant, v.Provenance.Head.Variant}
		same := func(w Word) bool { return w.Outcome == r.Outcome && w.Reason == r.Reason }
		if at := slices.IndexFunc(said[key], same); at >= 0 {
			said[key][at].Times++
		} else {
			said[key] = append(said[key], Word{r.Job, r.Outcome, r.Reason, 1})
		}
	}
	var tables []VariantTable
	for _, step := range report.Steps(verdicts) {
		device := step.Verdict.Device.Name
		at := slices.IndexFunc(tables, func(t VariantTable) bool { return t.Device == device })
		if at < 0 {
			at, tables = len(tables), append(tables, VariantTable{Device: device})
		}
		t := &tables[at]
		if len(t.Rows) >= mostVariants {
			continue
		}
		for _, c := range step.Verdict.Judged() {
			if !c.Secret && !slices.Contains(t.Shapes, c.Shape) {
				t.Shapes = append(t.Shapes, c.Shape)
			}
		}
		if step.First {
			t.Rows = append(t.Rows, rowOfStep(step, true))
		}
		row := rowOfStep(step, false)
		row.Verdicts = said[[3]string{device, step.Before, step.After}]
		t.Rows = append(t.Rows, row)
	}
	return tables
}

// rowOfStep returns the row of the step's candidate, or that of the first baseline.
func rowOfStep(s report.Step, began bool) VariantRow {
	row := VariantRow{Variant: s.After, Against: s.Before, Factor: s.Factor}
	if began {
		row = VariantRow{Variant: s.Before, Factor: 1}
	} else if s.Target != nil {
		row.Gain, row.Shape = &s.Target.Speedup, s.Target.Shape
	}
	row.P50 = map[string]float64{}
	for _, c := range s.Verdict.Judged() {
		switch {
		case c.Secret:
		case began && c.Baseline != nil:
			row.P50[c.Shape] = c.Baseline.P50
		case !began && c.Candidate != nil:
			row.P50[c.Shape] = c.CandidateTime()
		}
	}
	for _, r := range s.Verdict.Resources {
		name, _, of := strings.Cut(r.Name, " of ")
		value := r.Candidate
		if began {
			value = r.Baseline
		}
		if of || value == nil || !slices.Contains([]string{"registers", "shared memory", "spill stores", "blocks per SM"}, name) || name == "spill stores" && *value == 0 {
			continue
		}
		row.Uses = append(row.Uses, Use{name, *value, r.Unit})
	}
	return row
}

// negatives returns the last attempt of each change, or of each variant, that was not accepted.
func (s *Server) negatives(ctx context.Context, runs []ledger.RunRow, repo string) []Negative {
	var list []Negative
	told := map[string]bool{}
	for _, r := range runs {
		if r.Phase != change.Done || r.Extra || r.Change.Kind == change.Push || r.Change.Kind == change.Group || r.Change.Kind == change.Watch {
			continue
		}
		d := s.digest(ctx, r.Verdict)
		n := Negative{Row: rowOf(r, repo)}
		if v := d.step(); v != nil {
			n.Variant, n.Against = v.Provenance.Head.Variant, v.Provenance.Base.Variant
		}
		if d != nil {
			n.Lesson = d.Provenance.Head.Lesson
		}
		key := cmp.Or(n.Change, r.Device+" "+cmp.Or(n.Variant, r.Job))
		// An inconclusive result teaches nothing.
		if !told[key] && r.Outcome == gates.Defer && r.Reason != gates.ReasonInconclusive {
			list = append(list, n)
		}
		told[key] = true
	}
	return list
}
