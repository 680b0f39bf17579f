package testscripts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// longestFunction is the house's hard bound, in lines; most are about ten.
const longestFunction = 100

// TestMeasure holds functions against the bound, and packages against mutable
// state and init functions: the one init is the thin client's.
func TestMeasure(t *testing.T) {
	fset := token.NewFileSet()
	packages := map[string][]*ast.File{}
	for _, name := range sources(t) {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(file) {
			packages[filepath.Dir(name)] = append(packages[filepath.Dir(name)], file)
		}
	}
	for dir, files := range packages {
		for _, file := range files {
			measureFunctions(t, fset, dir, file)
		}
		for name, pos := range mutated(files) {
			t.Errorf("%s: package variable %s is changed here: state lives in values", fset.Position(pos), name)
		}
	}
}

func measureFunctions(t *testing.T, fset *token.FileSet, dir string, file *ast.File) {
	t.Helper()
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		at := fset.Position(f.Pos())
		if lines := fset.Position(f.End()).Line - at.Line + 1; lines > longestFunction {
			t.Errorf("%s: %s has %d lines; the bound is %d", at, f.Name.Name, lines, longestFunction)
		}
		if f.Name.Name == "init" && f.Recv == nil && !strings.HasSuffix(dir, "/hookenv/client") {
			t.Errorf("%s: init() runs in every applet at every start; only hookenv/client has one", at)
		}
	}
}

// TestMeasureCanFail shows a mutable package variable to the rule.
func TestMeasureCanFail(t *testing.T) {
	const bad = `package p
		var counter, table, fine, shadowed = 0, map[string]int{}, 1, 2
		func f() { counter++; table["x"] = fine; shadowed := 3; shadowed = 4; _ = shadowed }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", bad, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := mutated([]*ast.File{file})
	if len(found) != 2 || found["counter"] == 0 || found["table"] == 0 {
		t.Errorf("found %v, want counter and table", found)
	}
}

// mutated finds the package variables that some function assigns to, whole or
// in part, or whose address it takes, and where.
func mutated(files []*ast.File) map[string]token.Pos {
	//lint:ignore SA1019 what is asked needs no types, and no package to be loaded with all that it imports
	variables := map[*ast.Object]bool{}
	names := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, n := range spec.(*ast.ValueSpec).Names {
						variables[n.Obj], names[n.Name] = true, true
					}
				}
			}
		}
	}
	found := map[string]token.Pos{}
	note := func(e ast.Expr) {
		// A name of another file of the package is unresolved, and then its own.
		if id := root(e); id != nil && id.Name != "_" && names[id.Name] && (id.Obj == nil || variables[id.Obj]) {
			found[id.Name] = id.Pos()
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					note(e)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			}
			return true
		})
	}
	return found
}

// root is the variable that an assignable expression is a part of.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	}
	return nil
}
