package laws

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDrawing compares the drawing of the house in docs/dev/house.md with the packages. Each package appears
// once in the drawing, and imports only packages below it.
func TestDrawing(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/house.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := drawnFolders(string(page))
	seen := map[string]bool{}
	for _, p := range list(t, "bijou/...") {
		folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "bijou"), "/")
		if folder == "" || within(p.ImportPath, "bijou/testscripts") {
			continue
		}
		at := slices.Index(drawn, folder)
		if at < 0 {
			t.Errorf("docs/dev/house.md does not draw %s: give it a line", folder)
			continue
		}
		for _, imp := range p.Imports {
			to, ok := strings.CutPrefix(imp, "bijou/")
			if ok && slices.Index(drawn, to) < at {
				t.Errorf("%s imports %s, which stands above it in the drawing of docs/dev/house.md: imports run downwards only", folder, to)
			}
		}
		seen[folder] = true
	}
	for i, folder := range drawn {
		if !seen[folder] || slices.Index(drawn, folder) != i {
			t.Errorf("docs/dev/house.md draws %s, which is not there, or twice", folder)
		}
	}
}

// TestArrows checks the arrows below the drawing.
func TestArrows(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/house.md")
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, p := range list(t, "bijou/...") {
		imports[p.ImportPath] = p.Imports
	}
	_, block, _ := strings.Cut(string(page), "\nThese are the main imports:\n\n```text\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("docs/dev/house.md draws no arrows")
	}
	for line := range strings.Lines(block) {
		from, all, _ := strings.Cut(line, "->")
		for to := range strings.SplitSeq(all, ",") {
			from, to := strings.TrimSpace(from), strings.TrimSpace(to)
			if !slices.Contains(imports["bijou/"+from], "bijou/"+to) {
				t.Errorf("docs/dev/house.md draws an arrow from %s to %s, which is no import", from, to)
			}
		}
	}
}

// drawnFolders returns the directories in the drawing, from top to bottom: the first word of each line of the
// first block below "## The packages".
func drawnFolders(page string) (folders []string) {
	_, section, _ := strings.Cut(page, "\n## The packages\n")
	_, block, _ := strings.Cut(section, "```text\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		if f := strings.Fields(line); len(f) > 0 {
			folders = append(folders, f[0])
		}
	}
	return folders
}
