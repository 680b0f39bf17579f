package laws

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	citedPage  = regexp.MustCompile(`(?:^|[\s("\x60])(docs/[\w./-]+\.md)\b`)
	citedGhost = regexp.MustCompile(`\b(?:spec/[\w./-]*|the seed|seeds?/\w+|DESIGN(?:\.md)?)\b`)
)

// missingCitations returns the citations in a text that are not in the repository.
func missingCitations(text string) (missing []string) {
	missing = citedGhost.FindAllString(text, -1)
	for _, page := range citedPage.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("../..", page[1])); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, page[1])
		}
	}
	return missing
}

// TestCommentsCiteWhatThereIs checks that comments cite only what is in the repository, since readers
// have nothing else.
func TestCommentsCiteWhatThereIs(t *testing.T) {
	h := readHouse(t)
	for _, files := range h.folders {
		for _, file := range files {
			for _, group := range file.Comments {
				for _, cited := range missingCitations(group.Text()) {
					t.Errorf("%s: cites %s, which is not in the repository", h.fset.Position(group.Pos()), cited)
				}
			}
		}
	}
}

// pages returns the project's pages.
func pages(t *testing.T) []string {
	t.Helper()
	names := []string{"../../README.md", "../../HACKING.md", "../../SECURITY.md", "../../CHANGELOG.md"}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 30 {
		t.Fatalf("only %d pages were found", len(names))
	}
	return names
}

// TestPagesCiteWhatThereIs checks that links and file names on pages lead to files of the repository.
func TestPagesCiteWhatThereIs(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	source := regexp.MustCompile("`([a-z][\\w./-]*/[\\w.-]+\\.go)`")

	for _, page := range pages(t) {
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
			if _, err := os.Stat(filepath.Join("../..", named[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

// TestPagesNameTestsThatThereAre checks that each test and script that a page names exists, so that no
// page relies on a test that was renamed or removed.
func TestPagesNameTestsThatThereAre(t *testing.T) {
	there := testsAndScripts(t)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namedTests(string(text)) {
			if !there[name] {
				t.Errorf("%s names %s: there is no such script or test", page, name)
			}
		}
	}

	promises, err := os.ReadFile("../../docs/dev/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	held := holders(string(promises))
	if len(held) == 0 {
		t.Error("docs/dev/promises.md names nothing that holds a promise")
	}
	for _, name := range held {
		_, script := os.Stat(filepath.Join("../../testscripts/scripts", name+".txtar"))
		_, suite := os.Stat(filepath.Join("../..", name))
		if script != nil && suite != nil && !there[name] {
			t.Errorf("docs/dev/promises.md says that %s holds a promise: there is no such script, suite or test", name)
		}
	}
}

// testsAndScripts returns the names of all test functions, and of all scripts with their extension.
func testsAndScripts(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
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
	return there
}

// namedTests returns the scripts and tests that a page names.
func namedTests(page string) (names []string) {
	for _, n := range regexp.MustCompile("`([a-z-]+\\.txtar|Test[A-Z]\\w+)`").FindAllStringSubmatch(page, -1) {
		names = append(names, n[1])
	}
	return names
}

// holders returns the last column of the table of promises: scripts, suites and tests.
func holders(page string) (names []string) {
	_, section, _ := strings.Cut(page, "\n## Promises and their scripts\n")
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

// TestCitationRulesCanFail checks that each rule finds a planted fault.
func TestCitationRulesCanFail(t *testing.T) {
	got := strings.Join(missingCitations("as spec/hooks.md and docs/nowhere.md say, and docs/how-to/boot-servers.md; see DESIGN and the seed"), " ")
	if got != "spec/hooks.md DESIGN the seed docs/nowhere.md" {
		t.Errorf("found %q", got)
	}
	names := strings.Join(namedTests("held by `TestRoad` and `road.txtar`, not `Testing`"), " ")
	if names != "TestRoad road.txtar" {
		t.Errorf("found the names %q", names)
	}
}
