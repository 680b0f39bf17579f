package testscripts

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLongSuitesHaveLanes wants each package that has long tests, or hosts of its own,
// in .ci/long.
func TestLongSuitesHaveLanes(t *testing.T) {
	lanes, err := os.ReadFile("../.ci/long")
	if err != nil {
		t.Fatal(err)
	}
	long := regexp.MustCompile(`\b(need\.Long(Run)?|fleet\.(Need|New))\(`)
	packages := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		if long.Match(code) {
			packages[strings.Replace(filepath.Dir(path), "..", ".", 1)] = true
		}
		return err
	})
	if err != nil || len(packages) < 8 {
		t.Fatalf("long tests are in %v: %v", packages, err)
	}
	for p := range packages {
		if !regexp.MustCompile(regexp.QuoteMeta(p) + `(/\.\.\.)?\s`).Match(lanes) {
			t.Errorf("%s has long tests, and no lane of .ci/long runs them", p)
		}
	}
}

// TestLanesAreExplained holds the lanes of .ci/long against HACKING.md's table.
func TestLanesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../HACKING.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash here")
	}
	out, err := exec.Command("../.ci/long", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range strings.Fields(string(out)) {
		if !strings.Contains(string(page), "`long "+lane+"`") {
			t.Errorf("HACKING.md does not say what `long %s` runs", lane)
		}
	}
}
