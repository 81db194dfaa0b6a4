package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declarations holds the identifiers of the project: those of each package by its name, and all of them together.
type declarations struct {
	byPackage map[string]map[string]bool
	all       map[string]bool
}

// parseAll parses every Go file of the repository.
func parseAll(t *testing.T) (map[string]*ast.File, *token.FileSet) {
	t.Helper()
	files, fset := map[string]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		files[path], err = parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		return err
	})
	if err != nil || len(files) < 500 {
		t.Fatalf("only %d Go files: %v", len(files), err)
	}
	return files, fset
}

func declarationsOf(files map[string]*ast.File) declarations {
	d := declarations{map[string]map[string]bool{}, map[string]bool{}}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name.Name, "_test")
		if d.byPackage[name] == nil {
			d.byPackage[name] = map[string]bool{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				d.byPackage[name][id.Name], d.all[id.Name] = true, true
			}
			return true
		})
	}
	return d
}

var (
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]+)\.([A-Z]\w*)\b`)
	docLink   = regexp.MustCompile(`\[\*?([A-Z]\w*)(?:\.(\w+))?\]`)
	camel     = regexp.MustCompile(`\b(?:[a-z]+[a-z0-9]*|[A-Z][a-z0-9]+)[A-Z]\w*\b`)
)

// foreign matches names that other projects and the metric system have chosen.
var foreign = regexp.MustCompile(`^(?:[KMG]iB|kB|NaNs|PyTorch|FlashInfer|KernelBench|TileLang|CuTe|OpenMP|OpenTelemetry|JavaScript|GraphQL|PromQL|SimpleJson|AddressSanitizer|CycloneDX|gRPC|psABIs` +
	`|fromJSON|viewBox|textContent|idirafterFOLDER|ccJpNamM|cuMemFree_v2|nvml\w+|ActionCommand(?:Manager)?|ExportTraceServiceRequest)$`)

// A comment that names what no longer exists sends its reader on a search that finds nothing.
func TestCommentsNameWhatExists(t *testing.T) {
	files, fset := parseAll(t)
	names := declarationsOf(files)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		own := names.byPackage[strings.TrimSuffix(f.Name.Name, "_test")]
		for _, group := range f.Comments {
			text := group.Text()
			missing := func(word string) { t.Errorf("%s: %s does not exist", fset.Position(group.Pos()), word) }
			for _, m := range qualified.FindAllStringSubmatch(text, -1) {
				if known := names.byPackage[m[1]]; known != nil && !known[m[2]] {
					missing(m[0])
				}
			}
			for _, m := range docLink.FindAllStringSubmatch(text, -1) {
				if !own[m[1]] || m[2] != "" && !own[m[2]] {
					missing(m[0])
				}
			}
			for _, word := range camel.FindAllString(text, -1) {
				if !names.all[word] && !foreign.MatchString(word) {
					missing(word)
				}
			}
		}
	}
}

// A document that names a function or a type names one that exists.
func TestPagesNameDeclarations(t *testing.T) {
	files, _ := parseAll(t)
	names, seen := declarationsOf(files), 0
	for _, p := range docPages(t) {
		if p.file == "CHANGELOG.md" { // it may name what no longer exists
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
			for _, m := range qualified.FindAllStringSubmatch(span[1], -1) {
				known := names.byPackage[m[1]]
				if known == nil {
					continue
				}
				seen++
				if !known[m[2]] {
					t.Errorf("%s: %s does not exist", p.file, m[0])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d names were found", seen)
	}
}
