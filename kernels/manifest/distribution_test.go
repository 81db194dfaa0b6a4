package manifest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/distribution"
)

// The reference has every distribution in one table, and every other draw in another, in their order, with what each
// draws and is for.
func TestReferenceHasTheDistributions(t *testing.T) {
	text, err := os.ReadFile("../REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\S[^|]* \\| \\S[^|]* \\|$")
	for title, want := range map[string][]distribution.Kind{"distribution": distribution.All(), "draw": orders} {
		_, table, _ := strings.Cut(string(text), "| "+title+" | what it draws | what it is for |\n| --- | --- | --- |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		var got []distribution.Kind
		for _, m := range row.FindAllStringSubmatch(table, -1) {
			got = append(got, distribution.Kind(m[1]))
		}
		if !slices.Equal(got, want) || len(strings.Split(table, "\n")) != len(want) {
			t.Errorf("REFERENCE.md has a table of %v, want %v, in\n%s", got, want, table)
		}
	}
}
