package kernels

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The reference has every distribution in one table, with what each is for.
func TestReferenceHasTheDistributions(t *testing.T) {
	text, err := os.ReadFile("REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| distribution | what it draws | what it is for |\n| --- | --- | --- |\n"
	for _, u := range distributionUses() {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", u.Distribution, u.Draws, u.For)
	}
	if !strings.Contains(string(text), table) {
		t.Errorf("REFERENCE.md does not have this table:\n%s", table)
	}
	table = "| draw | what it draws | what it is for |\n| --- | --- | --- |\n"
	for _, u := range drawUses() {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", u.Draw, u.Draws, u.For)
	}
	if !strings.Contains(string(text), table) {
		t.Errorf("REFERENCE.md does not have this table:\n%s", table)
	}
}
