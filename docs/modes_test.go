package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modes are the places that may name a mode: the manifest, the backends, the table of modes, and
// the drafts of manifests.
var modes = []string{"kernels/manifest/", "runners/backend/cpu/", "runners/backend/cuda/", "runners/backend/command/", "runners/modes.go", "runners/work/scaffold/"}

// TestNobodyNamesAMode checks that code asks what a backend can do (runners.ModeOf, Evidence.Can) and
// does not compare modes: a new backend is then one row and one package.
func TestNobodyNamesAMode(t *testing.T) {
	read, found := 0, map[string]int{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		path := filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		read++
		allowed := slices.IndexFunc(modes, func(place string) bool { return strings.HasPrefix(path, place) })
		for _, n := range modeNames(file) {
			if allowed < 0 {
				t.Errorf("%s names a mode: ask runners.ModeOf or Evidence.Can", files.Position(n.Pos()))
				continue
			}
			found[modes[allowed]]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range modes {
		if found[place] == 0 {
			t.Errorf("%s names no mode: take it off the list", place)
		}
	}
	if read < 500 {
		t.Errorf("%d files were read, too few to be the whole tree", read)
	}
}

// TestModeNames checks that each way to name a mode is found.
func TestModeNames(t *testing.T) {
	for text, want := range map[string]int{
		`m.Mode == manifest.ModeCPU`:                  1,
		`e.Mode != "cuda"`:                            1,
		`"cuda" == string(e.Mode)`:                    1,
		`T{Mode: "cuda"}`:                             1,
		`func() { switch m.Mode { case "a", "b": } }`: 2,
		`e.Mode == string(job.Manifest.Mode)`:         0,
		`m.Mode == ""`:                                0,
		`"a " + string(m.Mode)`:                       0,
		`os.ModePerm`:                                 0,
		`T{Mode: mode}`:                               0,
		`func() { switch m.Kind { case "a", "b": } }`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar _ = "+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(modeNames(file)); n != want {
			t.Errorf("%s: %d names were found", text, n)
		}
	}
}

// modeNames returns where a file names a mode: by its constant, or as a text that a field Mode is compared with or set to.
func modeNames(file *ast.File) []ast.Node {
	var all []ast.Node
	text := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return false
		}
		s, err := strconv.Unquote(l.Value)
		return err == nil && s != ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "manifest" && slices.Contains([]string{"ModeCPU", "ModeCUDA", "ModeCommand"}, n.Sel.Name) {
				all = append(all, n)
			}
		case *ast.Ident: // within the package manifest
			if file.Name.Name == "manifest" && slices.Contains([]string{"ModeCPU", "ModeCUDA", "ModeCommand"}, n.Name) {
				all = append(all, n)
			}
		case *ast.BinaryExpr:
			if compares := n.Op == token.EQL || n.Op == token.NEQ; compares && (text(n.X) && isMode(n.Y) || text(n.Y) && isMode(n.X)) {
				all = append(all, n)
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Mode" && text(n.Value) {
				all = append(all, n)
			}
		case *ast.SwitchStmt:
			if n.Tag == nil || !isMode(n.Tag) {
				break
			}
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if text(e) {
						all = append(all, e)
					}
				}
			}
		}
		return true
	})
	return all
}

// isMode reports whether an expression is a field Mode, converted or not.
func isMode(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		e = call.Args[0]
	}
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Mode"
}
