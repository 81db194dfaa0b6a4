package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
)

func TestHunks(t *testing.T) {
	for name, tt := range map[string]struct {
		diff string
		want []CodeHunk
	}{
		"nothing": {"", nil},
		"pairs": {"@@ -6,3 +6,4 @@ scale.cu:5\n ULDC\n-LDC R6\n-LDC R7\n+LDC R8\n EXIT\n", []CodeHunk{{"scale.cu", 5, []CodeRow{
			{"ULDC", "ULDC", "same"}, {"LDC R6", "LDC R8", "gone added"}, {"LDC R7", "", "gone"}, {"EXIT", "EXIT", "same"}}}}},
		"two places":  {"@@ -1 +1 @@ a:b.cu:7\n+A\n@@ -9 +9 @@\n-B\n", []CodeHunk{{"a:b.cu", 7, []CodeRow{{"", "A", "added"}}}, {"", 0, []CodeRow{{"B", "", "gone"}}}}},
		"no heading":  {"-A\n+B", []CodeHunk{{"", 0, []CodeRow{{"A", "B", "gone added"}}}}},
		"added first": {"@@ @@ x\n+A\n-B", []CodeHunk{{"x", 0, []CodeRow{{"", "A", "added"}, {"B", "", "gone"}}}}},
	} {
		if diff := cmp.Diff(tt.want, hunks(tt.diff)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestCodeOnDemand checks that few rows are shown at first and the others on demand.
func TestCodeOnDemand(t *testing.T) {
	var b strings.Builder
	for i := range codeShown + 25 {
		if i%30 == 0 {
			fmt.Fprintf(&b, "@@ -1 +1 @@ a.cu:%d\n", i+1)
		}
		fmt.Fprintf(&b, "+I%d\n", i)
	}
	views := codeViews(&gates.Verdict{MachineCode: &gates.MachineCode{Changes: []gates.CodeChange{{Kernel: "k", Diff: b.String()}}}})
	count := func(hunks []CodeHunk) (n int) {
		for _, h := range hunks {
			n += len(h.Rows)
		}
		return n
	}
	if v := views[0]; count(v.First) != codeShown || count(v.Rest) != 25 || v.Lines != 25 || v.Rest[0].Line != v.First[len(v.First)-1].Line {
		t.Errorf("%d rows at first, %d on demand", count(v.First), count(v.Rest))
	}
}
