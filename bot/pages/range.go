package pages

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A Range is the part of a kernel's history that a page shows. Its address names the first and the last run, so a link keeps the
// range when there are more runs.
type Range struct {
	From   string      `json:"from,omitempty"` // a run
	To     string      `json:"to,omitempty"`
	Shown  int         `json:"shown"`
	All    int         `json:"all"`
	Chosen bool        `json:"chosen,omitempty"` // by the address of the page
	Links  []RangeLink `json:"-"`
}

// A RangeLink leads to a different range, or is the name of the current one.
type RangeLink struct{ Text, URL string }

// rangeOf returns the range that an address names, and its runs. Runs are sorted from the oldest to the newest. A run that is not
// among them does not limit the range.
func rangeOf(runs []ledger.RunRow, query url.Values) (Range, []ledger.RunRow) {
	from, to := max(0, len(runs)-kernelPoints), len(runs)
	place := func(key string) int {
		return slices.IndexFunc(runs, func(r ledger.RunRow) bool { return r.Job == query.Get(key) })
	}
	r := Range{All: len(runs)}
	first, last := place("from"), place("to")
	if first > last && last >= 0 {
		first, last = last, first
	}
	if r.Chosen = first >= 0 || last >= 0; r.Chosen {
		from = max(0, first)
		if last >= 0 {
			to = last + 1
		}
	}
	shown := runs[from:to]
	if r.Shown = len(shown); r.Shown > 0 {
		r.From, r.To = shown[0].Job, shown[len(shown)-1].Job
	}
	r.links(runs, from, to)
	return r, shown
}

// Lengths of a history to choose from.
var lengths = []int{10, 30, kernelPoints}

// links offers shorter and longer ranges that end with the newest run, and the neighbours of the current range.
func (r *Range) links(runs []ledger.RunRow, from, to int) {
	const least = 4 // fewer points need no ranges
	if len(runs) < least {
		return
	}
	add := func(text string, first, end int) {
		link := RangeLink{Text: text}
		if first != from || end != to {
			link.URL = "?" + url.Values{"from": {runs[first].Job}, "to": {runs[end-1].Job}}.Encode() + "#history"
		}
		r.Links = append(r.Links, link)
	}
	if from > 0 {
		add("← earlier", max(0, from-(to-from)), from)
	}
	if to < len(runs) {
		add("later →", to, min(len(runs), to+to-from))
	}
	for _, n := range lengths {
		if n < len(runs) {
			add(fmt.Sprintf("last %d", n), len(runs)-n, len(runs))
		}
	}
	add(fmt.Sprintf("all %d", len(runs)), 0, len(runs))
}

// A PastTable has the times of the charts in figures, newest first, for readers without a pointer.
type PastTable struct {
	Columns []string // shapes, with the device if there are several
	Rows    []PastRow
}

// A PastRow is one run.
type PastRow struct {
	Past
	Times []float64 // by column; 0 if it was not timed
}

// Name returns the label that the charts have for the run.
func (r PastRow) Name(branch bool) string { return labelOf(r.Past, branch) }

// Word returns the verdict.
func (r PastRow) Word() Word { return Word{Outcome: r.Outcome, Reason: r.row.Reason} }

// HasGoal reports whether a chart shows what the next change must reach.
func (p *KernelPage) HasGoal() bool {
	return slices.ContainsFunc(p.Trends, func(t Trend) bool { return t.goal() != nil })
}

// pastTable returns nil if no history has a point.
func pastTable(histories []History) *PastTable {
	t := &PastTable{}
	rows := map[int]*PastRow{}
	devices := map[string]bool{}
	for _, h := range histories {
		devices[h.Device] = true
	}
	for column, h := range histories {
		name := h.Shape
		if len(devices) > 1 {
			name += " on " + deviceName(h.Device)
		}
		t.Columns = append(t.Columns, name)
		for _, p := range h.Points {
			if rows[p.place] == nil {
				rows[p.place] = &PastRow{Past: p, Times: make([]float64, len(histories))}
			}
			rows[p.place].Times[column] = p.P50
		}
	}
	for _, place := range slices.Backward(slices.Sorted(maps.Keys(rows))) {
		t.Rows = append(t.Rows, *rows[place])
	}
	if t.Rows == nil {
		return nil
	}
	return t
}
