package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCredentials checks that the files of a URL are kept, and are found in a copy of the directory.
func TestCredentials(t *testing.T) {
	given := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(given, name)
		if err := errors.Join(os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, key := write("the ca&1.pem", "CA", 0o644), write("key", "KEY", 0o600)
	e := Environment{Dir: filepath.Join(t.TempDir(), "a"), Record: Record{Name: "a", UUID: "u", Provider: "local", Tools: "1-2"}}
	var err error
	e.State, err = e.KeepCredentials("etcd://h1:1,h2:2/x?ca=" + strings.ReplaceAll(ca, "&", "%26") + "&user=u&key=" + key)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(filepath.Join(e.Dir, recordFile))
	if err != nil || !strings.Contains(string(record), "state: etcd://h1:1,h2:2/x?ca=credentials/ca-") || strings.Contains(string(record), given) {
		t.Errorf("%v: %s", err, record)
	}
	moved := e.Dir + "-moved"
	if err := os.Rename(e.Dir, moved); err != nil {
		t.Fatal(err)
	}
	copied, err := Load(moved)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	_, err = mapCredentialFiles(copied.State, func(option, path string) (string, error) {
		data, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		found[option] = string(data) + " " + info.Mode().String()
		return path, errors.Join(err, serr)
	})
	want := map[string]string{"ca": "CA -rw-------", "key": "KEY -rw-------"}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if again, err := copied.KeepCredentials(copied.State); err != nil || again != copied.State {
		t.Errorf("kept again: %q, %v", again, err)
	}
	copied.State = "sqlite:/x"
	if err := copied.DropCredentials(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(moved, credentialsFolder)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := e.KeepCredentials("etcd://h:1/x?key=" + write("public", "KEY", 0o644)); err == nil {
		t.Error("a secret was kept that others may read")
	}
}
