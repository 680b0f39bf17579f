package laws

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
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

// TestCommentsCiteWhatThereIs checks that everything that comments cite is in the repository, since readers
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

// TestPagesCiteWhatThereIs checks that links and file names on pages lead to files in the repository, and
// links to a section to a heading. In docs/dev/house.md it also checks directories, and that each file
// declares the symbols in parentheses after it.
func TestPagesCiteWhatThereIs(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
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
			to := page
			if l[1] != "" {
				to = filepath.Join(filepath.Dir(page), l[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s has a link to %s, which is not there", page, l[1])
			} else if l[2] != "" && !hasHeading(t, to, l[2]) {
				t.Errorf("%s has a link to %s#%s: there is no such heading", page, l[1], l[2])
			}
		}
		for _, named := range source.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("../..", named[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}

	house, err := os.ReadFile("../../docs/dev/house.md")
	if err != nil {
		t.Fatal(err)
	}
	faults, checked := misplaced(os.DirFS("../.."), string(house))
	for _, f := range faults {
		t.Errorf("docs/dev/house.md: %s", f)
	}
	if checked < 200 {
		t.Errorf("docs/dev/house.md names only %d files, directories and symbols", checked)
	}
}

// hasHeading reports whether a page has a heading with an anchor, as GitHub forms it.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		heading := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(h[1]), "")
		if strings.ReplaceAll(heading, " ", "-") == anchor {
			return true
		}
	}
	return false
}

var (
	placeInTable  = regexp.MustCompile("`([\\w.-]*(?:/[\\w.-]+)+/?|[\\w.-]+(?:/|\\.go))`(?: \\(((?:`[A-Za-z]\\w*`(?:, )?)+)\\))?")
	symbolInTable = regexp.MustCompile("`(\\w+)`")
)

// misplaced returns the faults in the last column of a page's tables: files and directories that tree does
// not contain, and symbols that are not declared in the file before them. A name can be relative to the
// directory of an earlier name in its row, or to a parent of that directory. It also returns how many names
// it has checked.
func misplaced(tree fs.FS, page string) (faults []string, checked int) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 {
			continue
		}

		folder := "."
		for _, m := range placeInTable.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if isImportPath(m[1]) {
				continue
			}
			checked++

			name, found := findPlace(tree, folder, m[1])
			if !found {
				faults = append(faults, m[1]+" is not there")
				continue
			}
			folder = name
			if path.Ext(name) != "" {
				folder = path.Dir(name)
			}

			for _, s := range symbolInTable.FindAllStringSubmatch(m[2], -1) {
				checked++
				if code, err := fs.ReadFile(tree, name); err != nil || !declares(string(code), s[1]) {
					faults = append(faults, name+" does not declare "+s[1])
				}
			}
		}
	}

	return faults, checked
}

// isImportPath reports whether a name is that of a package in Go's standard library.
func isImportPath(name string) bool { return strings.HasPrefix(name, "go/") }

// findPlace returns the path of a file or directory whose name is relative to folder, to a parent of folder,
// or to the root.
func findPlace(tree fs.FS, folder, name string) (found string, ok bool) {
	for _, from := range []string{folder, path.Dir(folder), path.Dir(path.Dir(folder)), "."} {
		found = path.Join(from, name)
		info, err := fs.Stat(tree, found)
		if err == nil && (info.IsDir() || !strings.HasSuffix(name, "/")) {
			return found, true
		}
	}

	return "", false
}

// declares reports whether Go code declares a function, method, type, variable, constant or field.
func declares(code, symbol string) bool {
	return regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)` + symbol + `\b`).MatchString(code)
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

	tree := fstest.MapFS{
		"store/store.go":       {Data: []byte("type Store interface {\n\tView()\n}")},
		"store/file/commit.go": {Data: []byte("func (t *txn) commit() {}\n\nfunc open() {}")},
	}
	page := "| a part | `store/`, `file/`; `gone/`; `store/file/commit.go` (`commit`, `View`), `store.go` (`Store`); `lost.go` |\n"
	faults, checked := misplaced(tree, page)
	got = strings.Join(faults, "; ")
	if got != "gone/ is not there; store/file/commit.go does not declare View; lost.go is not there" || checked != 9 {
		t.Errorf("found %q in %d names", got, checked)
	}

	names := strings.Join(namedTests("held by `TestRoad` and `road.txtar`, not `Testing`"), " ")
	if names != "TestRoad road.txtar" {
		t.Errorf("found the names %q", names)
	}
}
