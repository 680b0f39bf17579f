package osutil

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != text {
			t.Errorf("it holds %q, error %v", data, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside it there are %v, error %v", entries, err)
	}
	if err := WriteFile(filepath.Join(path, "below"), nil, 0o600); err == nil {
		t.Error("a file was written below a file")
	}
}

// TestWriteFileSyncs checks that the directory is synced once the file is in place. Until then this process
// must not fork a child, since the child would inherit an executable that is open for writing.
func TestWriteFileSyncs(t *testing.T) {
	for _, test := range []struct {
		name       string
		mode       fs.FileMode
		err        error // the error of the sync
		fails      bool
		mayForkNow bool
	}{
		{"a file", 0o644, nil, false, true},
		{"a program", 0o755, nil, false, false},
		{"the disk fails", 0o644, syscall.EIO, true, true},
		{"a folder that this process may not read", 0o644, syscall.EACCES, false, true},
		{"a file system without folders to sync", 0o644, syscall.EINVAL, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			var synced []string
			err := writeFile(path, []byte("text"), test.mode, nil, func(folder string) error {
				synced = append(synced, folder)
				if data, err := os.ReadFile(path); err != nil || string(data) != "text" {
					t.Errorf("before the sync the file holds %q, error %v", data, err)
				}
				mayFork := syscall.ForkLock.TryLock()
				if mayFork {
					syscall.ForkLock.Unlock()
				}
				if mayFork != test.mayForkNow {
					t.Errorf("a child can be forked: %t", mayFork)
				}
				return test.err
			})
			if (err != nil) != test.fails {
				t.Errorf("error %v, want one: %t", err, test.fails)
			}
			if diff := cmp.Diff([]string{dir}, synced); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWriteFileMode checks the mode of a file under a umask that removes all permissions of others.
func TestWriteFileMode(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, test := range []struct {
		name    string
		before  fs.FileMode // 0 if there is no file
		mode    fs.FileMode
		options []Option
		want    fs.FileMode
	}{
		{"a new file", 0, 0o644, nil, 0o600},
		{"a new file for others", 0, 0o644, []Option{ExactMode}, 0o644},
		{"a file that is there", 0o640, 0o600, nil, 0o640},
		{"a file that is there, for others", 0o600, 0o644, []Option{ExactMode}, 0o644},
		{"a program", 0o644, 0o755, []Option{ExactMode}, 0o755},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if test.before != 0 {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, test.before); err != nil {
					t.Fatal(err)
				}
			}
			if err := WriteFile(path, nil, test.mode, test.options...); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != test.want {
				t.Errorf("mode %s, want %s", info.Mode(), test.want)
			}
		})
	}
}

// TestCreate checks that a file appears when it is committed, and that no part of a discarded file remains.
func TestCreate(t *testing.T) {
	for _, test := range []struct {
		name    string
		commits bool
		want    string
	}{
		{"committed", true, "new"},
		{"discarded", false, "old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Create(path, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("new")); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
				t.Errorf("before that it holds %q, error %v", data, err)
			}
			if test.commits {
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			}
			f.Discard()

			if data, err := os.ReadFile(path); err != nil || string(data) != test.want {
				t.Errorf("it holds %q, error %v", data, err)
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
				t.Errorf("beside it there are %v, error %v", entries, err)
			}
		})
	}
}

// TestSymlink checks that symlinks replace files with the same names, and that each directory is synced once.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	links := []string{filepath.Join(dir, "a", "one"), filepath.Join(dir, "b", "two"), filepath.Join(dir, "a", "three")}
	for _, folder := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(links[1], []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}

	var synced []string
	err := symlink("target", links, func(folder string) error {
		synced = append(synced, folder)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "target" {
			t.Errorf("%s leads to %q, error %v", link, target, err)
		}
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, synced); diff != "" {
		t.Error(diff)
	}
}
