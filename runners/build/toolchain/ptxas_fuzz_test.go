package toolchain

import (
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

func seed(f *testing.F, kind string) {
	for _, log := range recorded(f, kind) {
		f.Add(log)
	}
}

func FuzzParsePTXAS(f *testing.F) {
	seed(f, "ptxas")
	f.Fuzz(func(t *testing.T, log string) {
		report, err := readPTXAS(log)
		if err != nil {
			return
		}
		if len(report.Entries) == 0 {
			t.Error("neither entries nor an error")
		}
		for _, e := range report.Entries {
			checkUsage(t, e)
		}
	})
}

// What stands before ptxas's own lines comes from the source's author.
func FuzzForgedPrefixCannotLower(f *testing.F) {
	seed(f, "ptxas")
	genuine := readLog(f, "cuda13.0-sm_89.ptxas.log")
	honest, err := readPTXAS(genuine)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, forged string) {
		report, err := readPTXAS(forged + "\n" + genuine)
		if err != nil {
			return
		}
		got := map[entryKey]FunctionUsage{}
		for _, e := range report.Entries {
			got[entryKey{e.Name, e.Arch}] = e
		}
		for _, want := range honest.Entries {
			e, ok := got[entryKey{want.Name, want.Arch}]
			if !ok {
				t.Fatalf("%s is gone", want.Name)
			}
			figures, honestFigures := figuresOf(e), figuresOf(want)
			for name, n := range honestFigures {
				if n != nil && (figures[name] == nil || *figures[name] < *n) {
					t.Errorf("%s: %s fell below %d", want.Name, name, *n)
				}
			}
		}
		if len(report.Warnings) < len(honest.Warnings) {
			t.Errorf("%d warnings of %d are left", len(report.Warnings), len(honest.Warnings))
		}
	})
}

func FuzzParseResourceUsage(f *testing.F) {
	seed(f, "usage")
	f.Fuzz(func(t *testing.T, out string) {
		functions, err := parseResourceUsage(out)
		if (err == nil) == (len(functions) == 0) {
			t.Errorf("%d functions, error %v", len(functions), err)
		}
		for _, u := range functions {
			checkUsage(t, u)
		}
	})
}

func FuzzParseDiagnostics(f *testing.F) {
	seed(f, "diag")
	f.Fuzz(func(t *testing.T, log string) {
		for _, d := range output.ParseDiagnostics(log) {
			switch d.Severity {
			case "error", "warning", "remark", "note":
			default:
				t.Errorf("severity %q", d.Severity)
			}
			if d.Line < 0 || d.Column < 0 {
				t.Errorf("negative place in %+v", d)
			}
			if d.File == "" && d.Tool == "" {
				t.Errorf("nobody says %+v", d)
			}
		}
	})
}

func figuresOf(u FunctionUsage) map[string]*int {
	return map[string]*int{
		"registers": u.Registers, "stack": u.Stack, "spill stores": u.SpillStores, "spill loads": u.SpillLoads, "shared memory": u.StaticShared,
	}
}

func checkUsage(t *testing.T, u FunctionUsage) {
	t.Helper()
	if u.Name == "" {
		t.Errorf("an entry without a name: %+v", u)
	}
	for name, n := range figuresOf(u) {
		if n != nil && *n < 0 {
			t.Errorf("%s: %s = %d", u.Name, name, *n)
		}
	}
}
