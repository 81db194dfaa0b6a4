package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one small fault of a package.
type mutant struct {
	ID       int    `json:"id"`
	Package  string `json:"package"`
	File     string `json:"file"` // below the package
	Line     int    `json:"line"`
	Old      string `json:"old"`
	New      string `json:"new"`
	KilledBy string `json:"killed_by,omitempty"` // the tests that noticed; empty where none did

	file  int // of source.files
	edits []edit
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s/%s:%d: - %s + %s", m.Package, m.File, m.Line, m.Old, m.New)
}

// A finder walks one file and notes its mutants.
type finder struct {
	*source
	file  int
	next  int        // ID of the next mutant
	stack []ast.Node // from the file to the node that is looked at
	found []*mutant
}

// mutants is every mutant of the package that may compile, numbered from first.
func (s *source) mutants(first int) []*mutant {
	var all []*mutant
	for i, file := range s.files {
		if len(s.target.files) > 0 && !slices.Contains(s.target.files, filepath.Base(s.names[i])) {
			continue
		}
		f := &finder{source: s, file: i, next: first + len(all)}
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				f.stack = f.stack[:len(f.stack)-1]
				return true
			}
			if isText(n) {
				return false
			}
			f.visit(n)
			f.stack = append(f.stack, n)
			return true
		})
		all = append(all, f.found...)
	}
	return all
}

func (f *finder) visit(n ast.Node) {
	f.statement(n)
	switch n := n.(type) {
	case *ast.IfStmt:
		f.expression(n.Cond, "bool", "!("+f.text(n.Cond)+")")
	case *ast.ForStmt:
		if n.Cond != nil {
			f.expression(n.Cond, "bool", "!("+f.text(n.Cond)+")")
		}
	case *ast.CaseClause:
		f.deleteCase(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			f.constant(n)
		}
	case *ast.Ident:
		if c, ok := f.info.Uses[n].(*types.Const); ok && c.Pkg() == f.types && c.Parent() != types.Universe {
			f.constant(n)
		}
	}
}

// operators is what each operator is replaced by: comparisons are moved by one and negated, the others turned around.
var operators = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
}

func (f *finder) binary(n *ast.BinaryExpr) {
	t := f.info.Types[n]
	if t.Value != nil {
		return // of constants, the figures are mutated
	}
	at := f.fset.Position(n.OpPos).Offset - f.fset.Position(n.Pos()).Offset
	text := f.text(n)
	for _, op := range operators[n.Op] {
		f.expression(n, f.spell(t.Type), text[:at]+op.String()+text[at+len(n.Op.String()):])
	}
}

// constant adds and subtracts one. A constant can only be replaced together with the whole constant expression that it is part of.
func (f *finder) constant(n ast.Expr) {
	var whole ast.Expr = n
	rest := f.stack
	for len(rest) > 0 {
		parent, ok := rest[len(rest)-1].(ast.Expr)
		if !ok || f.info.Types[parent].Value == nil {
			break
		}
		whole, rest = parent, rest[:len(rest)-1]
	}
	if len(rest) == 0 {
		return
	}
	switch parent := rest[len(rest)-1].(type) {
	case *ast.ValueSpec, *ast.ArrayType, *ast.CaseClause:
		return // must stay constant, or is a word of an enumeration
	case *ast.ReturnStmt:
		if f.fails(parent) {
			return
		}
	case *ast.KeyValueExpr:
		if parent.Key == whole {
			return
		}
	case *ast.BinaryExpr:
		if (parent.Op == token.EQL || parent.Op == token.NEQ) && f.text(whole) == "0" {
			return // asks whether something is set; the operator is mutated
		}
	case *ast.CallExpr:
		if ident, ok := parent.Fun.(*ast.Ident); ok && ident.Name == "make" && len(parent.Args) == 3 && parent.Args[2] == whole {
			return // a capacity
		}
	}
	t, ok := f.info.Types[whole].Type.(*types.Basic)
	if named, isNamed := f.info.Types[whole].Type.(*types.Named); isNamed && named.Obj().Pkg() != f.types {
		t, ok = named.Underlying().(*types.Basic) // such as time.Duration; our own are mostly enumerations
	}
	if !ok || t.Info()&types.IsNumeric == 0 {
		return
	}
	text := f.text(whole)
	at := f.fset.Position(n.Pos()).Offset - f.fset.Position(whole.Pos()).Offset
	old := f.text(n)
	for _, sign := range []string{"+", "-"} {
		f.expression(whole, f.spell(f.info.Types[whole].Type), text[:at]+"("+old+sign+"1)"+text[at+len(old):])
	}
}

// expression notes a mutant that gives another value to an expression.
func (f *finder) expression(n ast.Expr, typ, mutated string) {
	if typ == "" {
		return
	}
	f.add(n, f.text(n), mutated, func(id int) (before, after string) {
		return fmt.Sprintf("func() %s { if mutantIsOn(%d) { return %s }; return ", typ, id, mutated), " }()"
	})
}

// spell is how the file writes a type; empty where it cannot.
func (f *finder) spell(t types.Type) string {
	if b, ok := t.(*types.Basic); ok && b.Kind() == types.UntypedBool {
		return "bool"
	} else if ok && (b.Info()&types.IsUntyped != 0 || b.Info()&types.IsString != 0) {
		return ""
	}
	known := true
	text := types.TypeString(t, func(p *types.Package) string {
		if p == f.types {
			return ""
		}
		for _, spec := range f.files[f.file].Imports {
			if strings.Trim(spec.Path.Value, `"`) == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		known = false
		return p.Name()
	})
	if !known {
		return ""
	}
	return text
}

func (f *finder) text(n ast.Node) string {
	return string(f.texts[f.file][f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// add notes a mutant of a node, from what is written before and after it.
func (f *finder) add(n ast.Node, old, mutated string, wrap func(id int) (before, after string)) {
	from, to := f.fset.Position(n.Pos()), f.fset.Position(n.End())
	f.addAt(from.Line, from.Offset, to.Offset, old, mutated, wrap)
}

func (f *finder) addAt(line, from, to int, old, mutated string, wrap func(id int) (before, after string)) {
	m := &mutant{ID: f.next, Package: f.pkg, File: filepath.Base(f.names[f.file]), Line: line, Old: oneLine(old), New: oneLine(mutated), file: f.file}
	before, after := wrap(m.ID)
	m.edits = append(m.edits, edit{at: from, other: to, id: m.ID, text: before})
	if after != "" {
		m.edits = append(m.edits, edit{at: to, other: from, id: m.ID, text: after, closes: true})
	}
	f.next++
	f.found = append(f.found, m)
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:99]) + "…"
	}
	return text
}
