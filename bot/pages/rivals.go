package pages

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A RivalTable lists the times of competing implementations by shape.
type RivalTable struct {
	Run    string    `json:"run"` // the run that timed them
	Device string    `json:"device"`
	Shapes []string  `json:"shapes"`
	Ours   []float64 `json:"ours_us"` // by shape; 0 if not timed
	// OursIn is the run with our times, if it is a different one.
	OursIn  string     `json:"ours_in,omitempty"`
	Variant string     `json:"variant,omitempty"` // our variant
	Rows    []RivalRow `json:"rivals"`
}

// A RivalRow is one competing implementation.
type RivalRow struct {
	Name  string      `json:"name"`
	Cells []RivalTime `json:"by_shape"`
}

// A RivalTime is its time on one shape.
type RivalTime struct {
	P50     float64 `json:"p50_us,omitempty"`
	Factor  float64 `json:"factor,omitempty"` // its time divided by ours
	Failure string  `json:"failure,omitempty"`
}

// rivals returns the table of the newest run that timed any. The runs are sorted newest first.
func (s *Server) rivals(ctx context.Context, runs []ledger.RunRow) *RivalTable {
	at := slices.IndexFunc(runs, func(r ledger.RunRow) bool {
		d := s.digest(ctx, r.Verdict)
		return d != nil && len(d.Rivals) > 0
	})
	if at < 0 {
		return nil
	}
	run := runs[at]
	d := s.digest(ctx, run.Verdict)
	t := &RivalTable{Run: run.Job, Device: run.Device}
	for _, r := range d.Rivals {
		if r.Shape != "" && !slices.Contains(t.Shapes, r.Shape) {
			t.Shapes = append(t.Shapes, r.Shape)
		}
	}
	ours := run
	if len(ours.P50) == 0 { // this run timed only the rivals
		for _, r := range runs {
			if r.Device == run.Device && len(r.P50) > 0 {
				ours, t.OursIn = r, r.Job
				break
			}
		}
	}
	if v := s.digest(ctx, ours.Verdict); v != nil {
		t.Variant = v.Provenance.Head.Variant
	}
	for _, shape := range t.Shapes {
		t.Ours = append(t.Ours, ours.P50[shape])
	}
	for _, r := range d.Rivals {
		row := slices.IndexFunc(t.Rows, func(had RivalRow) bool { return had.Name == r.Name })
		if row < 0 {
			row, t.Rows = len(t.Rows), append(t.Rows, RivalRow{r.Name, make([]RivalTime, max(1, len(t.Shapes)))})
		}
		cell := RivalTime{P50: r.Stats.P50, Failure: r.Failure}
		column := max(0, slices.Index(t.Shapes, r.Shape))
		if r.Failure == "" && column < len(t.Ours) && t.Ours[column] > 0 {
			cell.Factor = r.Stats.P50 / t.Ours[column]
		}
		t.Rows[row].Cells[column] = cell
	}
	return t
}

// fastest returns the fastest of the competing implementations on a shape, if a line of the trend is of their device.
func (t *RivalTable) fastest(of *Trend) []chart.Level {
	if t == nil || !slices.ContainsFunc(of.Lines, func(h History) bool { return h.Device == t.Device }) {
		return nil
	}
	var best []chart.Level
	column := slices.Index(t.Shapes, of.Shape)
	for _, r := range t.Rows {
		if column < 0 || column >= len(r.Cells) || r.Cells[column].P50 <= 0 {
			continue
		}
		if best == nil || r.Cells[column].P50 < best[0].Value {
			best = []chart.Level{{Name: r.Name, Value: r.Cells[column].P50}}
		}
	}
	return best
}
