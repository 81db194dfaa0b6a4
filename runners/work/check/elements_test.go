package check

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// TestWhere checks that the text says what bad elements have in common.
func TestWhere(t *testing.T) {
	m := matrix{rows: 8, columns: 40}
	for _, c := range []struct {
		name string
		bad  func(row, column int) bool
		want string
	}{
		{"everything", func(int, int) bool { return true }, "all of them"},
		{"one", func(r, c int) bool { return r == 3 && c == 7 }, "a single one"},
		{"ragged columns", func(_, c int) bool { return c >= 32 }, "a tail: columns 32 to 39 of 40, in every row"},
		{"last column", func(_, c int) bool { return c == 39 }, "a tail: column 39 of 40, in every row"},
		{"first columns", func(_, c int) bool { return c < 4 }, "a head: columns 0 to 3 of 40, in every row"},
		{"last rows", func(r, _ int) bool { return r > 5 }, "a tail: rows 6 to 7 of 8"},
		{"first row", func(r, _ int) bool { return r == 0 }, "a head: row 0 of 8"},
		{"end of a row", func(r, c int) bool { return r == 2 && c > 36 }, "a tail: columns 37 to 39 of 40, in row 2"},
		{"tile", func(r, c int) bool { return r/4 == 0 && c/8 == 2 }, "a tile: rows 0 to 3 of 8, columns 16 to 23 of 40"},
		{"every fourth", func(_, c int) bool { return c%4 == 1 }, "every 4th column, from 1 on"},
		{"most", func(r, c int) bool { return (r+c)%3 > 0 }, "most of them"},
		{"here and there", func(r, c int) bool { return (7*r+13*c)%29 == 0 }, "scattered"},
	} {
		var bad []element
		for i := range m.rows * m.columns {
			if c.bad(i/m.columns, i%m.columns) {
				bad = append(bad, element{index: i})
			}
		}
		if got := m.where(bad); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPicture checks on random shapes that the picture is small. If some elements are bad, it shows
// neither that none is nor that all are.
func TestPicture(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m := matrix{rows: 1 + rng.IntN(300), columns: 1 + rng.IntN(1000)}
		one := []element{{index: rng.IntN(m.rows * m.columns)}}
		lines := strings.Split(strings.TrimSpace(m.picture(one)), "\n")
		if len(lines) > pictureRows+1 {
			t.Fatalf("%+v: %d lines", m, len(lines))
		}
		drawing := strings.Join(lines[:len(lines)-1], "\n")
		if n := strings.Count(drawing, "█") + strings.Count(drawing, "▒"); n != 1 {
			t.Fatalf("%+v, element %d: %d places\n%s", m, one[0].index, n, drawing)
		}
		for _, line := range lines[:len(lines)-1] {
			if len([]rune(line)) > pictureColumns+12 {
				t.Fatalf("%+v: %q is too wide", m, line)
			}
		}
		if where := m.where(one); where != "a single one" && where != "all of them" {
			t.Fatalf("%+v: %s", m, where)
		}
	}
}

// TestBadElementsAreThoseThatCount checks that bad elements here are those that a comparison
// counts, poison and infinities included.
func TestBadElementsAreThoseThatCount(t *testing.T) {
	tolerance := manifest.Tolerance{Abs: 0.1}
	want := []float64{1, 2, math.Inf(1), 4, 5, math.NaN(), 7}
	got := make([]byte, 4*len(want))
	tensor.Encode(manifest.F32, got, []float64{1, 2.5, math.Inf(1), 4, math.NaN(), math.NaN(), math.Inf(-1)})
	tensor.Poison(manifest.F32, got[12:16])
	out := runners.DumpedOutput{Name: "y", DType: manifest.F32, Shape: []int{7}, Candidate: got, Want: make([]byte, 8*len(want))}
	tensor.Encode(manifest.F64, out.Want, want)
	counted, err := tensor.Compare(manifest.F32, got, want, tolerance)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := badElements(out, got, tolerance)
	if err != nil || len(bad) != counted.Bad || len(bad) != 4 {
		t.Fatalf("%d bad elements, %d counted, %v", len(bad), counted.Bad, err)
	}
	text, err := elementsText(&runners.CaseDump{
		Case:    gates.Case{Input: gates.Input{Shape: "s", Dims: "N=7", Distribution: "normal"}, BaselineFailure: &gates.Failure{Detail: "the kernel crashed"}},
		Outputs: []runners.DumpedOutput{out},
	}, &manifest.Manifest{Tolerance: tolerance}, "1 of 7 elements were never written")
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"y[3]     never written         4             —", "y[1]               2.5         2  +0.5 (+25 %)", "The baseline fails on it too: the kernel crashed."} {
		if !strings.Contains(text, says) {
			t.Errorf("%s\ndoes not say %q", text, says)
		}
	}
	if _, err := badElements(out, got[1:], tolerance); err == nil {
		t.Error("an output of another length is shown")
	}
}
