package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A newcomer's path from a Triton package to the first verdict works without a GPU, and says how long each step takes.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	if err := missing(t, "layernorm-triton"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	gate, err := exec.LookPath("kernelgate")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../runners/work/scaffold/newcomer.sh")
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, t.TempDir()}
	out, status := r.run(script, gate, "new/package")
	steps := regexp.MustCompile(`(?m)^ *[0-9]+\.[0-9] s  (.*)$`).FindAllStringSubmatch(out, -1)
	if status != 0 || len(steps) != 7 || !strings.HasPrefix(steps[6][1], "in all: PASS · layer_norm_kernel: It compiles") {
		t.Fatalf("status %d:\n%s", status, out)
	}
	for i, want := range []string{"init: ", "the author answers the guesses", "policy lint", "the first commit", "a change on a branch", "check --static: "} {
		if !strings.HasPrefix(steps[i][1], want) {
			t.Errorf("step %d is %q, want %q", i, steps[i][1], want)
		}
	}
	// It stops at the first step that fails, and shows why.
	if out, status := r.run(script, "/bin/false", "other"); status != 3 || !strings.Contains(out, " s  init: ") || strings.Contains(out, "guesses") {
		t.Errorf("a step that fails: status %d:\n%s", status, out)
	}
	if out, status := r.run(script, gate, "new/package"); status != 2 || !strings.Contains(out, "new/package exists already (name a new folder)") {
		t.Errorf("a second time: status %d:\n%s", status, out)
	}
	for _, args := range [][]string{{}, {gate}, {"--limit", "soon", gate, "x"}, {"--fast", gate, "x"}} {
		if out, status := r.run(script, args...); status != 2 || !strings.HasPrefix(out, "usage: newcomer.sh ") {
			t.Errorf("%q: status %d:\n%s", args, status, out)
		}
	}
}
