package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is known of machine code comes back as it was written, is in the verdict, and decides nothing.
func TestMachineCode(t *testing.T) {
	e := passing()
	without := Judge(parsePolicy(t, fullPolicy), "p.yaml", e)
	e.MachineCode = &MachineCode{
		Tool: "nvdisasm 13.4.92", More: 2,
		Changes: []CodeChange{{Kernel: "k", Shapes: []string{"mission"}, Baseline: &Instructions{1, 2, 3, 4, 5, 2}, Candidate: &Instructions{Other: 7}, Diff: "@@ -1,1 +1,1 @@ k.cu:3\n-A\n+B", Cut: 9,
			Hottest: &HottestLoop{Baseline: CodeLoop{First: 1, Last: 9, Sampled: 0.5}, Candidate: CodeLoop{First: 1, Last: 1, File: "k.cu", Line: 3, LastLine: 3, Sampled: 1}}}},
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseEvidence("e.json", data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.MachineCode, read.MachineCode); diff != "" {
		t.Error(diff)
	}
	with := Judge(parsePolicy(t, fullPolicy), "p.yaml", read)
	if diff := cmp.Diff(e.MachineCode, with.MachineCode); diff != "" {
		t.Errorf("the verdict has other code:\n%s", diff)
	}
	if with.MachineCode = nil; cmp.Diff(without, with) != "" {
		t.Errorf("what is for people alone changes the verdict:\n%s", cmp.Diff(without, with))
	}
}

func TestClipDiff(t *testing.T) {
	for name, c := range map[string]struct {
		diff  string
		lines int
		kept  string
		cut   int
	}{
		"all of it":  {"a\nb\n", 9, "a\nb", 0},
		"lines":      {"a\nb\nc", 2, "a\nb", 1},
		"bytes":      {"a\n" + strings.Repeat("x", MaxCodeDiff), 9, "a", 1},
		"none":       {"", 9, "", 0},
		"one of one": {"a", 1, "a", 0},
	} {
		if kept, cut := ClipDiff(c.diff, c.lines); kept != c.kept || cut != c.cut {
			t.Errorf("%s: %q and %d more, want %q and %d", name, kept, cut, c.kept, c.cut)
		}
	}
}
