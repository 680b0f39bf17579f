package testscripts

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsShownWhere holds the names of scripts, suites and tests in HACKING.md against
// those that there are, and wants every script to be named.
func TestWhatIsShownWhere(t *testing.T) {
	page, err := os.ReadFile("../HACKING.md")
	if err != nil {
		t.Fatal(err)
	}
	there, scripts := map[string]bool{}, []string{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "tests"): // a charm's own, which charm test runs
			return filepath.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			there[d.Name()] = true
			scripts = append(scripts, strings.TrimSuffix(strings.TrimPrefix(path, "../testscripts/"), ".txtar"))
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
	named := namedTests(string(page))
	if len(named) == 0 {
		t.Error("HACKING.md names no test")
	}
	for _, n := range named {
		if !there[n] {
			t.Errorf("HACKING.md names %s, which there is not", n)
		}
	}
	held := holders(string(page))
	for _, h := range held {
		_, script := os.Stat(filepath.Join("..", "testscripts", h+".txtar"))
		_, suite := os.Stat(filepath.Join("..", h))
		if script != nil && suite != nil && !there[h] {
			t.Errorf("HACKING.md says that %s holds a promise: there is no such script, suite or test", h)
		}
	}
	for _, s := range scripts {
		if !slices.Contains(held, s) && !slices.Contains(named, filepath.Base(s)+".txtar") {
			t.Errorf("HACKING.md does not say which promise %s holds", s)
		}
	}
}

// namedTests returns the scripts and tests that a page names.
func namedTests(page string) (names []string) {
	for _, n := range regexp.MustCompile("`([a-z-]+\\.txtar|Test\\w+)`").FindAllStringSubmatch(page, -1) {
		names = append(names, n[1])
	}
	return names
}

// holders returns who holds the promises of the page's table, its last column.
func holders(page string) (names []string) {
	_, section, _ := strings.Cut(page, "\n## What is promised, and which script holds it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 {
			continue
		}
		for _, n := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			names = append(names, n[1])
		}
	}
	return names
}
