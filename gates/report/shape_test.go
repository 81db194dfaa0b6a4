package report

import "testing"

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name        string
		dims        []string
		title, cell string
	}{
		{"same dimensions", []string{"B=1 H=8", "B=2 H=16"}, "shape (B,H)", "s (1,8)"},
		{"other dimensions", []string{"B=1 H=8", "M=2 N=16"}, "shape", "s (B=1 H=8)"},
		{"no names", []string{"1,8", "2,16"}, "shape", "s (1,8)"},
		{"in brackets", []string{"(1,8)"}, "shape", "s (1,8)"},
		{"one without", []string{"B=1", ""}, "shape", "s (B=1)"},
		{"none", []string{""}, "shape", "s"},
		{"no size", []string{"B="}, "shape", "s (B=)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shapesOf(c.dims, func(dims string) string { return dims })
			if got := s.column().title; got != c.title {
				t.Errorf("title %q, want %q", got, c.title)
			}
			if got := plainText(s.cell("s", c.dims[0])); got != c.cell {
				t.Errorf("cell %q, want %q", got, c.cell)
			}
		})
	}
}
