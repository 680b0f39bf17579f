package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// figures are the numbers that can be counted in code.
type figures struct {
	files, lines     int
	functions        int
	bodyLines        int // lines of functions with several lines, without their first and last lines
	blank            int // blank lines among bodyLines
	comments         int // comment lines among bodyLines
	long             int // functions above 15 lines
	longWithoutBlank int
	oneLine          int // functions on one line
	wideAssignments  int // assignments of three or more values
	carriedErrors    int // statements if err == nil { … }
	longLines        int // lines above 120 columns
}

// printFigures prints the figures of the code below the directories. Without directories it prints those
// of the product.
func printFigures(directories []string) error {
	if len(directories) == 0 {
		directories = []string{"main.go", "multicall", "agent", "state", "hookenv", "updater", "provision"}
	}

	var total figures
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return total.addFile(path)
		})
		if err != nil {
			return err
		}
	}
	total.print()
	return nil
}

func (f *figures) print() {
	share := func(part, whole int) string {
		if whole == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
	}
	line := func(what, value string) { fmt.Printf("%-55s %s\n", what, value) }
	count := func(n int) string { return fmt.Sprint(n) }

	line("files", count(f.files))
	line("lines", count(f.lines))
	line("lines above 120 columns", count(f.longLines))
	line("functions", count(f.functions))
	line("functions of one line", share(f.oneLine, f.functions))
	line("blank lines in function bodies", share(f.blank, f.bodyLines))
	line("comment lines in function bodies", share(f.comments, f.bodyLines))
	line("functions above 15 lines", count(f.long))
	line("functions above 15 lines without a blank line", count(f.longWithoutBlank))
	line("assignments of three things and more", count(f.wideAssignments))
	line("if err == nil", count(f.carriedErrors))
}

// addFile counts one file, unless it is generated.
func (f *figures) addFile(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}

	lines := strings.Split(string(source), "\n")
	f.files++
	f.lines += len(lines)
	for _, l := range lines {
		if len(strings.ReplaceAll(l, "\t", "    ")) > 120 {
			f.longLines++
		}
	}

	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
			f.addFunction(fset, lines, d)
		}
	}
	return nil
}

func (f *figures) addFunction(fset *token.FileSet, lines []string, d *ast.FuncDecl) {
	f.functions++
	first, last := fset.Position(d.Pos()).Line, fset.Position(d.End()).Line
	if first == last {
		f.oneLine++
	}

	blank := 0
	body := fset.Position(d.Body.Lbrace).Line
	for n := body + 1; n < last; n++ {
		f.bodyLines++
		switch text := strings.TrimSpace(lines[n-1]); {
		case text == "":
			blank++
		case strings.HasPrefix(text, "//"):
			f.comments++
		}
	}
	f.blank += blank
	if last-first+1 > 15 {
		f.long++
		if blank == 0 {
			f.longWithoutBlank++
		}
	}

	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) >= 3 && len(n.Rhs) >= 3 {
				f.wideAssignments++
			}
		case *ast.IfStmt:
			if carriesError(n) {
				f.carriedErrors++
			}
		}
		return true
	})
}

// carriesError reports whether a statement has the form if err == nil …, in which an earlier error was
// not handled where it appeared.
func carriesError(s *ast.IfStmt) bool {
	condition := s.Cond
	for {
		binary, ok := condition.(*ast.BinaryExpr)
		if !ok {
			return false
		}
		if binary.Op == token.LAND {
			condition = binary.X
			continue
		}
		x, isName := binary.X.(*ast.Ident)
		y, isNil := binary.Y.(*ast.Ident)
		return binary.Op == token.EQL && isName && isNil && x.Name == "err" && y.Name == "nil" && s.Init == nil
	}
}
