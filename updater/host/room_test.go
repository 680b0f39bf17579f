package host_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"bijou/updater/host"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestRoom checks the free space and the installed files that a worker reports. Its own downloads count as
// free space.
func TestRoom(t *testing.T) {
	u := &units{}
	dir := t.TempDir()
	h, err := host.New(host.Options{Dir: filepath.Join(dir, "state"), Services: u, Program: filepath.Join(dir, "bin", "bijou")})
	if err != nil {
		t.Fatal(err)
	}
	file := serve(t, map[string][]byte{"one": archive(t, tar.Header{Name: "bin/etcd"})})
	to := filepath.Join(dir, "opt", "etcd")
	m := release.Manifest{Components: []release.Component{
		{Name: "etcd", Artifact: &release.Artifact{Archive: file("one", to)}},
		{Name: "new", Artifact: &release.Artifact{Archive: file("one", filepath.Join(dir, "none", "so", "far"))}},
		{Name: "vault", Artifact: &release.Artifact{Image: "vault:1"}},
		{Name: "files"},
	}}

	rooms, installed, err := h.Room(m)
	if err != nil || len(installed) != 0 {
		t.Fatalf("%v, %v", installed, err)
	}
	places := map[string]string{}
	for _, r := range rooms {
		if r.Free <= 0 || !filepath.IsAbs(r.At) {
			t.Errorf("%+v", r)
		}
		for _, what := range r.For {
			places[what] = r.At
		}
	}
	for _, what := range []string{record.RoomDownloads, record.RoomPackages, record.RoomProgram, filepath.Join(dir, "opt"), filepath.Join(dir, "none", "so")} {
		if places[what] == "" {
			t.Errorf("nobody knows how much room there is for %s: %v", what, rooms)
		}
		delete(places, what)
	}
	if len(places) > 0 {
		t.Errorf("there is room for %v, too", places)
	}
	if rooms[0].At != filepath.Join(dir, "state") {
		t.Errorf("the first room is %+v", rooms[0])
	}

	if err := h.Update(t.Context(), m.Components[0]); err != nil {
		t.Fatal(err)
	}
	rooms, installed, err = h.Room(m)
	sum := record.ShortDigest(m.Components[0].Artifact.Archive.SHA256)
	if diff := cmp.Diff(map[string]string{"etcd": sum}, installed); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}

	// Room returns nothing if its whole list does not fit.
	for i := range 200 {
		name := filepath.Join(dir, "state", "components", strings.Repeat("c", i+1)+".json")
		if err := os.WriteFile(name, []byte(`{"artifact":"deb 00 ","phase":"current"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if none, all, err := h.Room(m); none != nil || all != nil || err != nil {
		t.Errorf("%v, %v, %v", none, all, err)
	}
	for i := range 200 {
		if err := os.Remove(filepath.Join(dir, "state", "components", strings.Repeat("c", i+1)+".json")); err != nil {
			t.Fatal(err)
		}
	}

	// Other work on the disk must stay below this size.
	const size = 512 << 20
	for _, name := range []string{"downloads", "releases"} {
		path := filepath.Join(dir, "state", name, "large")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
			t.Skip("this file system takes no room in advance:", err)
		}
	}
	after, _, err := h.Room(m)
	if err != nil || after[0].Free < rooms[0].Free-size {
		t.Errorf("downloads of %d bytes have taken %d of the room, %v", 2*size, rooms[0].Free-after[0].Free, err)
	}
}
