package pages_test

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

var (
	matrixOf = regexp.MustCompile(`(?s)aria-label="Speedup by kind of input" tabindex="0"><table class="matrix">(.*?)</table>`)
	pastOf   = regexp.MustCompile(`(?s)aria-label="History" tabindex="0"><table class="stack">(.*?)</table>`)
)

// cellsOf returns the rows of a table, the head first, with their cells as a reader sees them.
func cellsOf(table string) [][]string {
	var rows [][]string
	for _, row := range rowStarts.Split(table, -1)[1:] {
		var list []string
		for _, c := range cells.Split(row, -1)[1:] {
			list = append(list, oneLine(html.UnescapeString(withoutTags(c, ""))))
		}
		rows = append(rows, list)
	}
	return rows
}

// holdMatrix checks the speedups by kind of input on a run's page: every figure is the verdict's, and the losses of a row have one
// notation.
func holdMatrix(t *testing.T, count *tally, p piece, page string) {
	t.Helper()
	found := matrixOf.FindStringSubmatch(page)
	if found == nil {
		return
	}
	rows := cellsOf(found[1])
	seen := 0
	for _, row := range rows[1:] {
		c := p.verdict.ComparisonOf(row[0])
		if c == nil {
			t.Errorf("%s: the matrix has the shape %q", p.name, row[0])
			continue
		}
		kinds := c.Kinds
		if len(kinds) == 0 {
			kinds = gates.KindTimes(p.evidence, c.Shape)
		}
		percent, factor := false, false
		for i, text := range row[1:] {
			text = strings.TrimPrefix(text, "✗ ")
			if text == "" {
				continue
			}
			m := mention{row[0], speedup, text}
			got, half, ok := m.read()
			var want float64
			known := false
			for _, k := range kinds {
				if k.Kind == rows[0][i+1] {
					want, known = k.Speedup.Value, true
				}
			}
			if !ok || !known || math.Abs(got-want) > half+1e-9*math.Abs(want) {
				t.Errorf("%s: the matrix shows %q for %s on %s inputs, the verdict has %v", p.name, text, row[0], rows[0][i+1], want)
			}
			slower := strings.HasSuffix(text, " slower")
			percent, factor = percent || slower && strings.Contains(text, "%"), factor || slower && strings.Contains(text, "×")
			seen++
		}
		if percent && factor {
			t.Errorf("%s: a row of the matrix has two notations: %q", p.name, row)
		}
	}
	count.mu.Lock()
	count.byForm["the matrix of kinds"] += seen
	count.mu.Unlock()
}

// holdPast checks the table that has the same times as the charts of a kernel's page.
func holdPast(t *testing.T, count *tally, p piece, page string) {
	t.Helper()
	found := pastOf.FindStringSubmatch(page)
	if found == nil {
		return
	}
	rows := cellsOf(found[1])
	seen := 0
	for column, shape := range rows[0] {
		c := p.verdict.ComparisonOf(shape)
		if c == nil || c.Candidate == nil || len(rows) != 2 {
			continue
		}
		got, half, ok := mention{shape, after, rows[1][column]}.read()
		if want := c.CandidateTime(); !ok || math.Abs(got-want) > half+1e-9*want {
			t.Errorf("%s: the table of the history shows %q for %s, the verdict has %v", p.name, rows[1][column], shape, want)
		}
		seen++
	}
	count.mu.Lock()
	count.byForm["the table of the history"] += seen
	count.mu.Unlock()
}
