package unitdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// tree returns the contents of a directory: a file's text, a symlink's target, and "/" for a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case e.IsDir():
			all[name] = "/"
		case e.Type() == fs.ModeSymlink:
			all[name], err = os.Readlink(path)
		default:
			var data []byte
			data, err = os.ReadFile(path)
			all[name] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lay creates files, directories and symlinks.
func lay(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if text == "/" {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatHooksHaveMadeGoesAlong(t *testing.T) {
	for _, tt := range []struct {
		about            string
		old, made, fresh map[string]string
		want             map[string]string
	}{
		{"a database beside the charm", map[string]string{"a": "1"}, map[string]string{".unit-state.db": "x"}, map[string]string{"a": "2"},
			map[string]string{"a": "2", ".unit-state.db": "x"}},
		{"what the charm dropped is gone", map[string]string{"a": "1", "d/b": "1"}, nil, map[string]string{"c": "2"},
			map[string]string{"c": "2"}},
		{"also if hooks have changed it", map[string]string{"a": "1"}, map[string]string{"a": "x"}, map[string]string{"c": "2"},
			map[string]string{"c": "2"}},
		{"the charm's own wins", map[string]string{"a": "1"}, map[string]string{"c": "x"}, map[string]string{"c": "2"},
			map[string]string{"c": "2"}},
		{"a folder of their own", map[string]string{"a": "1"}, map[string]string{"d/e/f": "x", "g": "/"}, map[string]string{"a": "2"},
			map[string]string{"a": "2", "d": "/", "d/e": "/", "d/e/f": "x", "g": "/"}},
		{"in a folder of the charm", map[string]string{"d/a": "1"}, map[string]string{"d/b": "x"}, map[string]string{"d/a": "2"},
			map[string]string{"d": "/", "d/a": "2", "d/b": "x"}},
		{"in a folder that the charm dropped", map[string]string{"d/a": "1", "e/a": "1"}, map[string]string{"d/b": "x"}, map[string]string{"a": "2"},
			map[string]string{"a": "2", "d": "/", "d/b": "x"}},
		{"where the charm has a file now", map[string]string{"a": "1"}, map[string]string{"d/b": "x"}, map[string]string{"d": "2"},
			map[string]string{"d": "2"}},
		{"where the charm has a folder now", map[string]string{"a": "1"}, map[string]string{"d": "x"}, map[string]string{"d/b": "2"},
			map[string]string{"d": "/", "d/b": "2"}},
		{"no code compiled from the old charm's", map[string]string{"a": "1"}, map[string]string{"__pycache__/a.pyc": "x"}, map[string]string{"a": "2"},
			map[string]string{"a": "2"}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			f := Folder(t.TempDir())
			lay(t, f.Path("charm.new"), tt.old)
			if err := f.replaceCharm(func(string) {}); err != nil {
				t.Fatal(err)
			}
			lay(t, f.Charm(), tt.made)
			lay(t, f.Path("charm.new"), tt.fresh)
			if err := f.replaceCharm(func(string) {}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tree(t, f.Charm())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatGoesAlongStaysWhatItIs(t *testing.T) {
	f := Folder(t.TempDir())
	lay(t, f.Path("charm.new"), map[string]string{"a": "1"})
	if err := f.replaceCharm(func(string) {}); err != nil {
		t.Fatal(err)
	}
	lay(t, f.Charm(), map[string]string{"data/log": "one"})
	if err := os.Symlink("/nowhere", filepath.Join(f.Charm(), "link")); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(f.Charm(), "data/log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := os.Chmod(filepath.Join(f.Charm(), "data"), 0o750); err != nil {
		t.Fatal(err)
	}
	lay(t, f.Path("charm.new"), map[string]string{"a": "2"})
	if err := f.replaceCharm(func(string) {}); err != nil {
		t.Fatal(err)
	}
	log.WriteString(", two")
	want := map[string]string{"a": "2", "data": "/", "data/log": "one, two", "link": "/nowhere"}
	if diff := cmp.Diff(want, tree(t, f.Charm())); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(f.Charm(), "data"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("data is %v, %v", info.Mode(), err)
	}
}

func TestWhatHooksHaveMadeOutlivesADeployKilledAnywhere(t *testing.T) {
	for _, point := range []string{"before-unpack", "before-swap", "after-exchange", "after-swap"} {
		t.Run(point, func(t *testing.T) {
			st := statetest.New(t)
			f := Of(t.TempDir(), "mysql/0")
			if err := os.MkdirAll(string(f), 0o755); err != nil {
				t.Fatal(err)
			}
			old, fresh := statetest.MySQL(), statetest.MySQL()
			old["old"], old["revision"], fresh["fresh"] = "x", "1\n", "x"
			first, second := statetest.AddCharm(t, st, old), statetest.AddCharm(t, st, fresh)
			deployKilled(t, st, first, f, "")
			lay(t, f.Charm(), map[string]string{".unit-state.db": "x"})
			deployKilled(t, st, second, f, point)
			deployKilled(t, st, second, f, "")
			got := tree(t, f.Charm())
			if _, stays := got["old"]; stays || got["fresh"] != "x" || got[".unit-state.db"] != "x" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// deployKilled deploys until it is killed at the given point.
func deployKilled(t *testing.T, st *state.State, c state.Charm, f Folder, point string) {
	t.Helper()
	type killed struct{}
	defer func() {
		if r := recover(); r != nil && r != any(killed{}) {
			panic(r)
		}
	}()
	err := PutCharm(t.Context(), st, c.URL.String(), f, nil, func(p string) {
		if p == point {
			panic(killed{})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheCharmPutAsideIsPutBack(t *testing.T) {
	f := Folder(t.TempDir())
	lay(t, f.Path("charm.new"), map[string]string{"a": "1"})
	lay(t, f.Path("charm.old"), map[string]string{"data": "x"})
	if err := f.restoreOldCharm(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"data": "x"}, tree(t, f.Charm())); diff != "" {
		t.Error(diff)
	}
	if err := f.swapByRename(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"charm": "/", "charm/a": "1"}, tree(t, string(f))); diff != "" {
		t.Error(diff)
	}
}
