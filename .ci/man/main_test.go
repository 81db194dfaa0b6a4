package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every command has a page without a stray request of roff, and every shell its completions.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kernelgate.1", "kernelgate-check.1", "kernelgate-policy-lint.1", "kernelgate.bash", "_kernelgate", "kernelgate.fish"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(text) < 300 {
			t.Errorf("%s has %d bytes (%v)", name, len(text), err)
		}
		if !strings.HasSuffix(name, ".1") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if request, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") && !strings.Contains(".TH .SH .B .BR .TP .nf .fi", request) {
				t.Errorf("%s: %q is a request", name, line)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "kernelgate-gpu-worker.1")); err == nil {
		t.Error("a hidden command has a page")
	}
}
