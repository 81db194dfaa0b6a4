package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no golden file (go test ./gates/report -update writes it): %v", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts):\n%s", path, diff)
	}
}

func TestGolden(t *testing.T) {
	for name, v := range verdicts() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".md", Markdown(v, Options{}))
			golden(t, name+".txt", Terminal(v, TerminalOptions{Width: 120}))
		})
	}
	for name, opt := range map[string]TerminalOptions{
		"pass-80.txt":     {Width: 80},
		"pass-40.txt":     {Width: 40, Details: true},
		"pass-160.txt":    {Width: 160, Details: true},
		"pass-colour.txt": {Width: 120, Colour: true},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, Terminal(passing(), opt)) })
	}
	t.Run("short", func(t *testing.T) { golden(t, "pass-short.md", Markdown(passing(), Options{MaxBytes: 2600})) })
}
