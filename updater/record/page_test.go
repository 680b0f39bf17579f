package record

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestAlertsOfPages checks that the documentation lists the same kinds of alerts as the code.
func TestAlertsOfPages(t *testing.T) {
	kinds := alertKinds(t)
	if len(kinds) < 2 {
		t.Fatalf("alert.go declares %q only", kinds)
	}
	for page, list := range map[string][2]string{"how-to/boot-servers.md": {"`kind` (", ")"}, "reference/updater.md": {"Kinds: ", "."}} {
		t.Run(page, func(t *testing.T) {
			_, alerts, _ := strings.Cut(readPage(t, page), list[0])
			alerts, _, _ = strings.Cut(alerts, list[1])
			for _, kind := range kinds {
				if !strings.Contains(alerts, "`"+kind+"`") {
					t.Errorf("docs/%s does not know alerts of the kind %s", page, kind)
				}
			}
		})
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// alertKinds returns the values of alert.go's constants.
func alertKinds(t *testing.T) (kinds []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "alert.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		for i := 0; ok && i < len(spec.Values); i++ {
			if value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value); err == nil {
				kinds = append(kinds, value)
			}
		}
		return true
	})
	return kinds
}
