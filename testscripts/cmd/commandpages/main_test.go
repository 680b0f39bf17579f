package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

// TestPageSaysWhatIs checks that the page is up to date with the program.
func TestPageSaysWhatIs(t *testing.T) {
	programs, err := readPrograms()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := markdownPage(programs); string(page) != want {
		line := 0
		got, wanted := strings.Split(string(page), "\n"), strings.Split(want, "\n")
		for line < min(len(got), len(wanted))-1 && got[line] == wanted[line] {
			line++
		}
		t.Errorf("docs/reference/commands.md is of another program, from line %d:\n  has:  %s\n  want: %s\nmake it anew: go run ./testscripts/cmd/commandpages markdown >docs/reference/commands.md", line+1, got[line], wanted[line])
	}
}

// TestManPages checks that each applet except the providers has a page, and that man reads all pages
// without a warning.
func TestManPages(t *testing.T) {
	programs, err := readPrograms()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeManPages(dir, programs); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man*", "*"))
	if err != nil || len(pages) < 9 {
		t.Fatalf("the pages are %v, %v", pages, err)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		need.Skip(t, "groff", "groff is not installed: nobody has read the man pages")
	}
	for _, page := range pages {
		said, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
		if err != nil || len(said) > 0 {
			t.Errorf("%s: %v\n%s", page, err, said)
		}
	}
	for page, wants := range map[string][]string{
		"man1/juju.1":          {".SS juju deploy <charm> [<application>]", ".TP\n.B \\-e, \\-\\-environment=NAME\n", "Also called add\\-relation, relate."},
		"man1/neco.1":          {".SS neco config set <key> <value>"},
		"man8/machine-agent.8": {".TP\n.B \\-\\-machine=ID\n"},
		"man7/hook-tools.7":    {".SS relation\\-get\n"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Error(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %q", page, want)
			}
		}
	}
}
