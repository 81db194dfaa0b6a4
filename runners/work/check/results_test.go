package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

func measured(t *testing.T) runners.Measured {
	t.Helper()
	artifact := filepath.Join(t.TempDir(), "candidate.cubin")
	if err := os.WriteFile(artifact, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	return runners.Measured{
		Evidence: &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: "scale"},
		BuildLog: "warning: none\n", Artifacts: []string{artifact},
	}
}

var passed = &gates.Verdict{Schema: gates.VerdictSchema, Kernel: "scale", Outcome: gates.Pass}

func TestWriteResults(t *testing.T) {
	dir, m := t.TempDir(), measured(t)
	if err := WriteResults(dir, m, "version: 1\n", passed); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"build.log", "candidate.cubin", "evidence.json", "policy.yaml", "report.md", "verdict.json"}; !slices.Equal(names, want) {
		t.Errorf("wrote %v, want %v", names, want)
	}
	if e, err := gates.ParseEvidence("evidence.json", []byte(read("evidence.json"))); err != nil || e.Kernel != "scale" {
		t.Errorf("the evidence is of %+v (%v)", e, err)
	}
	var v gates.Verdict
	if err := json.Unmarshal([]byte(read("verdict.json")), &v); err != nil || v.Outcome != gates.Pass {
		t.Errorf("the verdict is %s (%v)", v.Outcome, err)
	}
	for name, want := range map[string]string{
		"report.md": report.Markdown(passed, report.Options{}), "build.log": "warning: none\n", "policy.yaml": "version: 1\n", "candidate.cubin": "code",
	} {
		if got := read(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

func TestWriteResultsFails(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(m *runners.Measured, dir *string)
		want  string
	}{
		"no folder":   {func(_ *runners.Measured, dir *string) { *dir = filepath.Join(*dir, "none") }, "writing results: "},
		"no artifact": {func(m *runners.Measured, _ *string) { m.Artifacts = []string{filepath.Join("none", "lost.ptx")} }, "keeping lost.ptx: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir, m := t.TempDir(), measured(t)
			test.spoil(&m, &dir)
			if err := WriteResults(dir, m, "version: 1\n", passed); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s…", err, test.want)
			}
		})
	}
}
