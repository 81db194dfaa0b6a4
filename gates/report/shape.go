package report

import "strings"

// A shapeColumn writes shapes with their sizes. Where all have the same
// dimensions, their names stand once in the title: four sizes with names in
// every row would make the widest column of the table.
type shapeColumn struct {
	names string // "B,H,S,D"; "" where the rows differ
}

func shapesOf[Row any](rows []Row, dims func(Row) string) shapeColumn {
	names := ""
	for i, row := range rows {
		n, _, ok := splitDims(dims(row))
		if !ok || i > 0 && n != names {
			return shapeColumn{}
		}
		names = n
	}
	return shapeColumn{names}
}

func (s shapeColumn) column() column {
	if s.names == "" {
		return column{title: "shape", wrap: true}
	}
	return column{title: "shape (" + clean(s.names) + ")", wrap: true}
}

func (s shapeColumn) cell(name, dims string) line {
	l := codeCell(name)
	if dims == "" {
		return l
	}
	if s.names != "" {
		_, dims, _ = splitDims(dims)
	}
	return append(l, text(" ("+strings.Trim(dims, "()")+")"))
}

// splitDims parts "B=1 H=8" into "B,H" and "1,8".
func splitDims(dims string) (names, sizes string, ok bool) {
	var n, s []string
	for field := range strings.FieldsSeq(dims) {
		name, size, found := strings.Cut(field, "=")
		if !found || name == "" || size == "" {
			return "", "", false
		}
		n, s = append(n, name), append(s, size)
	}
	return strings.Join(n, ","), strings.Join(s, ","), len(n) > 0
}
