package cuda

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// A mismatch is a kernel whose parameter table differs from what would be passed to it.
type mismatch struct {
	summary string
	what    string // without the advice
	line    int    // of the kernel in its source
	rows    []mismatchRow
}

type mismatchRow struct {
	code, manifest string
	differs        bool
}

// compareParameters compares the parameter table in the machine code with the manifest's arguments,
// by number and size. It shows offsets, but does not compare them: they follow from alignments that
// the code does not record, and the driver places parameters by the code's own table.
func compareParameters(k toolchain.Kernel, want []manifest.Parameter) *mismatch {
	m, wrong, advice := &mismatch{line: k.Line}, 0, "compare the manifest's arguments with the kernel's declaration"
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
			if i < len(k.Params) && i < len(want) && want[i].Hint != "" && k.Params[i].Size == want[i].HintSize {
				advice = want[i].Hint
			}
			if wrong++; wrong == 1 {
				m.summary = fmt.Sprintf("parameter %d is %s in the code, %s in the manifest", i, row.code, row.manifest)
			}
		}
		m.rows = append(m.rows, row)
	}
	if wrong == 0 {
		return nil
	}
	m.what = fmt.Sprintf("the kernel %s takes %s and the manifest passes %d: %s", k.Name, counted(len(k.Params), "parameter"), len(want), m.summary)
	m.summary = m.what + "; " + advice
	return m
}

// otherFormats are types that a reference may have for a pointer to float. Other types of that
// size, such as float4 or void, may be intended.
var otherFormats = []string{"double", "__half", "__nv_bfloat16"}

// wholeNumbers and realNumbers are the types that a mangled name has for scalars.
var (
	wholeNumbers = []string{"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "short", "unsigned short", "signed char", "unsigned char", "char", "bool"}
	realNumbers  = []string{"float", "double"}
)

// compareTypes finds the first parameter of a reference whose type differs from what is passed, if
// the mangled name in the machine code is certain about it. A template, or an extern "C" function,
// is not.
func compareTypes(k toolchain.Kernel, want []manifest.Parameter) string {
	_, list, ok := strings.Cut(k.Name, "(")
	if !strings.HasPrefix(k.Symbol, "_Z") || strings.Contains(k.Name, "<") || !ok {
		return ""
	}
	types := strings.Split(strings.TrimSuffix(list, ")"), ", ")
	if len(types) != len(want) || strings.Contains(list, "(") {
		return ""
	}
	for i, p := range want {
		t, format := types[i], manifest.DType(strings.TrimPrefix(p.Type, "dim, "))
		pointee := strings.TrimSuffix(strings.TrimSuffix(t, "*"), " const")
		_, pointer := strings.CutPrefix(p.Type, "pointer to ")
		wrong := pointer && (slices.Contains(otherFormats, pointee) || !strings.HasSuffix(t, "*")) ||
			!pointer && (strings.HasSuffix(t, "*") || format.Float() && slices.Contains(wholeNumbers, t) || !format.Float() && slices.Contains(realNumbers, t))
		if wrong {
			return fmt.Sprintf("its parameter %d is %s, and %s is passed as %s", i, t, p.Name, p.Type)
		}
	}
	return ""
}

// parametersOf returns the parameters of a kernel whose compiler adds some: the manifest's
// arguments, then pointers to the scratch memory that the compiler asks for.
func parametersOf(m *manifest.Manifest, start *toolchain.Start) []manifest.Parameter {
	all := m.Parameters(nil)
	for range start.Scratch {
		at := 0
		if n := len(all); n > 0 {
			at = (all[n-1].Offset + all[n-1].Size + 7) &^ 7
		}
		all = append(all, manifest.Parameter{Name: "scratch", Type: "pointer to what the build asks for", Offset: at, Size: 8})
	}
	return all
}

// diagnostics returns the table, one line for each parameter, at the kernel's position in its
// source.
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
