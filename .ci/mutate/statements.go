package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// statement notes the mutants of a statement that stands in a block: it is left out, or returns something else.
func (f *finder) statement(n ast.Node) {
	if len(f.stack) == 0 {
		return
	}
	switch f.stack[len(f.stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return
	}
	switch n := n.(type) {
	case *ast.ReturnStmt:
		f.returned(n)
		return
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); !ok || isText(call) {
			return
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE || f.assignsText(n) {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
	case *ast.BranchStmt:
		if n.Tok != token.CONTINUE && n.Tok != token.BREAK {
			return
		}
	default:
		return
	}
	f.add(n, f.text(n), "(removed)", func(id int) (before, after string) {
		return fmt.Sprintf("if !mutantIsOn(%d) { ", id), " }"
	})
}

// returned turns each returned bool around and replaces any other result by its zero value.
func (f *finder) returned(n *ast.ReturnStmt) {
	results := f.results()
	if results == nil || results.Len() != len(n.Results) {
		return
	}
	for i, x := range n.Results {
		if isError := isError(results.At(i).Type()); !isError && (isText(x) || f.fails(n) && isText(n.Results[len(n.Results)-1])) {
			continue
		}
		zero := f.zero(results.At(i).Type(), x)
		if zero == "" || zero == f.text(x) {
			continue
		}
		var parts []string
		for k, other := range n.Results {
			if k == i {
				parts = append(parts, zero)
			} else {
				parts = append(parts, f.text(other))
			}
		}
		mutated := "return " + strings.Join(parts, ", ")
		f.add(n, f.text(n), mutated, func(id int) (before, after string) {
			return fmt.Sprintf("if mutantIsOn(%d) { %s }; ", id, mutated), ""
		})
	}
}

// fails tells whether a statement returns an error. Nobody looks at the other results then.
func (f *finder) fails(n *ast.ReturnStmt) bool {
	results, last := f.results(), len(n.Results)-1
	return results != nil && results.Len() == last+1 && isError(results.At(last).Type()) && f.text(n.Results[last]) != "nil"
}

// results is what the function around the statement returns.
func (f *finder) results() *types.Tuple {
	for i := len(f.stack) - 1; i >= 0; i-- {
		switch n := f.stack[i].(type) {
		case *ast.FuncLit:
			return f.info.Types[n].Type.(*types.Signature).Results()
		case *ast.FuncDecl:
			return f.info.Defs[n.Name].Type().(*types.Signature).Results()
		}
	}
	return nil
}

// zero is what is returned instead of x; empty where there is nothing to replace.
func (f *finder) zero(t types.Type, x ast.Expr) string {
	if lit, ok := x.(*ast.CompositeLit); ok && len(lit.Elts) == 0 {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return "!(" + f.text(x) + ")"
		case u.Info()&types.IsNumeric != 0:
			return "0"
		case t != types.Typ[types.String] && u.Info()&types.IsString != 0:
			return `""` // a word that somebody compares; plain strings are text
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Signature, *types.Interface, *types.Chan:
		if _, ok := t.(*types.TypeParam); !ok {
			return "nil"
		}
	case *types.Struct:
		if name := f.spell(t); name != "" {
			return "*new(" + name + ")"
		}
	}
	return ""
}

func (f *finder) deleteCase(n *ast.CaseClause) {
	if len(n.Body) == 0 {
		return
	}
	first, end := n.Body[0], f.fset.Position(n.End()).Offset
	at := f.fset.Position(n.Colon).Offset + 1
	label := "default:"
	if n.List != nil {
		label = f.text(n)[:f.fset.Position(n.Colon).Offset+1-f.fset.Position(n.Pos()).Offset]
	}
	f.addAt(f.fset.Position(n.Pos()).Line, at, end, label+" "+f.text(first), label+" (removed)", func(id int) (before, after string) {
		return fmt.Sprintf(" if mutantIsOn(%d) { break };", id), ""
	})
}

// textFields hold what people read.
var textFields = regexp.MustCompile(`^(Text|ToPass|Summary|Details?|[nN]otes?|Message|Title|toPass|texts?|parts|limits|Limit)$`)

func (f *finder) assignsText(n *ast.AssignStmt) bool {
	for _, x := range n.Lhs {
		name := ""
		switch x := x.(type) {
		case *ast.Ident:
			name = x.Name
		case *ast.SelectorExpr:
			name = x.Sel.Name
		}
		if !textFields.MatchString(name) {
			return false
		}
	}
	return true
}

// isText tells whether a node only makes text: messages, formats, logs, String and Error methods.
func isText(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		selector, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := selector.X.(*ast.Ident)
		if !ok {
			return false
		}
		switch from.Name {
		case "fmt", "slog", "log":
			return true
		}
		return from.Name == "errors" && selector.Sel.Name == "New" || from.Name == "strconv" && strings.HasPrefix(selector.Sel.Name, "Format")
	case *ast.FuncDecl:
		return n.Recv != nil && (n.Name.Name == "String" || n.Name.Name == "Error")
	}
	return false
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
