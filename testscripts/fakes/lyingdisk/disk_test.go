package lyingdisk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/kit/applets"
)

// TestMain lets this binary act also as a disk.
func TestMain(m *testing.M) {
	applets.MainWith(m, multicall.Options{}, map[string]func(){Program: Main}, func() {})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	if sync {
		check(t, f.Sync())
	}
	check(t, f.Close())
}

func syncDirectory(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != want {
		t.Errorf("%s is %q (%v), want %q", filepath.Base(path), data, err, want)
	}
}

func wantNone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", filepath.Base(path), err)
	}
}

// TestWhatSurvives cuts the power after writes, new names and removals, some of which were synced.
func TestWhatSurvives(t *testing.T) {
	d := New(t)
	at := func(name string) string { return filepath.Join(d.Path, name) }
	for _, name := range []string{"kept", "changed", "removed", "replaced", "shortened"} {
		write(t, at(name), "old "+name, true)
	}
	check(t, os.Mkdir(at("dir"), 0o755))
	write(t, at("dir/inner"), "inner", true)
	syncDirectory(t, at("dir"))
	syncDirectory(t, d.Path)

	write(t, at("changed"), "new, and longer than it was", false)
	check(t, os.Truncate(at("shortened"), 3))
	check(t, os.Remove(at("removed")))
	write(t, at("unsynced"), "x", false)
	write(t, at("nameless"), "synced, under a name that was not", true)
	write(t, at("next"), "new replaced", true)
	check(t, os.Rename(at("next"), at("replaced")))
	check(t, os.Rename(at("dir"), at("moved")))
	d.Cut(0)

	for _, name := range []string{"kept", "changed", "removed", "replaced", "shortened"} {
		wantFile(t, at(name), "old "+name)
	}
	wantFile(t, at("dir/inner"), "inner")
	for _, name := range []string{"unsynced", "nameless", "next", "moved"} {
		wantNone(t, at(name))
	}

	// This does the same, but syncs correctly.
	write(t, at("changed"), "new", true)
	write(t, at("next"), "new replaced", true)
	check(t, os.Rename(at("next"), at("replaced")))
	check(t, os.Remove(at("removed")))
	check(t, os.Rename(at("dir"), at("moved")))
	syncDirectory(t, d.Path)
	d.Cut(0)
	wantFile(t, at("changed"), "new")
	wantFile(t, at("replaced"), "new replaced")
	wantFile(t, at("moved/inner"), "inner")
	wantNone(t, at("removed"))
	wantNone(t, at("next"))
}

// TestFailures makes reads, writes and syncs fail. The data of a failed sync is lost, even if a later sync
// succeeds.
func TestFailures(t *testing.T) {
	d := New(t)
	path := filepath.Join(d.Path, "file")
	write(t, path, "old", true)
	syncDirectory(t, d.Path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)

	d.Fail("write")
	if _, err := f.WriteAt([]byte("new"), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("a write: %v", err)
	}
	d.Heal()
	d.Fail("sync")
	_, err = f.WriteAt([]byte("new"), 0)
	check(t, err)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync: %v", err)
	}
	d.Heal()
	check(t, f.Sync())
	check(t, f.Close())
	if n := d.Failed("sync"); n != 1 {
		t.Errorf("%d syncs failed", n)
	}
	d.Cut(0)
	wantFile(t, path, "old")

	d.Fail("read")
	if _, err := os.ReadFile(path); !errors.Is(err, syscall.EIO) {
		t.Errorf("a read: %v", err)
	}
}

// TestTornWrites checks that some of the unsynced pages can survive.
func TestTornWrites(t *testing.T) {
	d := New(t)
	path := filepath.Join(d.Path, "file")
	old, fresh := bytes.Repeat([]byte("o"), 64*pageSize), bytes.Repeat([]byte("n"), 64*pageSize)
	write(t, path, string(old), true)
	syncDirectory(t, d.Path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	_, err = f.WriteAt(fresh, 0)
	check(t, err)
	check(t, f.Close())
	d.Cut(0.5)

	data, err := os.ReadFile(path)
	check(t, err)
	if n := bytes.Count(data, []byte("n")) / pageSize; n == 0 || n == 64 || len(data) != len(old) {
		t.Errorf("%d of 64 pages have survived, of %d bytes", n, len(data))
	}
}
