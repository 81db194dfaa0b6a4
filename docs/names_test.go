package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesNameTests checks that every test named in a document exists. SECURITY.md names the test
// of each attack, and other pages say how to run one.
func TestPagesNameTests(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	least := map[string]int{"SECURITY.md": 30, "CONTRIBUTING.md": 3, "docs/bot.md": 3, "docs/reliability.md": 3, "docs/operate/fleet.md": 3}
	for _, p := range docPages(t) {
		if p.file == "CHANGELOG.md" { // it may name tests that no longer exist
			continue
		}
		named := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(p.text, -1)
		if len(named) < least[p.file] {
			t.Errorf("%s names only %d tests", p.file, len(named))
		}
		for _, name := range named {
			if !there[name] {
				t.Errorf("%s: there is no %s", p.file, name)
			}
		}
	}
}

// packages lists the folders that contain Go code, as go list does.
func packages(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			there[filepath.ToSlash(filepath.Dir(path))] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(there, ".")
	return there
}

// treeLine matches one folder in the list of packages, with two spaces per level.
var treeLine = regexp.MustCompile(`^((?:  )*)([a-z0-9_]+)/ +\S`)

// TestArchitectureNamesPackages checks that the list on the architecture page names every package,
// and no folder without packages.
func TestArchitectureNamesPackages(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, found := strings.Cut(string(text), "## The packages")
	if !found {
		t.Fatal("the page has no list of packages")
	}
	there, named := packages(t), map[string]bool{}
	var way []string
	for _, line := range strings.Split(tree, "\n") {
		m := treeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		depth := len(m[1]) / 2
		if depth > len(way) {
			t.Fatalf("%q is too far to the right", line)
		}
		way = append(way[:depth], m[2])
		folder := strings.Join(way, "/")
		if named[folder] {
			t.Errorf("%s/ is named twice", folder)
		}
		named[folder] = true
		holds := there[folder]
		for p := range there {
			holds = holds || strings.HasPrefix(p, folder+"/")
		}
		if !holds {
			t.Errorf("docs/architecture.md names %s/, where there is no package (delete the line)", folder)
		}
	}
	for folder := range there {
		if !named[folder] {
			t.Errorf("docs/architecture.md does not name %s/ (add a line to the list)", folder)
		}
	}
}

// These patterns find the names of files and folders in code spans.
var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	sourcePath = regexp.MustCompile(`^\.?/?(?:bot|docs|gates|kernels|policies|runners|\.github|\.ci)(?:/[A-Za-z0-9_.*-]+)+/?$|^[A-Z]+\.md$|^main[a-z_*]*\.go$|^Makefile$`)
)

// TestPagesNamePaths checks that every path in a code span of a document exists. TestLinksLead
// checks links.
func TestPagesNamePaths(t *testing.T) {
	seen := 0
	for _, p := range docPages(t) {
		shown := map[string]bool{} // by a block whose info string names the file
		for _, b := range p.blocks {
			_, file, _ := strings.Cut(b.info, " ")
			shown[file] = true
		}
		for _, m := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
			for _, word := range strings.Fields(m[1]) { // a code span may be a command
				if !sourcePath.MatchString(word) || strings.Contains(word, "NAME") || shown[word] {
					continue
				}
				seen++
				if found, err := filepath.Glob(filepath.FromSlash(word)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there", p.file, word)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d paths were found", seen)
	}
}

// TestWhereToChange checks that a typical change stays within two packages.
func TestWhereToChange(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| what | where |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows, there := strings.Split(table, "\n"), packages(t)
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		spans := codeSpan.FindAllStringSubmatch(strings.Split(row, "|")[2], -1)
		if len(spans) < 1 || len(spans) > 2 {
			t.Errorf("%d packages: %s", len(spans), row)
		}
		for _, m := range spans {
			if !there[m[1]] && m[1] != "main.go" {
				t.Errorf("%s is no package: %s", m[1], row)
			}
		}
	}
}

// TestArchitectureNamesStores checks that the architecture page describes every stream and bucket
// of the journal, every table of the ledger and every event of a change.
func TestArchitectureNamesStores(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		where  string
		within *regexp.Regexp // the part of the code that declares them
		name   *regexp.Regexp
		least  int
	}{
		{"bot/store/journal", regexp.MustCompile(`(?ms)^func \(j \*Journal\) declare\(.*?^}`), regexp.MustCompile(`"([A-Z_]{4,})"`), 7},
		{"bot/store/ledger", regexp.MustCompile("(?s)const schema = `.*?`"), regexp.MustCompile(`CREATE TABLE (\w+)`), 7},
		{"bot/change", regexp.MustCompile(`(?m)^func \(\w+\) kind\(\) string.*$`), regexp.MustCompile(`"(\w+)"`), 8},
	} {
		files, err := filepath.Glob(s.where + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		declared := 0
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range s.within.FindAllString(string(source), -1) {
				for _, m := range s.name.FindAllStringSubmatch(part, -1) {
					declared++
					if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(page) {
						t.Errorf("%s has %s, which the page does not tell of", s.where, m[1])
					}
				}
			}
		}
		if declared < s.least {
			t.Errorf("%s: only %d were found (has the code that declares them moved?)", s.where, declared)
		}
	}
}
