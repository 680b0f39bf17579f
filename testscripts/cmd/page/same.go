package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path"
	"reflect"
	"slices"
	"strings"
)

// errDiffers means that declarations differ and were printed.
var errDiffers = errors.New("declarations differ")

// printDifferences prints the declarations that differ between two commits.
func printDifferences(commits []string) error {
	if len(commits) > 2 {
		return errors.New("cannot compare more than two commits")
	}
	before, after := "HEAD~1", "HEAD"
	if len(commits) > 0 {
		before = commits[0]
	}
	if len(commits) > 1 {
		after = commits[1]
	}

	old, err := readCommit(before)
	if err != nil {
		return err
	}
	current, err := readCommit(after)
	if err != nil {
		return err
	}

	differing := differences(old, current)
	for _, name := range differing {
		fmt.Println(name)
	}
	if len(differing) > 0 {
		return errDiffers
	}

	fmt.Printf("%d declarations are the same\n", len(current))
	return nil
}

// tree maps each declaration's name, after its package's directory, to its syntax. Declarations with
// the same name, such as init, share one entry.
type tree map[string]string

// readCommit reads all Go files of a commit. A package's tests are a separate package.
func readCommit(commit string) (tree, error) {
	archive, err := exec.Command("git", "archive", "--format=tar", commit).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read commit %q: %w", commit, err)
	}

	t := tree{}
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(file.Name, ".go") {
			continue
		}
		source, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		if err := t.addFile(file.Name, source); err != nil {
			return nil, err
		}
	}
}

// addFile adds the declarations of one file. It leaves out the imports, since the other declarations
// determine them.
func (t tree) addFile(name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	place := path.Dir(name) + " " + file.Name.Name
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			t.add(place, declaredName(decl), decl)
			continue
		}
		if general.Tok == token.IMPORT {
			continue
		}
		for _, spec := range general.Specs {
			t.add(place, general.Tok.String()+" "+declaredName(spec), spec)
		}
	}
	return nil
}

func (t tree) add(place, name string, syntax ast.Node) {
	t[place+": "+name] += printed(syntax)
}

// declaredName returns the first name that a declaration declares. A method's name follows its type.
func declaredName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.TypeSpec:
		return n.Name.Name
	case *ast.ValueSpec:
		return n.Names[0].Name
	case *ast.FuncDecl:
		if n.Recv == nil {
			return n.Name.Name
		}
		return receiverName(n.Recv.List[0].Type) + "." + n.Name.Name
	}
	return ""
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// printed returns the syntax as text, without positions. Parentheses around declarations and line
// breaks in lists do not count.
func printed(n ast.Node) string {
	var text strings.Builder
	notPositions := func(name string, value reflect.Value) bool {
		return value.Type() != reflect.TypeFor[token.Pos]() && name != "Doc" && name != "Comment" && name != "Incomplete"
	}
	if err := ast.Fprint(&text, nil, n, notPositions); err != nil {
		// Writing to a Builder never fails.
		panic(err)
	}
	return withoutLineNumbers(text.String())
}

// withoutLineNumbers removes the line numbers that ast.Fprint prints.
func withoutLineNumbers(text string) string {
	var bare strings.Builder
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
		bare.WriteString(rest)
	}
	return bare.String()
}

// differences returns, in order, the names of declarations that differ between the trees or exist in
// only one.
func differences(old, current tree) []string {
	names := map[string]bool{}
	for name, syntax := range old {
		if current[name] != syntax {
			names[name] = true
		}
	}
	for name := range current {
		if _, ok := old[name]; !ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
