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
		if len(path) > maxSocket {
			t.Errorf("%q has %d bytes", path, len(path))
		}
	}
	if got := socketPath("/d", "a/1"); got != "/d/a-1" {
		t.Errorf("a short one is %q", got)
	}
}

func TestSocketBase(t *testing.T) {
	there := t.TempDir()
	for _, tc := range []struct {
		uid     int
		runtime string
		want    string
	}{
		{0, there, "/run/bijou"},
		{1000, there, there + "/bijou"},
		{1000, "", "/tmp/bijou-1000"},
		{1000, "/nowhere", "/tmp/bijou-1000"},
	} {
		if got := socketBase(tc.uid, tc.runtime); got != tc.want {
			t.Errorf("uid %d, %q: %q, want %q", tc.uid, tc.runtime, got, tc.want)
		}
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
