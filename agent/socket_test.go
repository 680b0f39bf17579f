package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSocketPathsFit(t *testing.T) {
	for _, unit := range []string{"wordpress/0", strings.Repeat("long", 30) + "/12"} {
		path := socketPath("/run/user/1000/bijou/0123abcd", unit)
		if len(path) > maxSocket {
			t.Errorf("%q has %d bytes", path, len(path))
		}
	}
	if got := socketPath("/d", "a/1"); got != "/d/a-1" {
		t.Errorf("a short one is %q", got)
	}
}

func TestSocketBases(t *testing.T) {
	there, root := t.TempDir(), t.TempDir()
	deep := filepath.Join(root, strings.Repeat("d", maxSocket-len(root)-40))
	special := filepath.Join(root, "a[b]*")
	for _, dir := range []string{deep, special} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		uid     int
		runtime string
		want    []string
	}{
		{0, there, []string{"/run/bijou"}},
		{1000, there, []string{there + "/bijou", "/tmp/bijou-1000"}},
		{1000, "", []string{"/tmp/bijou-1000"}},
		{1000, "/nowhere", []string{"/tmp/bijou-1000"}},
		{1000, deep, []string{"/tmp/bijou-1000"}}, // too long for a socket
		{1000, special, []string{special + "/bijou", "/tmp/bijou-1000"}},
	} {
		if got := socketBases(tc.uid, tc.runtime); !slices.Equal(got, tc.want) {
			t.Errorf("uid %d, %q: %q, want %q", tc.uid, tc.runtime, got, tc.want)
		}
	}
}

func TestSocketsOfAnEnvironmentAreRemoved(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	made := map[string]string{}
	for _, at := range []string{"one 0", "one 1", "two 0"} {
		uuid, machine, _ := strings.Cut(at, " ")
		dir, err := socketDir(t.Name()+uuid, "/machines/"+machine)
		if err == nil {
			err = os.WriteFile(socketPath(dir, "app/0"), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		made[at] = dir
	}
	if err := RemoveSockets(t.Name() + "one"); err != nil {
		t.Fatal(err)
	}
	for at, dir := range made {
		if _, err := os.Stat(dir); os.IsNotExist(err) != strings.HasPrefix(at, "one") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if err := RemoveSockets(t.Name() + "two"); err != nil {
		t.Fatal(err)
	}
}

func TestOwnDir(t *testing.T) {
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(open); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(link); err == nil {
		t.Error("a link was taken for a folder of ours")
	}
}
