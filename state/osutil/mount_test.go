package osutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFolderStopsAtTheFirstFailure checks that the call stops at the first failure: if a note cannot be
// released, the call must do nothing else, and must report only this failure.
func TestFolderStopsAtTheFirstFailure(t *testing.T) {
	dir := t.TempDir()
	folder, location := filepath.Join(dir, "folder"), filepath.Join(dir, "location")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, note, want string }{
		{"a file in the place of the note", filepath.Join(dir, "file"), "invalid argument"},
		{"a note below a file", filepath.Join(dir, "file", "note"), "not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := BindMount(folder, location, test.note, false)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one, of %q alone", err, test.want)
			}
			if _, err := os.Lstat(location); err == nil {
				t.Error("the folder is bound all the same")
			}
		})
	}
}

// TestFolderMovesItsNote checks that the note of the new location replaces the note of the old one.
func TestFolderMovesItsNote(t *testing.T) {
	dir := t.TempDir()
	note, location := filepath.Join(dir, "notes", "data-0"), filepath.Join(dir, "new")
	if err := moveNote(note, filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if err := moveNote(note, location); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(note); err != nil || to != location {
		t.Errorf("it says %q, error %v", to, err)
	}
}

// TestRemoveAllAfterInterruption checks that a directory can be removed although the removal of an earlier
// directory of the same name was interrupted.
func TestRemoveAllAfterInterruption(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "data")
	for _, left := range []string{filepath.Join(dir, ".removing-data", "rest"), filepath.Join(folder, "content")} {
		if err := os.MkdirAll(left, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	if err := RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left is %v, error %v", left, err)
	}
}
