package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestTryLock(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, path string
		flag       int
	}{
		{"folder", dir, os.O_RDONLY},
		{"file that is made", filepath.Join(dir, "lock"), os.O_CREATE | os.O_RDWR},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, err := TryLockFile(test.path, test.flag)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := TryLockFile(test.path, test.flag); !errors.Is(err, ErrLocked) {
				t.Errorf("while it is locked: error %v", err)
			}
			got := make(chan error)
			go func() {
				f, err := LockFile(test.path)
				f.Close()
				got <- err
			}()
			first.Close()
			if err := <-got; err != nil {
				t.Errorf("Lock: error %v", err)
			}
			again, err := TryLockFile(test.path, test.flag)
			if err != nil {
				t.Fatalf("once it is free: error %v", err)
			}
			again.Close()
		})
	}
	if _, err := TryLockFile(filepath.Join(dir, "none", "lock"), os.O_CREATE|os.O_RDWR); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: error %v", err)
	}
}

// TestRemovedMeanwhile checks that a process does not get the lock if the holder removes the file while the
// process waits.
func TestRemovedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil || isSameFile(f, path) {
		t.Errorf("a file that was removed counts as there (error %v)", err)
	}
	other, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if isSameFile(f, path) || !isSameFile(other, path) {
		t.Error("it is taken for the one that was made in its place, or that one is not taken for itself")
	}
}
