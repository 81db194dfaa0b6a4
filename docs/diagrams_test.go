package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports returns the packages of this module that each package imports, without tests. The program
// itself is "main.go", as in the documents.
func imports(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		from := filepath.ToSlash(filepath.Dir(path))
		if from == "." {
			from = "main.go"
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if all[from] == nil {
			all[from] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(name, "github.com/kernelgate/kernelgate/"); ours {
				all[from][to] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An arrow connects the labels of two nodes in a flowchart.
type arrow struct{ from, to string }

var (
	node     = regexp.MustCompile(`(\w+)\[\(?"([^"]+)"\)?\]`)
	solid    = regexp.MustCompile(`^ *(\w+)(?:\[[^\]]*\])? --(?: "[^"]*" --)?> (\w+)`)
	dashed   = regexp.MustCompile(`^ *(\w+) -\. .* \.-> (\w+)`)
	drawings = regexp.MustCompile("(?s)```mermaid\nflowchart.*?```")
)

// flowchart parses the nodes and arrows of a Mermaid flowchart.
func flowchart(t *testing.T, text string) (nodes map[string]bool, calls, crossings []arrow) {
	t.Helper()
	label := map[string]string{}
	nodes = map[string]bool{}
	for _, m := range node.FindAllStringSubmatch(text, -1) {
		label[m[1]] = m[2]
		nodes[m[2]] = true
	}
	for _, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, ">") {
			continue
		}
		if m := solid.FindStringSubmatch(line); m != nil {
			calls = append(calls, arrow{label[m[1]], label[m[2]]})
		} else if m := dashed.FindStringSubmatch(line); m != nil {
			crossings = append(crossings, arrow{label[m[1]], label[m[2]]})
		} else {
			t.Errorf("%q is no arrow that this test can read", line)
		}
	}
	return nodes, calls, crossings
}

// TestDiagramsShowImports compares the diagrams of the architecture page with the imports. In the
// first, a solid arrow is an import and a dashed one is not. The second shows every import between
// its folders, as an arrow or as a path of arrows.
func TestDiagramsShowImports(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := drawings.FindAllString(string(text), -1)
	if len(drawn) != 2 {
		t.Fatalf("the page has %d flowcharts, want 2", len(drawn))
	}
	imported := imports(t)

	nodes, calls, crossings := flowchart(t, drawn[0])
	if len(calls) < 15 || len(crossings) < 5 {
		t.Errorf("the first diagram has %d solid and %d dashed arrows", len(calls), len(crossings))
	}
	for name := range nodes {
		if imported[name] == nil {
			t.Errorf("there is no package %s", name)
		}
	}
	for _, a := range calls {
		if !imported[a.from][a.to] {
			t.Errorf("%s does not import %s (draw what calls what, or a dashed arrow)", a.from, a.to)
		}
	}
	for _, a := range crossings {
		if imported[a.from][a.to] {
			t.Errorf("%s imports %s: draw a solid arrow", a.from, a.to)
		}
	}

	folders, arrows, _ := flowchart(t, drawn[1])
	folderOf := func(name string) string {
		for name != "." && !folders[name] {
			name = filepath.ToSlash(filepath.Dir(name))
		}
		return name
	}
	real := map[arrow]bool{}
	for from, all := range imported {
		for to := range all {
			if a := (arrow{folderOf(from), folderOf(to)}); a.from != a.to {
				real[a] = true
			}
		}
	}
	leads := map[string][]string{}
	for _, a := range arrows {
		leads[a.from] = append(leads[a.from], a.to)
		if !real[a] {
			t.Errorf("the second diagram has an arrow from %s to %s, and no package there imports one", a.from, a.to)
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(real), func(a, b arrow) int { return strings.Compare(a.from+a.to, b.from+b.to) }) {
		if !reaches(leads, a.from, a.to, map[string]bool{}) {
			t.Errorf("the second diagram has no way from %s to %s, and a package there imports one", a.from, a.to)
		}
	}
}

// reaches reports whether a path of arrows leads from one node to another.
func reaches(leads map[string][]string, from, to string, been map[string]bool) bool {
	if from == to {
		return true
	}
	been[from] = true
	return slices.ContainsFunc(leads[from], func(next string) bool { return !been[next] && reaches(leads, next, to, been) })
}
