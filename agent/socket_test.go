package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketPathsFit(t *testing.T) {
	for _, unit := range []string{"wordpress/0", strings.Repeat("long", 30) + "/12"} {
		path := socketPath("/run/user/1000/bijou/0123abcd", unit)
		if len(path) > maxSocketPath {
			t.Errorf("%q has %d bytes", path, len(path))
		}
	}
	if got := socketPath("/d", "a/1"); got != "/d/a-1" {
		t.Errorf("a short one is %q", got)
	}
}

// Neither lies where logind clears up behind a user who logs out.
func TestSocketBase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for uid, want := range map[int]string{0: "/run/bijou", 1000: "/tmp/bijou-1000"} {
		if got := socketBase(uid); got != want {
			t.Errorf("uid %d: %q, want %q", uid, got, want)
		}
		for _, name := range []string{"a/0", strings.Repeat("long", 30) + "/12"} {
			if path := socketPath(filepath.Join(socketBase(uid), shortHash("", 8)+"-"+shortHash("", 8)), name); len(path) > maxSocketPath {
				t.Errorf("%q has %d bytes", path, len(path))
			}
		}
	}
}

func TestSocketsOfAnEnvironmentAreRemoved(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	made := map[string]string{}
	for _, at := range []string{"one 0", "one 1", "two 0"} {
		uuid, machine, _ := strings.Cut(at, " ")
		dir, err := makeSocketDir(t.Name()+uuid, "/machines/"+machine)
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
	if err := makePrivateDir(open); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	if err := makePrivateDir(link); err == nil {
		t.Error("a link was taken for a folder of ours")
	}
}
