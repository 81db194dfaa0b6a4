package pages

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// A Matrix shows one figure for each shape and kind of input.
type Matrix struct {
	Kinds []string
	Rows  []MatrixRow
}

// A MatrixRow is one shape.
type MatrixRow struct {
	Shape, Dims string
	Cells       []MatrixCell // by kind
}

// A MatrixCell is a figure with its colour. The hint has the figures behind it.
type MatrixCell struct{ Text, Hint, Class string }

// cell returns the cell of a shape and a kind, and adds row and column if they are new.
func (m *Matrix) cell(shape, dims, kind string) *MatrixCell {
	k := slices.Index(m.Kinds, kind)
	if k < 0 {
		k, m.Kinds = len(m.Kinds), append(m.Kinds, kind)
	}
	r := slices.IndexFunc(m.Rows, func(row MatrixRow) bool { return row.Shape == shape && row.Dims == dims })
	if r < 0 {
		r, m.Rows = len(m.Rows), append(m.Rows, MatrixRow{Shape: shape, Dims: dims})
	}
	row := &m.Rows[r]
	for len(row.Cells) <= k {
		row.Cells = append(row.Cells, MatrixCell{})
	}
	return &row.Cells[k]
}

// whole gives every row a cell for each kind.
func (m *Matrix) whole() *Matrix {
	if len(m.Rows) == 0 {
		return nil
	}
	for i := range m.Rows {
		for len(m.Rows[i].Cells) < len(m.Kinds) {
			m.Rows[i].Cells = append(m.Rows[i].Cells, MatrixCell{})
		}
	}
	return m
}

// speedMatrix shows the speedup by kind of input, in the order of the rows. It is nil where the inputs were of one kind.
func speedMatrix(rows []gates.Comparison, e *gates.Evidence) *Matrix {
	m := &Matrix{}
	for _, c := range rows {
		kinds := kindsOf(c, e)
		var gains []number.Bounded
		for _, k := range kinds {
			gains = append(gains, number.Bounded{Value: k.Speedup.Value, Lower: k.Speedup.Lower, Upper: k.Speedup.Upper})
		}
		texts := number.Gains(gains)
		for i, k := range kinds {
			cell := m.cell(c.Shape, c.Dims, k.Kind)
			cell.Text, cell.Class = strings.Replace(texts[i], number.Slower, " slower", 1), warmth(k.Speedup.Value) // may be broken in a narrow cell
			if c.KindLimit != nil && k.Speedup.Value < *c.KindLimit {
				cell.Text = "✗ " + cell.Text
			}
		}
	}
	if len(m.Kinds) < 2 {
		return nil
	}
	return m.whole()
}

// kindsOf returns the times by kind of input, which a verdict has only where the kinds differ.
func kindsOf(c gates.Comparison, e *gates.Evidence) []gates.KindTime {
	if len(c.Kinds) > 0 || e == nil || c.Baseline == nil {
		return c.Kinds
	}
	return gates.KindTimes(e, c.Shape)
}

// warmth returns the class of a speedup's background: red where it is slower, green where it is faster, in three shades each.
func warmth(speedup float64) string {
	size := math.Abs(math.Log1p(speedup))
	shade := "3"
	switch {
	case math.IsNaN(size) || size < 0.01:
		return "even"
	case size < 0.1:
		shade = "1"
	case size < 0.5:
		shade = "2"
	}
	if speedup < 0 {
		return "slow" + shade
	}
	return "fast" + shade
}

// caseMatrix shows the errors of all cases by shape and kind of input, failed shapes first, then the largest error. The secret
// cases share one row: each of them has a different size.
func caseMatrix(rows []gates.CaseRow) *Matrix {
	m, worst := &Matrix{}, map[string]float64{}
	sums := map[[2]string]gates.CaseRow{}
	for _, r := range rows {
		if r.Secret {
			r.Shape, r.Dims = "secret", "sizes drawn for this run"
		}
		key := [2]string{r.Shape, r.Distribution}
		sum := sums[key]
		sum.Passed, sum.Total, sum.Existing = sum.Passed+r.Passed, sum.Total+r.Total, sum.Existing+r.Existing
		sum.MaxAbs, sum.MeanAbs, sum.Norm = max(sum.MaxAbs, r.MaxAbs), max(sum.MeanAbs, r.MeanAbs), max(sum.Norm, r.Norm)
		sum.Problem = cmp.Or(sum.Problem, r.Problem)
		sums[key] = sum
		*m.cell(r.Shape, r.Dims, r.Distribution) = caseCell(sum)
		worst[r.Shape] = max(worst[r.Shape], r.Norm)
		if sum.Passed < sum.Total {
			worst[r.Shape] = math.Inf(1)
		}
	}
	slices.SortStableFunc(m.Rows, func(a, b MatrixRow) int { return cmp.Compare(worst[b.Shape], worst[a.Shape]) })
	return m.whole()
}

// normText writes the norm of an error. Among errors of a few hundredths of a per cent, smaller ones are all alike.
func normText(norm float64) string {
	if norm > 0 && norm < 5e-5 {
		return "< 0.01 %"
	}
	return number.Share(norm)
}

func caseCell(sum gates.CaseRow) MatrixCell {
	cell := MatrixCell{Text: normText(sum.Norm), Class: "good"}
	cell.Hint = fmt.Sprintf("max error %.3g, mean %.3g", sum.MaxAbs, sum.MeanAbs)
	if sum.Problem != "" {
		cell.Hint += "; " + sum.Problem
	}
	switch {
	case sum.Total == 0:
		return MatrixCell{}
	case sum.Passed+sum.Existing < sum.Total:
		cell.Class, cell.Text = "bad", fmt.Sprintf("✗ %s", cell.Text)
	case sum.Existing > 0:
		cell.Class, cell.Text = "before", fmt.Sprintf("as before, %s", cell.Text)
	}
	if sum.Total > 1 && sum.Passed < sum.Total {
		cell.Text += fmt.Sprintf(" (%d of %d)", sum.Total-sum.Passed, sum.Total)
	}
	return cell
}

// matches reports whether a shape has all words of a filter: a part of its name, a size such as D=128, or the name of a size that
// is not 0, such as causal.
func matches(filter, shape, dims string) bool {
	words := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == ',' })
	}
	sizes := words(dims)
	for _, word := range words(filter) {
		if strings.Contains(word, "=") {
			if !slices.Contains(sizes, word) {
				return false
			}
		} else if !strings.Contains(strings.ToLower(shape), word) && !slices.ContainsFunc(sizes, func(s string) bool { return strings.HasPrefix(s, word+"=") && s != word+"=0" }) {
			return false
		}
	}
	return true
}

// filtered returns the rows of a matrix that match.
func (m *Matrix) filtered(filter string) *Matrix {
	if m == nil || filter == "" {
		return m
	}
	kept := &Matrix{Kinds: m.Kinds}
	for _, r := range m.Rows {
		if matches(filter, r.Shape, r.Dims) {
			kept.Rows = append(kept.Rows, r)
		}
	}
	return kept
}
