package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRelativeDirectoriesAreIgnored checks that no provider is taken from the working directory, and that none from
// there is listed either.
func TestRelativeDirectoriesAreIgnored(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(Prefix+"here", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	if names := Names([]string{".", ""}); len(names) != 0 {
		t.Errorf("relative directories have %q", names)
	}
	if path, err := Find("here", []string{".", ""}); err == nil {
		t.Errorf("found %s", path)
	}
	if names := Names([]string{".", dir}); !slices.Equal(names, []string{"here"}) {
		t.Errorf("%s has %q", dir, names)
	}
	if path, err := Find("here", []string{".", dir}); path != filepath.Join(dir, Prefix+"here") {
		t.Errorf("found %q, %v", path, err)
	}
}
