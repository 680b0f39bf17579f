package laws

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLongSuitesHaveLanes checks that .ci/long contains each package with long tests or with its own
// hosts.
func TestLongSuitesHaveLanes(t *testing.T) {
	lanes, err := os.ReadFile("../../.ci/long")
	if err != nil {
		t.Fatal(err)
	}
	long := regexp.MustCompile(`\b(need\.Long(Run)?|fleet\.(Need|New))\(`)
	packages := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		if long.Match(code) {
			packages[strings.Replace(filepath.Dir(path), "../..", ".", 1)] = true
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

// TestLanesAreExplained compares the lanes of .ci/long with the table in docs/dev/testing.md.
func TestLanesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash here")
	}
	out, err := exec.Command("../../.ci/long", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range strings.Fields(string(out)) {
		if !strings.Contains(string(page), "`long "+lane+"`") {
			t.Errorf("docs/dev/testing.md does not say what `long %s` runs", lane)
		}
	}
}

// TestLanesSayWhatTheyCover checks that .ci/lanes lists each lane of .ci/long with existing paths.
// Nothing would otherwise report that a lane's last run is out of date.
func TestLanesSayWhatTheyCover(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash here")
	}
	out, err := exec.Command("../../.ci/long", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../.ci/lanes")
	if err != nil {
		t.Fatal(err)
	}

	var lanes []string
	for line := range strings.Lines(string(file)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		lanes = append(lanes, words[0])
		if len(words) < 3 {
			t.Errorf(".ci/lanes: %s covers nothing", words[0])
			continue
		}
		for _, path := range words[2:] {
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				t.Errorf(".ci/lanes: %s covers %s, which is not there", words[0], path)
			}
		}
	}

	want := strings.Fields(string(out))
	slices.Sort(want)
	slices.Sort(lanes)
	if diff := cmp.Diff(want, lanes); diff != "" {
		t.Errorf("lanes (-.ci/long +.ci/lanes):\n%s", diff)
	}
}
