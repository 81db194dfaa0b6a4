package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table in bot/install/README.md names files that exist.
func TestInstallReadmeNamesFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("bot/install/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	names := regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1)
	if len(names) < 4 {
		t.Errorf("the table has %d rows", len(names))
	}
	for _, row := range names {
		for _, name := range strings.Split(row[1], ", ") {
			if _, err := os.Stat(filepath.Join("bot/install", strings.Trim(name, "`"))); err != nil {
				t.Error(err)
			}
		}
	}
}
