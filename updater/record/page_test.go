package record

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAlertsOfPages holds what pages say of the kinds of alerts against the code.
func TestAlertsOfPages(t *testing.T) {
	kinds := alertKinds(t)
	if len(kinds) < 2 {
		t.Fatalf("alert.go declares %q only", kinds)
	}
	for page, list := range map[string][2]string{"neco.md": {"`kind` (", ")"}, "reference/updater.md": {"Kinds: ", "."}} {
		_, alerts, _ := strings.Cut(readPage(t, page), list[0])
		alerts, _, _ = strings.Cut(alerts, list[1])
		for _, kind := range kinds {
			if !strings.Contains(alerts, "`"+kind+"`") {
				t.Errorf("docs/%s does not know alerts of the kind %s", page, kind)
			}
		}
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

// TestKeysOfPage holds the keys in docs/neco.md against the code: it has all of them, and
// none that is not there.
func TestKeysOfPage(t *testing.T) {
	_, section, _ := strings.Cut(readPage(t, "neco.md"), "\n## Keys\n")
	told, have := toldKeys(section), methodKeys()
	for _, key := range have {
		if !slices.Contains(told, key) {
			t.Errorf("docs/neco.md does not know the key %s", key)
		}
	}
	for _, key := range told {
		if !slices.Contains(have, key) {
			t.Errorf("docs/neco.md knows a key %s, which is not there", key)
		}
	}
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

// toldKeys returns the keys in the first column of the section's table, with methodKeys'
// example in each place that the page leaves open.
func toldKeys(section string) (keys []string) {
	open := strings.NewReplacer("LRN", "7", "NAME", "x", "KEY", "x", "ID", "x")
	number := regexp.MustCompile(`/N$`)
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, key := range quoted.FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(line, "|") {
				keys = append(keys, number.ReplaceAllString(open.Replace(key[1]), "/0000000007"))
			}
		}
	}
	return keys
}

// methodKeys returns what each method of Keys returns for 7 or "x", without prefixes of keys.
func methodKeys() (keys []string) {
	all := reflect.ValueOf(NewKeys(""))
	for i := range all.NumMethod() {
		method, args := all.Method(i), []reflect.Value(nil)
		for j := range method.Type().NumIn() {
			args = append(args, map[reflect.Kind]reflect.Value{reflect.Int: reflect.ValueOf(7), reflect.String: reflect.ValueOf("x")}[method.Type().In(j).Kind()])
		}
		if key := strings.TrimPrefix(method.Call(args)[0].String(), "/"); !strings.HasSuffix(key, "/") && key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
