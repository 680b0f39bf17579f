package juju

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"bijou/multicall/home"
	"bijou/state/archive"
)

// TestRestoredURL has an environment whose host is lost find its state again, with the
// credentials of the backup.
func TestRestoredURL(t *testing.T) {
	var b bytes.Buffer
	w := archive.NewWriter(&b)
	err := errors.Join(
		w.AddKeys(nil),
		w.Add(archive.CredentialName("key-0a1b2c3d"), func(to io.Writer) error { _, err := io.WriteString(to, "KEY"); return err }),
		w.Close(archive.Header{Kind: archive.Environment, State: "etcd://h:1/x?key=credentials/key-0a1b2c3d"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), archive.Environment)
	if err != nil {
		t.Fatal(err)
	}
	e := home.Environment{Dir: t.TempDir(), Record: home.Record{State: "sqlite:/x"}}
	kept := filepath.Join(e.Dir, "credentials", "key-0a1b2c3d")
	for _, tt := range []struct {
		cmd  restoreCmd
		want string
	}{
		{restoreCmd{}, "sqlite:/x"}, // another environment is elsewhere
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
