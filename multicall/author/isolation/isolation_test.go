package isolation

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestWrittenNamesFilesBesideARemovedCache checks that the mark of a removed __pycache__, which is a device, hides
// nothing else.
func TestWrittenNamesFilesBesideARemovedCache(t *testing.T) {
	dir := t.TempDir()
	parent := filepath.Join(dir, "written", "opt")
	if err := os.MkdirAll(filepath.Join(parent, "app", "__pycache__"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/__pycache__/x.pyc", "app/x.py", "later"} {
		if err := os.WriteFile(filepath.Join(parent, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mknod(filepath.Join(parent, "__pycache__"), syscall.S_IFCHR, 0); err != nil {
		t.Skip("cannot make a device: ", err)
	}

	lines, err := Written(dir)
	if want := []string{"/opt/app/x.py\n", "/opt/later\n"}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("got %q, %v; want %q", lines, err, want)
	}
}

// TestLargeFileIsNotCopied checks that a file such as /swapfile is not read into memory.
func TestLargeFileIsNotCopied(t *testing.T) {
	large := filepath.Join(t.TempDir(), "swapfile")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFileCopy+1); err != nil {
		t.Fatal(err)
	}

	l := &layout{dir: t.TempDir()}
	if err := l.layFile(large, filepath.Join(l.dir, "target")); err != nil || len(l.unseen) != 1 {
		t.Errorf("got %v, noted %q", err, l.unseen)
	}
}
