package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestRawKeysStayBelowState checks that only packages below state call Keys() of a State, View or Tx, since
// only they know the meaning of keys. Tests may call it to damage a record.
func TestRawKeysStayBelowState(t *testing.T) {
	fset, files := token.NewFileSet(), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "../../state" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir(), strings.HasSuffix(path, "_test.go"), !strings.HasSuffix(path, ".go"):
			return nil
		}

		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		files++
		for _, at := range callsOfKeys(file) {
			t.Errorf("%s: it calls Keys(), which hands out raw keys: a package below state gives them their meaning", fset.Position(at))
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read: %v", files, err)
	}
}

// TestRawKeysLawCanFail checks that the rule finds a planted call.
func TestRawKeysLawCanFail(t *testing.T) {
	const code = `package p
		func f(tx *state.Tx, m map[string]int) {
			tx.Keys().Put("units/wordpress/0", nil)
			read(tx.View.Keys())
			maps.Keys(m)
		}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(callsOfKeys(file)); n != 2 {
		t.Errorf("found %d calls, want 2", n)
	}
}

// callsOfKeys finds the calls of a method Keys without arguments.
func callsOfKeys(file *ast.File) (at []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) > 0 {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Keys" {
			at = append(at, call.Pos())
		}
		return true
	})
	return at
}
