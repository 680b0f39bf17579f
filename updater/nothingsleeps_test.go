package updater

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNothingSleeps checks that no code of the updater calls Sleep. All code that waits must be
// interruptible, and must watch the condition for which it waits. The original neco had fixed sleeps instead
// of health checks.
func TestNothingSleeps(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" && slices.Contains([]string{"time", "unix"}, name(s.X)) {
				t.Errorf("%s sleeps", set.Position(s.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files: %v", files, err)
	}
}

// name returns the name of an identifier, or "".
func name(x ast.Expr) string {
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
