package cuda

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// A mismatch is a kernel whose parameter table is not what would be passed to it.
type mismatch struct {
	summary string
	line    int // of the kernel in its source
	rows    []mismatchRow
}

type mismatchRow struct {
	code, manifest string
	differs        bool
}

// compareParameters holds the parameter table in the machine code against the manifest's arguments, by number and size. Offsets
// are shown and not compared: they follow from alignments, of which the code tells nothing, and the driver places parameters by
// the code's own table.
func compareParameters(k toolchain.Kernel, want []kernels.Parameter) *mismatch {
	m, wrong := &mismatch{line: k.Line}, 0
	for i := range max(len(k.Params), len(want)) {
		row := mismatchRow{code: "none", manifest: "none"}
		if i < len(k.Params) {
			row.code = fmt.Sprintf("%s at offset %d", counted(k.Params[i].Size, "byte"), k.Params[i].Offset)
		}
		if i < len(want) {
			row.manifest = fmt.Sprintf("%s (%s): %s at offset %d", want[i].Name, want[i].Type, counted(want[i].Size, "byte"), want[i].Offset)
		}
		row.differs = i >= len(k.Params) || i >= len(want) || k.Params[i].Size != want[i].Size
		if row.differs {
			if wrong++; wrong == 1 {
				m.summary = fmt.Sprintf("parameter %d is %s in the code, %s in the manifest", i, row.code, row.manifest)
			}
		}
		m.rows = append(m.rows, row)
	}
	if wrong == 0 {
		return nil
	}
	m.summary = fmt.Sprintf("the kernel %s takes %s and the manifest passes %d: %s; compare the manifest's arguments with the kernel's declaration",
		k.Name, counted(len(k.Params), "parameter"), len(want), m.summary)
	return m
}

// parametersOf is what a kernel is launched with whose compiler says how: the manifest's arguments and pointers to the scratch
// memory that it asks for behind them.
func parametersOf(m *kernels.Manifest, start *toolchain.Start) []kernels.Parameter {
	all := m.Parameters(nil)
	for range start.Scratch {
		at := 0
		if n := len(all); n > 0 {
			at = (all[n-1].Offset + all[n-1].Size + 7) &^ 7
		}
		all = append(all, kernels.Parameter{Name: "scratch", Type: "pointer to what the build asks for", Offset: at, Size: 8})
	}
	return all
}

// diagnostics is the table, a line for each parameter, at the kernel's place in its source.
func (m *mismatch) diagnostics(source string) []gates.Diagnostic {
	var all []gates.Diagnostic
	for i, r := range m.rows {
		d := gates.Diagnostic{File: source, Line: m.line, Severity: "note"}
		if r.differs {
			d.Severity = "error"
		}
		d.Message = fmt.Sprintf("parameter %d: in the code %s; in the manifest %s", i, r.code, r.manifest)
		all = append(all, d)
	}
	return all
}

func (m *mismatch) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "ordinal\tin the code\tin the manifest\t\n")
	for i, r := range m.rows {
		mark := ""
		if r.differs {
			mark = "differs"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", i, r.code, r.manifest, mark)
	}
	w.Flush()
	return text.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
