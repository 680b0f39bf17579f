package testscripts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLibrariesAreExplained wants the reason for each library of go.mod in HACKING.md's
// table, by its whole path.
func TestLibrariesAreExplained(t *testing.T) {
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../HACKING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Libraries, and why\n")
	table, _, _ = strings.Cut(table, "\n## ")
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(module), -1)
	if len(direct) < 10 {
		t.Fatalf("go.mod has %d libraries", len(direct))
	}
	for _, d := range direct {
		if !regexp.MustCompile(regexp.QuoteMeta(d[1]) + `[\s,/|]`).MatchString(table) {
			t.Errorf("HACKING.md does not say what %s is for", d[1])
		}
	}
}
