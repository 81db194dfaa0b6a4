package check

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// maxElements is how many bad elements are listed.
const maxElements = 8

// elementsText shows one case for a person who looks for the mistake: the first bad elements, what
// they have in common, and both sides. problem is what the gate says about the candidate's output;
// it is empty if the output is right.
func elementsText(l *runners.CaseDump, m *manifest.Manifest, problem string) (string, error) {
	var b strings.Builder
	c := l.Case
	fmt.Fprintf(&b, "%s (%s), seed %d, %s inputs\n", c.Shape, c.Dims, c.Seed, c.Distribution)
	switch {
	case problem == "" && len(m.OwnTolerances()) > 0:
		b.WriteString("The candidate is right: no element is beyond the tolerance of its output.\n")
	case problem == "":
		fmt.Fprintf(&b, "The candidate is right: no element is beyond the tolerance of %s.\n", bounds(m.Tolerance))
	default:
		fmt.Fprintf(&b, "The candidate is wrong: %s.\n", problem)
	}
	if f := c.BaselineFailure; f != nil {
		fmt.Fprintf(&b, "The baseline fails on it too: %s.\n", f.Detail)
	}
	for _, out := range l.Outputs {
		for _, side := range []struct {
			name string
			got  []byte
		}{{"candidate", out.Candidate}, {"baseline", out.Baseline}} {
			if side.got == nil {
				continue
			}
			bad, err := badElements(out, side.got, m.ToleranceOf(out.Name))
			if err != nil {
				return "", err
			}
			b.WriteString("\n")
			if distribution.Kind(c.Distribution).FromRecording() {
				writePlaces(&b, side.name, out, bad)
				continue
			}
			write(&b, side.name, out, bad)
		}
	}
	return b.String(), nil
}

func bounds(t manifest.Tolerance) string {
	switch {
	case t.Rel == 0:
		return fmt.Sprintf("%g", t.Abs)
	case t.Abs == 0:
		return fmt.Sprintf("%g·|want|", t.Rel)
	}
	return fmt.Sprintf("%g + %g·|want|", t.Abs, t.Rel)
}

// An element is one that differs from the expected value.
type element struct {
	index     int
	got, want float64
	unwritten bool
}

// badElements returns every element that a comparison would call bad.
func badElements(out runners.DumpedOutput, got []byte, tolerance manifest.Tolerance) ([]element, error) {
	expected := make([]float64, len(out.Want)/8)
	values := make([]float64, len(expected))
	if len(got) != out.DType.Bytes(len(values)) {
		return nil, fmt.Errorf("showing %s: %d bytes for %d elements of %s", out.Name, len(got), len(values), out.DType)
	}
	tensor.Decode(manifest.F64, expected, out.Want)
	tensor.Decode(out.DType, values, got)
	var bad []element
	for i, want := range expected {
		e, err := tensor.Compare(out.DType, tensor.Element(out.DType, got, i), expected[i:i+1], tolerance)
		if err != nil {
			return nil, fmt.Errorf("showing %s: %w", out.Name, err)
		}
		if e.Bad > 0 {
			bad = append(bad, element{index: i, got: values[i], want: want, unwritten: e.Unwritten > 0})
		}
	}
	return bad, nil
}

func write(b *strings.Builder, side string, out runners.DumpedOutput, bad []element) {
	n := len(out.Want) / 8
	if len(bad) == 0 {
		fmt.Fprintf(b, "%s of the %s: all %d elements are within the tolerance.\n", out.Name, side, n)
		return
	}
	m := newMatrix(out.Shape, n)
	fmt.Fprintf(b, "%s of the %s: %d of %d elements are bad: %s.\n", out.Name, side, len(bad), n, m.where(bad))
	rows := [][4]string{{"element", "got", "expected", "error"}}
	for _, e := range bad[:min(len(bad), maxElements)] {
		rows = append(rows, [4]string{elementIndex(out, e.index), e.value(), number(e.want), e.difference()})
	}
	table(b, rows)
	if more := len(bad) - maxElements; more > 0 {
		fmt.Fprintf(b, "  … and %d more\n", more)
	}
	b.WriteString(m.picture(bad))
}

// writePlaces shows where elements are bad, and no value: recorded data is private, and so is what is computed from it.
func writePlaces(b *strings.Builder, side string, out runners.DumpedOutput, bad []element) {
	n := len(out.Want) / 8
	if len(bad) == 0 {
		fmt.Fprintf(b, "%s of the %s: all %d elements are within the tolerance.\n", out.Name, side, n)
		return
	}
	m := newMatrix(out.Shape, n)
	fmt.Fprintf(b, "%s of the %s: %d of %d elements are bad: %s. Values of recorded inputs are not shown.\n", out.Name, side, len(bad), n, m.where(bad))
	for _, e := range bad[:min(len(bad), maxElements)] {
		fmt.Fprintf(b, "  %s\n", elementIndex(out, e.index))
	}
	if more := len(bad) - maxElements; more > 0 {
		fmt.Fprintf(b, "  … and %d more\n", more)
	}
	b.WriteString(m.picture(bad))
}

// elementIndex returns a text such as y[2][13].
func elementIndex(out runners.DumpedOutput, index int) string {
	text := ""
	for axis := len(out.Shape) - 1; axis >= 0; axis-- {
		text = fmt.Sprintf("[%d]", index%out.Shape[axis]) + text
		index /= out.Shape[axis]
	}
	return out.Name + text
}

func (e element) value() string {
	if e.unwritten {
		return "never written"
	}
	return number(e.got)
}

func (e element) difference() string {
	diff := e.got - e.want
	switch {
	case e.unwritten || math.IsNaN(diff) || math.IsInf(diff, 0):
		return "—"
	case e.want == 0:
		return fmt.Sprintf("%+.3g", diff)
	}
	return fmt.Sprintf("%+.3g (%+.3g %%)", diff, 100*diff/math.Abs(e.want))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// table aligns all columns except the first to the right.
func table(b *strings.Builder, rows [][4]string) {
	var width [4]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		fmt.Fprintf(b, "  %-*s  %*s  %*s  %*s\n", width[0], row[0], width[1], row[1], width[2], row[2], width[3], row[3])
	}
}
