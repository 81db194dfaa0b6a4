package toolchain

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestGolden parses every recorded log and compares the result with the .json beside it.
func TestGolden(t *testing.T) {
	parsers := map[string]func(string) (any, error){
		"ptxas": func(s string) (any, error) { return readPTXAS(s) },
		"usage": func(s string) (any, error) { return parseResourceUsage(s) },
		"diag":  func(s string) (any, error) { return output.ParseDiagnostics(s), nil },
	}
	for kind, parse := range parsers {
		logs := recorded(t, kind)
		if len(logs) == 0 {
			t.Errorf("no %s logs in testdata/logs; run testdata/record.sh", kind)
		}
		for path, log := range logs {
			t.Run(filepath.Base(path), func(t *testing.T) {
				got, err := parse(log)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, strings.TrimSuffix(path, ".log")+".json", got)
			})
		}
	}
}

// recorded returns the logs of one kind by their path, the handmade among them.
func recorded(tb testing.TB, kind string) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/logs/*." + kind + "*.log")
	if err != nil {
		tb.Fatal(err)
	}
	logs := map[string]string{}
	for _, path := range paths {
		log, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		logs[path] = string(log)
	}
	return logs
}

func golden(t *testing.T, path string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with go test -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, go test -update\n%s", path, diff)
	}
}
