package keys

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKeysOfPage checks that docs/how-to/boot-servers.md lists all keys of the code, and no others.
func TestKeysOfPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/how-to/boot-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Keys\n")
	told, have := toldKeys(section), allKeys(t)
	for _, key := range have {
		if !slices.Contains(told, key) {
			t.Errorf("docs/how-to/boot-servers.md does not know the key %s", key)
		}
	}
	for _, key := range told {
		if !slices.Contains(have, key) {
			t.Errorf("docs/how-to/boot-servers.md knows a key %s, which is not there", key)
		}
	}
}

// toldKeys returns the keys in the first column of the section's table. It fills each placeholder with
// allKeys' example.
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

// functionKeys returns the result of each function for the argument 7 or "x".
func functionKeys() map[string]string {
	return map[string]string{
		"BootServer": BootServer(7), "Worker": Worker(7), "Contents": Contents("x"), "Config": Config("x"), "WorkerLeader": WorkerLeader("x"),
		"Turn": Turn("x"), "History": History(7), "Audit": Audit(7), "Alert": Alert("x"), "Presence": Presence(7), "Inventory": Inventory(7),
		"Claim": Claim(7), "Activity": Activity(7), "Twin": Twin(7),
	}
}

// allKeys returns all constants and functionKeys, without prefixes of keys. It checks that functionKeys
// covers all functions.
func allKeys(t *testing.T) (keys []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	functions := functionKeys()
	slices.Sort(names)
	if known := slices.Sorted(maps.Keys(functions)); !slices.Equal(known, names) {
		t.Fatalf("functionKeys has %v, and there are %v", known, names)
	}
	keys = slices.Collect(maps.Values(functions))
	check := types.Config{Error: func(error) {}} // ignores errors about missing imports, which are not needed
	p, _ := check.Check("keys", files, []*ast.File{file}, nil)
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		if key := constant.StringVal(c.Val()); !strings.HasSuffix(key, "/") {
			keys = append(keys, key)
		}
	}
	return keys
}
