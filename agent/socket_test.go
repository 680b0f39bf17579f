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
		user socketUser
		want []string
	}{
		{socketUser{0, there, true}, []string{"/run/bijou"}},
		{socketUser{1000, there, true}, []string{there + "/bijou", "/tmp/bijou-1000"}},
		{socketUser{1000, there, false}, []string{"/tmp/bijou-1000", there + "/bijou"}}, // it goes at the last logout
		{socketUser{1000, "", true}, []string{"/tmp/bijou-1000"}},
		{socketUser{1000, "/nowhere", true}, []string{"/tmp/bijou-1000"}},
		{socketUser{1000, deep, true}, []string{"/tmp/bijou-1000"}}, // too long for a socket
		{socketUser{1000, special, true}, []string{special + "/bijou", "/tmp/bijou-1000"}},
	} {
		if got := socketBases(tc.user); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %q, want %q", tc.user, got, tc.want)
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
