package output

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
)

func TestParseDiagnostics(t *testing.T) {
	for _, test := range []struct {
		name, log string
		want      []gates.Diagnostic
	}{
		{"nothing", "", nil},
		{"nvcc error", `dir/k.cu(12): error: identifier "x" is undefined`, []gates.Diagnostic{
			{File: "dir/k.cu", Line: 12, Severity: "error", Message: `identifier "x" is undefined`},
		}},
		{"nvcc warning as an error", "k.cu(4): error #177-D: never referenced", []gates.Diagnostic{
			{File: "k.cu", Line: 4, Severity: "error", Code: "#177-D", Message: "never referenced"},
		}},
		{"older nvcc without a hash", "k.cu(4): warning 177-D: never referenced\r\n", []gates.Diagnostic{
			{File: "k.cu", Line: 4, Severity: "warning", Code: "177-D", Message: "never referenced"},
		}},
		{"nvcc gives up", "k.cu(1): catastrophic error: too many errors", []gates.Diagnostic{
			{File: "k.cu", Line: 1, Severity: "error", Message: "too many errors"},
		}},
		{"gcc without a column", "f.c:3: error: stray", []gates.Diagnostic{
			{File: "f.c", Line: 3, Severity: "error", Message: "stray"},
		}},
		{"gcc's brackets are not always a flag", "f.c:3:5: error: no member a[2] [-Werror=x]", []gates.Diagnostic{
			{File: "f.c", Line: 3, Column: 5, Severity: "error", Message: "no member a[2]", Code: "-Werror=x"},
		}},
		{"clang with two flags", "f.c:3:5: error: unused [-Werror,-Wunused]", []gates.Diagnostic{
			{File: "f.c", Line: 3, Column: 5, Severity: "error", Message: "unused", Code: "-Werror,-Wunused"},
		}},
		{"driver of the host compiler", "/usr/bin/c++: fatal error: no input files\ncollect2: error: ld returned 1 exit status\n", []gates.Diagnostic{
			{Tool: "/usr/bin/c++", Severity: "error", Message: "no input files"},
			{Tool: "collect2", Severity: "error", Message: "ld returned 1 exit status"},
		}},
		{"killed front end", "nvcc error   : 'cicc' died due to signal 9 (Kill signal)", []gates.Diagnostic{
			{Tool: "nvcc", Severity: "error", Message: "'cicc' died due to signal 9 (Kill signal)"},
		}},
		{"ptxas warning with a code", "ptxas warning : (C7508) Potential Performance Loss: 'setmaxnreg' ignored", []gates.Diagnostic{
			{Tool: "ptxas", Severity: "warning", Code: "C7508", Message: "Potential Performance Loss: 'setmaxnreg' ignored"},
		}},
		{"figures are no complaint", "ptxas info    : Used 10 registers, used 0 barriers", nil},
		{"echoed source is no complaint", "      k.cu(3): error: from a comment\n    3 | f.c:3:5: error: from a comment\n", nil},
		{"context is no complaint", "          detected during instantiation of \"f\" at line 7\nIn file included from f.c:1:\n1 error detected.\n", nil},
		{"a line number that no int holds", "k.cu(99999999999999999999): error: x", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseDiagnostics(test.log)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
