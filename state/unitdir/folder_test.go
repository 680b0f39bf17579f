package unitdir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestDeployReplacesTheCharmAndKeepsTheRest(t *testing.T) {
	st := statetest.New(t)
	f := Of(t.TempDir(), "mysql/0")
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		t.Fatal(err)
	}
	old, fresh := statetest.MySQL(), statetest.MySQL()
	old["old"], old["revision"] = "x", "1\n"
	fresh["fresh"] = "x"
	for _, c := range []state.Charm{statetest.AddCharm(t, st, old), statetest.AddCharm(t, st, fresh)} {
		// A killed deploy may have left these:
		if err := os.MkdirAll(f.Path("charm.new/half"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path("charm.zip"), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := PutCharm(t.Context(), st, c.URL.String(), f, nil, func(string) {}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path("data"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{"charm/fresh": true, "charm/old": false, "charm.new": false, "data": true, "charm/hooks/install": true} {
		if _, err := os.Stat(f.Path(path)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", path, err == nil, want)
		}
	}
	if left, _ := filepath.Glob(f.Path("*.zip")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestFolderIsLockedOnce(t *testing.T) {
	f := Of(t.TempDir(), "mysql/0")
	first, err := f.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.tryLock(); err != unix.EWOULDBLOCK {
		t.Errorf("a second lock: %v", err)
	}
	if err := f.Remove(); err == nil {
		t.Error("a folder in use was removed")
	}
	first.Close()
	if err := f.Remove(); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(string(f)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestToolsLinkFollowsTheAgent(t *testing.T) {
	f := Folder(t.TempDir())
	for _, tools := range []string{"/tools/1", "/tools/1", "/tools/2"} {
		if err := f.LinkTools(tools); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.Readlink(f.ToolsPath()); got != tools {
			t.Errorf("links to %q, want %q", got, tools)
		}
	}
}

// TestFailedSwapKeepsTheList makes a swap fail. The files of the charm that is still in place must count as
// files of a charm, so that the next deploy removes them.
func TestFailedSwapKeepsTheList(t *testing.T) {
	st := statetest.New(t)
	f := Of(t.TempDir(), "mysql/0")
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		t.Fatal(err)
	}
	var charms []string
	for i, name := range []string{"old", "failed", "fresh"} {
		files := statetest.MySQL()
		files[name], files["revision"] = "x", fmt.Sprintln(i)
		charms = append(charms, statetest.AddCharm(t, st, files).URL.String())
	}
	none := func(string) {}
	if err := PutCharm(t.Context(), st, charms[0], f, nil, none); err != nil {
		t.Fatal(err)
	}

	cannotSwap := func(point string) {
		if point == "before-swap" {
			if err := os.RemoveAll(f.Path("charm.new")); err != nil {
				t.Error(err)
			}
		}
	}
	if err := PutCharm(t.Context(), st, charms[1], f, nil, cannotSwap); err == nil {
		t.Fatal("the swap did not fail")
	}
	if _, err := os.Stat(f.Path("charm/old")); err != nil {
		t.Errorf("the charm of before: %v", err)
	}

	if err := PutCharm(t.Context(), st, charms[2], f, nil, none); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"old": false, "failed": false, "fresh": true} {
		if _, err := os.Stat(f.Path("charm/" + name)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", name, err == nil, want)
		}
	}
}

// TestOneStorageDoesNotReleaseAnother requests storages of two units at the same place. When the storage that
// cannot be bound is released, the other one must remain in place.
func TestOneStorageDoesNotReleaseAnother(t *testing.T) {
	machine, location := t.TempDir(), filepath.Join(t.TempDir(), "data")
	storage := func(id string) Storage {
		return StorageOf(machine, "e", state.Storage{ID: id, Pool: "rootfs", Location: location})
	}
	first, second := Of(machine, "db/0"), Of(machine, "db/1")
	if err := first.BindStorage(storage("data/0")); err != nil {
		t.Fatal(err)
	}
	defer first.ReleaseStorage("data/0")
	if err := os.WriteFile(filepath.Join(location, "word"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := second.BindStorage(storage("data/1")); err == nil {
		t.Fatal("two storages are bound at one place")
	}
	if err := second.ReleaseStorage("data/1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(location, "word")); err != nil {
		t.Errorf("the other one is gone: %v", err)
	}
}

// TestMovedStorageIsReleased moves a storage to a new location while a process uses the old one. A release must still
// find the old location afterwards.
func TestMovedStorageIsReleased(t *testing.T) {
	machine := t.TempDir()
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	storage := func(location string) Storage {
		return StorageOf(machine, "e", state.Storage{ID: "data/0", Pool: "rootfs", Location: location})
	}
	f := Of(machine, "db/0")
	if err := f.BindStorage(storage(before)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.ReleaseStorage("data/0") })
	open, err := os.Create(filepath.Join(before, "word"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	if _, err := os.Readlink(before); err == nil {
		t.Skip("this user cannot mount, and a symlink is never busy")
	}
	if err := f.BindStorage(storage(after)); err == nil {
		t.Fatal("a storage in use was moved")
	}
	open.Close()
	if err := f.ReleaseStorage("data/0"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(before, "word")); err == nil {
		t.Error("the storage is still at its former location")
	}
}
