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

// TestSocketBase checks the directory of sockets for root and for other users. logind must not clear either
// directory when the user logs out.
func TestSocketBase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for uid, want := range map[int]string{0: "/run/bijou", 1000: "/tmp/bijou-1000"} {
		b := socketsOf(uid)
		base := filepath.Join(b.parent, b.name)
		if base != want {
			t.Errorf("uid %d: %q, want %q", uid, base, want)
		}

		longest := base + "-4294967295" // with the longest suffix of os.MkdirTemp
		for _, name := range []string{"a/0", strings.Repeat("long", 30) + "/12"} {
			if path := socketPath(filepath.Join(longest, shortHash("", 8)+"-"+shortHash("", 8)), name); len(path) > maxSocketPath {
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

// TestSocketBaseIsTaken checks that the agent does not use a guessable name if a file, a symlink or another
// user's directory already has it.
func TestSocketBaseIsTaken(t *testing.T) {
	for _, tt := range []struct {
		name string
		take func(t *testing.T, path string) error
	}{
		{"by a symlink", func(t *testing.T, path string) error { return os.Symlink(t.TempDir(), path) }},
		{"by a dangling symlink", func(_ *testing.T, path string) error { return os.Symlink(path+"-nowhere", path) }},
		{"by a file", func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"by another user", func(t *testing.T, path string) error { return giveAway(t, path, 0o700) }},
		{"by another user, for all", func(t *testing.T, path string) error { return giveAway(t, path, 0o777) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := socketBase{parent: t.TempDir(), name: "bijou-7"}
			taken := filepath.Join(b.parent, b.name)
			if err := tt.take(t, taken); err != nil {
				t.Fatal(err)
			}
			if err := giveAwayIfRoot(taken+"-0", 0o777); err != nil { // the names after it may be taken too
				t.Fatal(err)
			}

			dir, err := b.makeIn("uuid", "machine")
			if err != nil {
				t.Fatal(err)
			}
			if base := filepath.Dir(dir); base == taken || !isPrivateDir(base) || !isPrivateDir(dir) {
				t.Errorf("the sockets are in %q", dir)
			}
			if again, err := b.makeIn("uuid", "machine"); again != dir || err != nil {
				t.Errorf("the second time: %q, %v, want %q", again, err, dir)
			}
			if entries, _ := os.ReadDir(taken); len(entries) > 0 {
				t.Errorf("what is not ours was written to: %v", entries)
			}

			if err := b.remove("uuid"); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
				t.Errorf("the folder of sockets is left: %v", err)
			}
			if _, err := os.Lstat(taken); err != nil {
				t.Errorf("what is not ours was removed: %v", err)
			}
		})
	}
}

// giveAway creates a directory that belongs to another user.
func giveAway(t *testing.T, path string, mode os.FileMode) error {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root makes folders of other users")
	}
	return giveAwayIfRoot(path, mode)
}

func giveAwayIfRoot(path string, mode os.FileMode) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return os.Chown(path, 54321, 54321)
}

// TestSocketBaseOfTheFormerBinary checks that the agent uses the directory that the former binary has
// created, and closes a directory that was open to others.
func TestSocketBaseOfTheFormerBinary(t *testing.T) {
	b := socketBase{parent: t.TempDir(), name: "bijou-7"}
	open := filepath.Join(b.parent, b.name)
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}

	dir, err := b.makeIn("uuid", "machine")
	if err != nil || filepath.Dir(dir) != open {
		t.Errorf("got %q, %v", dir, err)
	}
	if !isPrivateDir(open) {
		t.Error("the folder stays open to others")
	}
}

func TestMachineSocketsAreRecorded(t *testing.T) {
	machine, uuid := t.TempDir(), t.Name()
	dir, err := makeMachineSockets(uuid, machine)
	if err != nil {
		t.Fatal(err)
	}
	defer RemoveSockets(uuid)

	record := filepath.Join(machine, "sockets")
	if got, err := os.ReadFile(record); err != nil || string(got) != dir+"\n" {
		t.Errorf("recorded %q, %v, want %q", got, err, dir)
	}

	other := socketPath(dir, "app/0")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removeMachineSockets(machine)
	if _, err := os.Stat(record); err != nil {
		t.Errorf("another process has a socket there, and the record is gone: %v", err)
	}

	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	removeMachineSockets(machine)
	for _, path := range []string{record, dir} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%q is left: %v", path, err)
		}
	}
}
