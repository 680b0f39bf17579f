package testscripts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// longestFunction is the house's hard bound, in lines; most are about ten.
const longestFunction = 100

// TestMeasure holds functions against the bound, and packages against mutable
// state and init functions: the one init is the thin client's.
func TestMeasure(t *testing.T) {
	fset := token.NewFileSet()
	for _, name := range sources(t) {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(file) {
			continue
		}
		for _, decl := range file.Decls {
			measure(t, fset, name, decl)
		}
	}
}

func measure(t *testing.T, fset *token.FileSet, name string, decl ast.Decl) {
	t.Helper()
	switch d := decl.(type) {
	case *ast.FuncDecl:
		lines := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
		if lines > longestFunction {
			t.Errorf("%s: %s has %d lines; the bound is %d", fset.Position(d.Pos()), d.Name.Name, lines, longestFunction)
		}
		if d.Name.Name == "init" && d.Recv == nil && !strings.Contains(name, "/hookenv/client/") {
			t.Errorf("%s: init() runs in every applet at every start; only hookenv/client has one", fset.Position(d.Pos()))
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			return
		}
		for _, spec := range d.Specs {
			if v := spec.(*ast.ValueSpec); !constant(d, v) {
				t.Errorf("%s: package variable %s: state lives in values, tables in functions", fset.Position(v.Pos()), v.Names[0].Name)
			}
		}
	}
}

// constant tells if a package variable cannot be state: blank, embedded, a
// sentinel error, or a compiled expression.
func constant(d *ast.GenDecl, v *ast.ValueSpec) bool {
	if v.Names[0].Name == "_" || embedded(d.Doc) || embedded(v.Doc) {
		return true
	}
	for _, value := range v.Values {
		call, ok := value.(*ast.CallExpr)
		if !ok {
			return false
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := fun.X.(*ast.Ident)
		if !ok {
			return false
		}
		switch from.Name + "." + fun.Sel.Name {
		case "errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer":
		default:
			return false
		}
	}
	return len(v.Values) > 0
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed") {
			return true
		}
	}
	return false
}
