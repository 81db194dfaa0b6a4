package docs

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestMakeHelp checks that make help lists every target for users, with a description.
func TestMakeHelp(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command("make", "--no-print-directory", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(help)), "\n") {
		name, what, _ := strings.Cut(strings.TrimPrefix(line, "make "), " ")
		if said[name] = true; len(strings.Fields(what)) < 3 {
			t.Errorf("make help says only %q", line)
		}
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(m[1]) {
			if !strings.HasPrefix(name, "$(") { // scripts that fetch compilers
				targets[name] = true
			}
		}
	}
	for name := range targets {
		if !said[name] {
			t.Errorf("make help does not say what %s does (write ## and a sentence behind its rule)", name)
		}
	}
	for name := range said {
		if !targets[name] {
			t.Errorf("make help names %s, which is not .PHONY", name)
		}
	}
}
