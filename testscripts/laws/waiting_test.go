package laws

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

// TestTestsWaitByAwait checks that tests wait with testscripts/kit/await, which reports the awaited condition
// and why it did not hold, and never with their own loop until a deadline.
func TestTestsWaitByAwait(t *testing.T) {
	fset, files := token.NewFileSet(), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "../../testscripts/kit/await" || path == "../../testscripts/fakes/sampleprovider" || d.Name() == ".git"): // the sample is not a test, and shares no code with bijou
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "../../testscripts/"), !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		files++
		for _, at := range pollingLoops(file) {
			t.Errorf("%s: a loop looks until some time: testscripts/kit/await does, and says why it was in vain", fset.Position(at))
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read: %v", files, err)
	}
}

// TestPollingLoops checks that the rule finds planted loops.
func TestPollingLoops(t *testing.T) {
	const code = `package p
		func f() {
			for end := time.Now().Add(limit); !ok(); time.Sleep(pause) { if time.Now().After(end) { fail() } }
			for time.Now().Before(end) { <-time.After(pause) }
			for range 3 { time.Sleep(pause) }
			for { note(time.Now().Unix()); time.Sleep(pause) }
		}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(pollingLoops(file)); n != 2 {
		t.Errorf("found %d loops, want 2", n)
	}
}

// pollingLoops returns the loops that pause and compare the time with an end.
func pollingLoops(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		loop, ok := n.(*ast.ForStmt)
		if !ok {
			return true
		}
		pauses, compares := false, false
		ast.Inspect(loop, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			pauses = pauses || isCall(call, "time", "Sleep", "After")
			if of, ok := call.Fun.(*ast.SelectorExpr); ok {
				now, ok := of.X.(*ast.CallExpr)
				compares = compares || ok && isCall(now, "time", "Now") && slices.Contains([]string{"Add", "After", "Before"}, of.Sel.Name)
			}
			return true
		})
		if pauses && compares {
			found = append(found, loop.Pos())
		}
		return true
	})
	return found
}

// isCall reports whether a call is of one of the package's functions.
func isCall(call *ast.CallExpr, pkg string, names ...string) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := of.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, of.Sel.Name)
}
