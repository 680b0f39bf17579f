package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"default", "a", "Prod-2", "x.y_z", "1"} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", "-x", ".x", "a\nb", "a\n", "a b", "current", "é", string(make([]byte, 64))} {
		if CheckName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func saveEnvironment(t *testing.T, h Home, name string) Environment {
	t.Helper()
	e := Environment{Dir: h.Path(name), Record: Record{Name: name, UUID: "u", State: "sqlite:/x", Provider: "local", Tools: "1-2"}}
	if err := errors.Join(os.MkdirAll(e.Dir, 0o700), e.Save()); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestChoose(t *testing.T) {
	t.Setenv("JUJU_ENV", "")
	h := Home{Dir: t.TempDir()}
	if _, err := h.Choose(""); !errors.Is(err, ErrNoEnvironment) {
		t.Errorf("error %v without environments", err)
	}
	a := saveEnvironment(t, h, "a")
	want := func(name, want string) {
		t.Helper()
		if e, err := h.Choose(name); err != nil || e.Name != want {
			t.Errorf("Choose(%q): %q, %v; want %q", name, e.Name, err, want)
		}
	}
	want("", "a") // the only environment
	saveEnvironment(t, h, "b")
	if _, err := h.Choose(""); err == nil {
		t.Error("one of two was chosen")
	}
	if err := h.SetCurrent("b"); err != nil {
		t.Fatal(err)
	}
	want("", "b")
	want("a", "a")
	t.Setenv("JUJU_ENV", "a")
	want("", "a")
	want("b", "b")
	if _, err := h.Choose("c"); !errors.Is(err, ErrNoEnvironment) {
		t.Errorf("error %v of an unknown one", err)
	}
	if got, err := Load(a.Dir); err != nil || cmp.Diff(a, got) != "" {
		t.Errorf("loaded %+v, %v", got, err)
	}
}

func TestFoldersWithPatternCharacters(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), `a[b]*\c`)}
	if names, err := h.Names(); err != nil || names != nil {
		t.Errorf("before there is a folder: %q, %v", names, err)
	}
	e := saveEnvironment(t, h, "x")
	if names, err := h.Names(); err != nil || !cmp.Equal(names, []string{"x"}) {
		t.Errorf("environments %q, %v", names, err)
	}
	for _, id := range []string{"0", "1", "10"} {
		if err := os.MkdirAll(e.MachineDir(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := e.MachineDirs()
	if diff := cmp.Diff([]string{e.MachineDir("0"), e.MachineDir("1"), e.MachineDir("10")}, dirs); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestClaimIsExclusive(t *testing.T) {
	h := Home{Dir: filepath.Join(t.TempDir(), "home")}
	c, err := h.Lock("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lock("a"); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
	if other, err := h.Lock("b"); err != nil {
		t.Error(err)
	} else {
		other.Release()
	}
	if c.Bootstrapped() {
		t.Error("an empty folder counts as an environment")
	}
	saveEnvironment(t, h, "a")
	if !c.Bootstrapped() {
		t.Error("an environment does not count as one")
	}
	readOnly := filepath.Join(h.Path("a"), "charm", "dir")
	if err := errors.Join(os.MkdirAll(readOnly, 0o700), os.WriteFile(filepath.Join(readOnly, "f"), nil, 0o400), os.Chmod(readOnly, 0o500)); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	c.Release()
	if _, err := os.Stat(h.Path("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	again, err := h.Lock("a")
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

func TestInstallTools(t *testing.T) {
	dir := t.TempDir()
	var name string
	for range 2 { // repeated, since a second call must succeed too
		var err error
		if name, err = InstallTools(dir, "9", []string{"bijou", "juju"}); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(dir, "tools", name)
	if to, err := os.Readlink(filepath.Join(folder, "juju")); err != nil || to != "bijou" {
		t.Errorf("link to %q, %v", to, err)
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(folder, "bijou"))
	if err != nil || info.Size() != self.Size() || info.Mode() != 0o755 {
		t.Errorf("binary %v, %v", info, err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestSaveKeepsWhatItDoesNotKnow checks that saving keeps unknown fields of environment.yaml, which a
// newer binary may have written.
func TestSaveKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, recordFile)
	was := "name: a\nuuid: u\nstate: sqlite:state/state.db\nprovider: local\ntools: 1-old\nfuture:\n    list: [1, 2]\nlabel: red\n"
	if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	e.Tools = "2-new"
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	want := strings.Replace(was, "1-old", "2-new", 1)
	want = strings.Replace(want, "[1, 2]", "\n        - 1\n        - 2", 1)
	if got := strings.ReplaceAll(string(data), ": \n", ":\n"); got != strings.ReplaceAll(want, ": \n", ":\n") || err != nil {
		t.Errorf("got %s, %v", data, err)
	}
}
