package testscripts

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatIsShownWhere holds the names of scripts and tests in HACKING.md against
// those that there are.
func TestWhatIsShownWhere(t *testing.T) {
	page, err := os.ReadFile("../HACKING.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			there[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			code, err := os.ReadFile(path)
			for _, f := range function.FindAllSubmatch(code, -1) {
				there[string(f[1])] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z-]+\\.txtar|Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) == 0 {
		t.Error("HACKING.md names no test")
	}
	for _, n := range named {
		if !there[string(n[1])] {
			t.Errorf("HACKING.md names %s, which there is not", n[1])
		}
	}
}
