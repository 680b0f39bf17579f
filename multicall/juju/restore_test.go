package juju

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state/backupfile"
)

// TestRestoredURL checks that the state of an environment whose host is lost is found again, with the
// credentials in the backup.
func TestRestoredURL(t *testing.T) {
	var b bytes.Buffer
	w := backupfile.NewWriter(&b)
	err := errors.Join(
		w.AddKeys(nil),
		w.Add(backupfile.CredentialName("key-0a1b2c3d"), func(to io.Writer) error { _, err := io.WriteString(to, "KEY"); return err }),
		w.Close(backupfile.Header{Kind: backupfile.Environment, State: "etcd://h:1/x?key=credentials/key-0a1b2c3d"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	a, err := backupfile.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), backupfile.Environment)
	if err != nil {
		t.Fatal(err)
	}
	e := home.Environment{Dir: t.TempDir(), Record: home.Record{State: "sqlite:/x"}}
	kept := filepath.Join(e.Dir, "credentials", "key-0a1b2c3d")
	for _, tt := range []struct {
		cmd  restoreCmd
		want string
	}{
		{restoreCmd{}, "sqlite:/x"}, // a new environment has its own store
		{restoreCmd{Replace: true, State: "sqlite:/x"}, "sqlite:/x"},
		{restoreCmd{Replace: true}, "etcd://h:1/x?key=" + kept},
	} {
		r := &restore{cmd: tt.cmd, archive: a}
		if got, err := r.chooseStateURL(e); err != nil || got != tt.want {
			t.Errorf("%+v: %q, %v", tt.cmd, got, err)
		}
	}
	data, err := os.ReadFile(kept)
	info, serr := os.Stat(kept)
	if err := errors.Join(err, serr); err != nil || string(data) != "KEY" || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %q, %v", err, data, info.Mode())
	}
}

// TestSetAsideAllOrNone tries to set three directories aside, one of which cannot be moved.
func TestSetAsideAllOrNone(t *testing.T) {
	var b bytes.Buffer
	w := backupfile.NewWriter(&b)
	if err := errors.Join(w.AddKeys(nil), w.Close(backupfile.Header{Kind: backupfile.Environment})); err != nil {
		t.Fatal(err)
	}
	a, err := backupfile.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), backupfile.Environment)
	if err != nil {
		t.Fatal(err)
	}
	e := home.Environment{Dir: t.TempDir()}
	machine := e.MachineDir("0")
	for _, dir := range []string{"agents/unit-a-0/x", "units/b-0/x", "agents/unit-c-0/x"} {
		if err := os.MkdirAll(filepath.Join(machine, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(machine, "units", name)); err != nil {
			t.Fatal(err)
		}
	}
	link("a-0", "../agents/unit-a-0")
	link("c-0", "c-0")                // a symlink to itself
	link("d-0", "../agents/unit-d-0") // a dangling symlink
	said := bytes.Buffer{}
	r := &restore{archive: a, o: &operator{streams: console.Streams{Err: &said}}}

	if _, err := r.setAsideUnknown(e); err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"a-0", "b-0"} {
		if _, err := os.Stat(filepath.Join(machine, "units", name, "x")); err != nil {
			t.Errorf("%s is not where it was: %v", name, err)
		}
	}
	if strings.Contains(said.String(), "c-0") {
		t.Errorf("said: %s", said.String())
	}

	if err := os.Remove(filepath.Join(machine, "units", "c-0")); err != nil {
		t.Fatal(err)
	}
	link("c-0", "../agents/unit-c-0")
	if all, err := r.setAsideUnknown(e); err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
	for _, name := range []string{"a-0", "b-0", "c-0"} {
		if _, err := os.Stat(filepath.Join(machine, "set-aside", name+"-"+a.Sum[:8], "x")); err != nil {
			t.Errorf("%s is not aside: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(machine, "units")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
