package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// house is the hand-written code of the product, by directory.
type house struct {
	fset    *token.FileSet
	folders map[string][]*ast.File
}

func readHouse(t *testing.T) house {
	t.Helper()
	h := house{token.NewFileSet(), map[string][]*ast.File{}}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources(t) {
		file, err := parser.ParseFile(h.fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(file) && folder != "testscripts" && !strings.HasPrefix(folder, "testscripts/") {
			h.folders[folder] = append(h.folders[folder], file)
		}
	}
	return h
}

// TestShape checks two laws that need more than one file. Packages have no state that changes, because state
// that two daemons of one process or two tests share by accident is hard to find. Only the thin client has an
// init function, because an init function in another package would run at each start of a hook tool too. The
// early client runs before Go's runtime and is exempt: it has variables.
func TestShape(t *testing.T) {
	h := readHouse(t)
	if len(h.folders) < 50 {
		t.Fatalf("only %d packages were read", len(h.folders))
	}

	for folder, files := range h.folders {
		for _, file := range files {
			for _, at := range initFunctions(h.fset, file) {
				if folder != "hookenv/client" {
					t.Errorf("%s: init() runs in every applet at every start; only hookenv/client has one", at)
				}
			}
		}
		if "bijou/"+folder == earlyClient {
			continue
		}
		for name, pos := range mutated(files) {
			t.Errorf("%s: package variable %s is changed here: state lives in values", h.fset.Position(pos), name)
		}
	}
}

// initFunctions returns the positions of a file's init functions.
func initFunctions(fset *token.FileSet, file *ast.File) (found []token.Position) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Name.Name == "init" && f.Recv == nil {
			found = append(found, fset.Position(f.Pos()))
		}
	}
	return found
}

// TestMutatedFindsChanges checks that the rule finds a planted mutable package variable.
func TestMutatedFindsChanges(t *testing.T) {
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

// mutated returns the package variables that a function changes, in full or in part, or whose address it
// takes. It maps each name to the position of the last such use.
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
		// A name from another file of the package is unresolved, and then refers to that file's
		// variable.
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

// root returns the variable that an assignable expression is a part of.
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
