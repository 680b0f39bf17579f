package testscripts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The bounds of the house; most functions have about ten lines, most files about a hundred.
const (
	maxFunctionLines = 100
	maxUsualLines    = 30 // of nine functions in ten of a package
	maxFileLines     = 300
	maxFolderFiles   = 35
	maxHouseLines    = 71_000
	maxOneWordShare  = 0.25 // of the unexported functions and methods of all packages
)

// commandFolder has operators' commands: its length is that of a list.
const commandFolder = "multicall/juju"

// house is the hand-written code that is shipped, by folder.
type house struct {
	fset    *token.FileSet
	folders map[string][]*ast.File
}

func readHouse(t *testing.T) house {
	t.Helper()
	h := house{token.NewFileSet(), map[string][]*ast.File{}}
	root, err := filepath.Abs("..")
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

// lines counts the lines of a file.
func (h house) lines(file *ast.File) int { return h.fset.File(file.Pos()).LineCount() }

// TestShape holds the house against its bounds, and packages against mutable state and
// init functions: the one init is the thin client's, and the early client has its variables.
func TestShape(t *testing.T) {
	h := readHouse(t)
	total, functions, oneWord := 0, 0, 0
	for folder, files := range h.folders {
		if len(files) > maxFolderFiles && folder != commandFolder {
			t.Errorf("%s has %d files; a room with more than %d has more than one purpose", folder, len(files), maxFolderFiles)
		}
		var lengths []int
		for _, file := range files {
			n := h.lines(file)
			if total += n; n > maxFileLines {
				t.Errorf("%s has %d lines; above %d there is a second idea in it that wants a file of its own", h.fset.File(file.Pos()).Name(), n, maxFileLines)
			}
			lengths = append(lengths, measureFunctions(t, h.fset, folder, file)...)
			all, words := countOneWord(file)
			functions, oneWord = functions+all, oneWord+words
		}
		slices.Sort(lengths)
		if n := len(lengths); n > 0 && lengths[n*9/10] > maxUsualLines {
			t.Errorf("%s: one function in ten has more than %d lines; the bound is %d: take steps out and name them", folder, lengths[n*9/10], maxUsualLines)
		}
		for name, pos := range mutated(files) {
			if "bijou/"+folder == earlyClient {
				continue
			}
			t.Errorf("%s: package variable %s is changed here: state lives in values", h.fset.Position(pos), name)
		}
	}
	if total > maxHouseLines {
		t.Errorf("the house has %d lines of Go; the budget is %d: take out what is worth less than what you add", total, maxHouseLines)
	}
	if share := float64(oneWord) / float64(functions); share > maxOneWordShare {
		t.Errorf("%d of %d unexported functions (%.2f) are named by one word; above %.2f nothing is found by its name: verb and object", oneWord, functions, share, maxOneWordShare)
	}
}

// countOneWord counts a file's unexported functions and methods, and those of them that are
// named by one lower-case word.
func countOneWord(file *ast.File) (functions, oneWord int) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.IsExported() || f.Name.Name == "main" || f.Name.Name == "init" {
			continue
		}
		if functions++; f.Name.Name == strings.ToLower(f.Name.Name) {
			oneWord++
		}
	}
	return functions, oneWord
}

// measureFunctions returns the lengths of a file's functions.
func measureFunctions(t *testing.T, fset *token.FileSet, folder string, file *ast.File) (lengths []int) {
	t.Helper()
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		at := fset.Position(f.Pos())
		lines := fset.Position(f.End()).Line - at.Line + 1
		if lengths = append(lengths, lines); lines > maxFunctionLines {
			t.Errorf("%s: %s has %d lines; the bound is %d", at, f.Name.Name, lines, maxFunctionLines)
		}
		if f.Name.Name == "init" && f.Recv == nil && folder != "hookenv/client" {
			t.Errorf("%s: init() runs in every applet at every start; only hookenv/client has one", at)
		}
	}
	return lengths
}

// TestMutatedFindsChanges shows a mutable package variable to the rule.
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
