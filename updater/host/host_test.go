package host_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/host"
	"bijou/updater/release"
)

// units are fake services that record the calls.
type units struct {
	mu   sync.Mutex
	runs map[string]bool
	did  []string
	fail string // the calls that fail, in the form of did
	file string // the content of each unit's files
}

func (u *units) Files(context.Context, string) ([]byte, error) { return []byte(u.file), nil }

func (u *units) do(verb, unit string, runs bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.did = append(u.did, verb+" "+unit)
	if u.fail == verb+" "+unit {
		return errors.New("it does not")
	}
	if u.runs == nil {
		u.runs = map[string]bool{}
	}
	u.runs[unit] = runs
	return nil
}

func (u *units) Start(_ context.Context, unit string) error   { return u.do("start", unit, true) }
func (u *units) Restart(_ context.Context, unit string) error { return u.do("restart", unit, true) }
func (u *units) Stop(_ context.Context, unit string) error    { return u.do("stop", unit, false) }

func (u *units) IsActive(_ context.Context, unit string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.runs[unit], nil
}

func (u *units) RunDetached(_ context.Context, d host.Detached) error {
	return u.do("detached", d.Name, true)
}

// asked returns the calls since it was last called.
func (u *units) asked() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	did := u.did
	u.did = nil
	return did
}

func newHost(t *testing.T, u host.Services) (*host.Host, string) {
	t.Helper()
	dir := t.TempDir()
	h, err := host.New(host.Options{Dir: filepath.Join(dir, "state"), Services: u, HealthTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h, dir
}

// serve serves files. It returns a function that makes a manifest's entry for one of them.
func serve(t *testing.T, files map[string][]byte) func(name, to string) *release.File {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(s.Close)
	return func(name, to string) *release.File {
		return &release.File{URL: s.URL + "/" + name, SHA256: fmt.Sprintf("%x", sha256.Sum256(files[name])), To: to}
	}
}

// archive returns a compressed archive of the entries.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.Typeflag == 0 {
			e.Typeflag = tar.TypeReg
		}
		if e.Mode == 0 {
			e.Mode = 0o755
		}
		body := []byte(nil)
		if e.Typeflag == tar.TypeReg {
			body = []byte("of " + e.Name)
			e.Size = int64(len(body))
		}
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestUpdateOfAnArchive checks that a host switches to an archive atomically, leaves unchanged archives
// alone, and repeats an interrupted update.
func TestUpdateOfAnArchive(t *testing.T) {
	u := &units{}
	h, dir := newHost(t, u)
	file := serve(t, map[string][]byte{"one": archive(t, tar.Header{Name: "bin/etcd"}), "two": archive(t, tar.Header{Name: "bin/etcd"}, tar.Header{Name: "new"})})
	to := filepath.Join(dir, "opt", "etcd")
	if err := os.MkdirAll(to, 0o755); err != nil { // as an operator did before the update
		t.Fatal(err)
	}
	c := release.Component{Name: "etcd", Services: []string{"etcd.service"}, Artifact: &release.Artifact{Archive: file("one", to)}}
	update := func(want ...string) {
		t.Helper()
		if err := h.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, u.asked()); diff != "" {
			t.Error(diff)
		}
		if needed, err := h.NeedsUpdate(t.Context(), c); needed || err != nil {
			t.Errorf("after an update one is needed: %v, %v", needed, err)
		}
	}
	update("restart etcd.service")
	if data, err := os.ReadFile(filepath.Join(to, "bin/etcd")); string(data) != "of bin/etcd" {
		t.Errorf("%q, %v", data, err)
	}
	update()
	u.runs["etcd.service"] = false
	update("start etcd.service")

	c.Artifact.Archive = file("two", to)
	u.fail = "restart etcd.service"
	if err := h.Update(t.Context(), c); err == nil {
		t.Fatal("a restart that fails is none")
	}
	u.asked()
	if needed, err := h.NeedsUpdate(t.Context(), c); !needed || err != nil {
		t.Errorf("after half an update none is needed: %v, %v", needed, err)
	}
	u.fail = ""
	update("restart etcd.service")
	if _, err := os.Stat(filepath.Join(to, "new")); err != nil {
		t.Error(err)
	}

	// There is a directory in place of the symlink again. A worker was killed before it had moved the
	// previous directory to the releases.
	err := errors.Join(os.Remove(to), os.Mkdir(to, 0o755), os.Mkdir(to+".releases/link", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		c.Artifact.Archive = file(name, to)
		update("restart etcd.service")
	}
	left, err := os.ReadDir(to + ".releases")
	if len(left) != 3 || err != nil {
		t.Errorf("there lie %v, %v: want two releases, and what there was by hand", left, err)
	}
}

func TestHostileArchives(t *testing.T) {
	for what, e := range map[string][]tar.Header{
		"climbs out":              {{Name: "../../etc/passwd"}},
		"through a link":          {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "a/passwd"}},
		"through a relative link": {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "../.."}},
		"through links in a row": {
			{Name: "a", Typeflag: tar.TypeDir}, {Name: "a/b", Typeflag: tar.TypeSymlink, Linkname: "."},
			{Name: "a/b/c", Typeflag: tar.TypeDir}, {Name: "a/b/c/x", Typeflag: tar.TypeSymlink, Linkname: "../../../secret"},
		},
		"a device":                    {{Name: "null", Typeflag: tar.TypeChar}},
		"a hard link to outside":      {{Name: "a", Typeflag: tar.TypeLink, Linkname: "../../../../etc/passwd"}},
		"one file twice":              {{Name: "a"}, {Name: "a"}},
		"a file in place of a folder": {{Name: "a"}, {Name: "a/b"}},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "archive")
		if err := os.WriteFile(path, archive(t, e...), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := host.Unpack(t.Context(), path, filepath.Join(dir, "into")); err == nil {
			t.Errorf("%s: it was unpacked", what)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "archive")
	suid := archive(t, tar.Header{Name: "/bin/su", Mode: 0o4755}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "bin/su"})
	if err := errors.Join(os.WriteFile(path, suid, 0o600), host.Unpack(t.Context(), path, filepath.Join(dir, "into"))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "into/link"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// packed returns an archive of files with those contents.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, body := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSettingOfAComponent checks that a unit file or declared file that differs from the one that a
// service started with counts as a difference and needs a restart.
func TestSettingOfAComponent(t *testing.T) {
	u := &units{file: "first"}
	h, dir := newHost(t, u)
	path := filepath.Join(dir, "serf.json")
	write := func(text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	c := release.Component{Name: "serf", Services: []string{"serf.service"}, Files: []release.Named{{Path: path, SHA256: write("one")}}}
	step := func(what string, differs string, did ...string) {
		t.Helper()
		ways, err := h.Differences(t.Context(), c)
		if got := strings.Join(ways, "; "); err != nil || !strings.Contains(got, differs) || differs == "" && got != "" {
			t.Errorf("%s: %q, %v; want %q", what, got, err, differs)
		}
		if err := h.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(did, u.asked()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	step("at first", "", "start serf.service")
	step("nothing", "")
	u.file = "second"
	step("another unit file", "its unit files or declared files have changed since it was started", "restart serf.service")
	step("nothing", "")
	c.Files[0].SHA256 = write("two")
	step("another declared file", "have changed since it was started", "restart serf.service")
	c.Files[0].SHA256 = write("three")
	write("two")
	step("not the declared file", "the sum of "+path+" is ")
	c.Files = nil
	u.file = ""
	step("what is not known", "")
}
