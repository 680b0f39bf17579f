package unitdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTakeOver checks a directory of an older binary at each point at which its takeover may have been
// interrupted. Once it is locked, the directory must be in its new place with all its files, and its old path
// must be a symlink to it.
func TestTakeOver(t *testing.T) {
	for name, cut := range map[string]func(f Folder) error{
		"not begun": func(Folder) error { return nil },
		"linked here": func(f Folder) error {
			return errors.Join(os.MkdirAll(filepath.Dir(string(f)), 0o755), f.linkFrom(string(f)))
		},
		"moved, by a file system that cannot exchange": func(f Folder) error {
			return errors.Join(os.MkdirAll(filepath.Dir(string(f)), 0o755), os.Rename(string(f.Legacy()), string(f)))
		},
		"done": func(f Folder) error { return f.moveFromLegacy() },
		"gone back to a binary of before, and used by it": func(f Folder) error {
			lock, err := f.tryLock()
			if err != nil {
				return err
			}
			lock.Close()
			return os.WriteFile(f.Legacy().Path("data"), []byte("data"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Of(t.TempDir(), "mysql-shop/10")
			if !strings.HasSuffix(string(f), "/agents/unit-mysql-shop-10") || !strings.HasSuffix(string(f.Legacy()), "/units/mysql-shop-10") {
				t.Errorf("%s and %s", f, f.Legacy())
			}
			if err := errors.Join(os.MkdirAll(f.Legacy().Charm(), 0o755), os.WriteFile(f.Legacy().Path("data"), []byte("data"), 0o600), cut(f)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				lock, err := f.tryLock()
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Lstat(string(f))
				if err != nil || !info.IsDir() {
					t.Errorf("the folder is none: %v", err)
				}
				for _, path := range []string{f.Path("data"), f.Legacy().Path("data")} {
					if data, err := os.ReadFile(path); string(data) != "data" {
						t.Errorf("%s: %q, %v", path, data, err)
					}
				}
				lock.Close()
			}
			if err := f.Remove(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(string(f)), "..", "*", "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestTakeOverWaitsAndRefuses(t *testing.T) {
	f := Of(t.TempDir(), "mysql/0")
	if err := os.MkdirAll(string(f.Legacy()), 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := f.Legacy().tryLockFile() // as an older agent
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.tryLock(); err != unix.EWOULDBLOCK {
		t.Errorf("while another agent runs the unit: %v", err)
	}
	before.Close()
	if err := os.MkdirAll(f.Charm(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.tryLock(); err == nil || !strings.Contains(err.Error(), "two directories") {
		t.Errorf("two folders: %v", err)
	}
}
