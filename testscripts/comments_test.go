package testscripts

import (
	"errors"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComments holds comments against godoc's idiom, wants one for each package and each
// exported name, and nothing cited that is not in the repository.
func TestComments(t *testing.T) {
	h := readHouse(t)
	for folder, files := range h.folders {
		documented := false
		for _, file := range files {
			documented = documented || file.Doc != nil
			for _, name := range undocumented(file) {
				t.Errorf("%s: %s is exported and says not what it promises", h.fset.File(file.Pos()).Name(), name)
			}
			for _, group := range file.Comments {
				at := h.fset.Position(group.Pos())
				if clause := badClause.FindString(group.Text()); clause != "" {
					t.Errorf("%s: %q: godoc says \"returns\", \"reports whether\", \"blocks until\", or names the thing", at, clause)
				}
				for _, cited := range missingCitations(group.Text()) {
					t.Errorf("%s: cites %s, which is not in the repository: say the thing itself", at, cited)
				}
			}
		}
		if !documented {
			t.Errorf("%s: the package has no comment: say what it is, what it is not, and who may import it", folder)
		}
	}
}

// badClause is a beginning that describes where it could name.
var badClause = regexp.MustCompile(`^\w+ (is what|is who|are what|says if|says whether|tells if|tells whether|has (?:the|a|an|its|each|all) \w+ do)\b`)

// undocumented returns the exported names of a file that have no comment. What String and
// Error promise is known.
func undocumented(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && d.Name.Name != "String" && d.Name.Name != "Error" && (d.Recv == nil || ast.IsExported(receiverName(d))) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

func receiverName(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

var (
	citedPage  = regexp.MustCompile(`(?:^|[\s("\x60])(docs/[\w./-]+\.md)\b`)
	citedGhost = regexp.MustCompile(`\b(?:spec/[\w./-]*|the seed|seeds?/\w+|DESIGN(?:\.md)?)\b`)
)

// missingCitations returns what a text cites and the repository does not have.
func missingCitations(text string) (missing []string) {
	missing = citedGhost.FindAllString(text, -1)
	for _, page := range citedPage.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", page[1])); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, page[1])
		}
	}
	return missing
}

// TestPagesCiteWhatThereIs holds the pages of docs and the README against the repository.
func TestPagesCiteWhatThereIs(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := filepath.Glob("../docs/reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	source := regexp.MustCompile("`([a-z][\\w./-]*/[\\w.-]+\\.go)`")
	for _, page := range append(append(pages, reference...), "../README.md", "../HACKING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, cited := range missingCitations(string(text)) {
			t.Errorf("%s cites %s, which is not in the repository", page, cited)
		}
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), l[1])); err != nil {
				t.Errorf("%s has a link to %s, which is not there", page, l[1])
			}
		}
		for _, named := range source.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", named[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

// TestCommentRulesCanFail shows each rule what it must find.
func TestCommentRulesCanFail(t *testing.T) {
	for _, bad := range []string{"place is what x", "found says if it is", "mourn has the machine do it"} {
		if !badClause.MatchString(bad) {
			t.Errorf("%q is let pass", bad)
		}
	}
	for _, good := range []string{"place returns what x", "Found reports whether it is", "x has a lease"} {
		if badClause.MatchString(good) {
			t.Errorf("%q is refused", good)
		}
	}
	got := strings.Join(missingCitations("as spec/hooks.md and docs/nowhere.md say, and docs/neco.md; see DESIGN and the seed"), " ")
	if got != "spec/hooks.md DESIGN the seed docs/nowhere.md" {
		t.Errorf("found %q", got)
	}
}
