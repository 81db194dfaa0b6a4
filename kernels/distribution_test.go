package kernels

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference has every distribution in one table, and every other draw in another, in their order, with what each
// draws and is for.
func TestReferenceHasTheDistributions(t *testing.T) {
	text, err := os.ReadFile("REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\S[^|]* \\| \\S[^|]* \\|$")
	for title, want := range map[string][]Distribution{"distribution": Distributions(), "draw": orders} {
		_, table, _ := strings.Cut(string(text), "| "+title+" | what it draws | what it is for |\n| --- | --- | --- |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		var got []Distribution
		for _, m := range row.FindAllStringSubmatch(table, -1) {
			got = append(got, Distribution(m[1]))
		}
		if !slices.Equal(got, want) || len(strings.Split(table, "\n")) != len(want) {
			t.Errorf("REFERENCE.md has a table of %v, want %v, in\n%s", got, want, table)
		}
	}
}
