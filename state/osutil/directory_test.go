package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMkdirAll checks which directories are synced and in which order. Each must be synced before the next
// one is created.
func TestMkdirAll(t *testing.T) {
	for _, test := range []struct {
		name, path string
		want       []string
	}{
		{"all are there", "there", []string{"."}},
		{"one is missing", "there/a", []string{".", "there"}},
		{"several are missing", "there/a/b/c", []string{".", "there", "there/a", "there/a/b"}},
		{"a link to a folder", "link/a", []string{".", "link"}},
		{"a path that is not clean", "there//a/../b/", []string{".", "there"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := errors.Join(os.Mkdir("there", 0o755), os.Symlink("there", "link")); err != nil {
				t.Fatal(err)
			}
			var synced []string
			err := mkdirAll(filepath.Clean(test.path), 0o750, func(folder string) error {
				synced = append(synced, folder)
				return SyncDir(folder)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, synced); diff != "" {
				t.Error(diff)
			}
			info, err := os.Stat(filepath.Clean(test.path))
			if err != nil || !info.IsDir() {
				t.Errorf("there is %v, error %v", info, err)
			}
			if strings.Contains(test.path, "a") && err == nil && info.Mode().Perm() != 0o750 {
				t.Errorf("it has mode %s", info.Mode())
			}
		})
	}
}

// TestMkdirAllFails checks that a failed sync is an error, unless the directory cannot be read and no
// directory was created in it. A file in place of a directory is an error too.
func TestMkdirAllFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failing := func(of string, err error) func(string) error {
		return func(folder string) error {
			if folder == of {
				return err
			}
			return nil
		}
	}
	for _, test := range []struct {
		name, path string
		sync       func(string) error
		fails      bool
	}{
		{"the disk fails", "a", failing(dir, syscall.EIO), true},
		{"the disk fails above", "b", failing(filepath.Dir(dir), syscall.EIO), true},
		{"nobody may read above", "c", failing(filepath.Dir(dir), fs.ErrPermission), false},
		{"nobody may read where it is made", "d", failing(dir, fs.ErrPermission), true},
		{"a file", "file", failing("", nil), true},
		{"below a file", "file/e", failing("", nil), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := mkdirAll(filepath.Join(dir, test.path), 0o755, test.sync); (err != nil) != test.fails {
				t.Errorf("error %v, want one: %t", err, test.fails)
			}
		})
	}
	if err := MkdirAll("/", 0o755); err != nil {
		t.Error(err)
	}
}

func TestSyncAll(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(MkdirAll(dir+"/a/b", 0o755), os.WriteFile(dir+"/a/file", nil, 0), os.Symlink("nowhere", dir+"/a/link")); err != nil {
		t.Fatal(err)
	}
	if err := SyncAll(dir); err != nil {
		t.Error(err)
	}
	if err := SyncAll(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestRemove checks that the removal of a file succeeds if the file or its directory is already gone.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, path, filepath.Join(dir, "none", "file")} {
		if err := Remove(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "inner"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(path); err == nil {
		t.Error("a folder that is not empty was removed")
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "read", Path: "f", Err: syscall.EIO}, "read f: input/output error (look for the disk's errors in dmesg)"},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, "write f: no space left on device (free some space on the disk)"},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EROFS}, "open f: read-only file system (mount the disk for writing)"},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}, "open f: no such file or directory"},
	} {
		if got := Explain(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestReadUpTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadUpTo(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	for _, endless := range []string{path, "/dev/zero"} {
		if _, err := ReadUpTo(endless, 4); err == nil || !strings.Contains(err.Error(), "has more than 4 bytes") {
			t.Errorf("%s: %v", endless, err)
		}
	}
}
