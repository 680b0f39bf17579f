package charm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPageHasEveryKey checks that the tables of docs/reference/charms.md contain each key that is read
// from a charm's files.
func TestPageHasEveryKey(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/charms.md")
	must(t, err)
	page, _, _ := strings.Cut(string(data), "\n## Hooks, and their order\n")
	files, err := filepath.Glob("*.go")
	must(t, err)
	keys := map[string]bool{}
	tag := regexp.MustCompile("yaml:\"([a-zA-Z][a-zA-Z-]*)\"`|^\tcase \"([a-z]+)\":$")
	for _, file := range files {
		code, err := os.ReadFile(file)
		must(t, err)
		for line := range strings.Lines(string(code)) {
			key := tag.FindStringSubmatch(strings.TrimRight(line, "\n"))
			switch {
			case key == nil, strings.HasSuffix(file, "_test.go"), key[2] != "" && file != "relation.go":
			default:
				keys[key[1]+key[2]] = true // tags, and the keys with which relations are read
			}
		}
	}
	if len(keys) < 40 {
		t.Errorf("%d keys were found in the code, fewer than there are", len(keys))
	}
	for key := range keys {
		if !strings.Contains(page, "`"+key) {
			t.Errorf("docs/reference/charms.md does not explain the key %q", key)
		}
	}
}
