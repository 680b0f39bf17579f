package tools

import (
	"os"
	"strings"
	"testing"
)

// TestPageHasEveryTool checks that the table of tools in docs/reference/charms.md lists every tool.
func TestPageHasEveryTool(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/charms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Hook tools\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, tool := range All() {
		if !strings.Contains(section, "`"+tool.Name+"`") {
			t.Errorf("docs/reference/charms.md does not say what %s is for", tool.Name)
		}
	}
}
