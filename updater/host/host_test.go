package host_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/host"
	"bijou/updater/release"
)

// units are services that only remember what was asked of them.
type units struct {
	mu   sync.Mutex
	runs map[string]bool
	did  []string
	fail string // what fails, as it would be in did
}

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

func (u *units) Active(_ context.Context, unit string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.runs[unit], nil
}

func (u *units) Detached(_ context.Context, d host.Detached) error {
	return u.do("detached", d.Name, true)
}

// asked is what was asked since it was asked last.
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
	h, err := host.New(host.Options{LRN: 3, Dir: filepath.Join(dir, "state"), Services: u, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h, dir
}

// serve serves files, and says how a manifest names one.
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

// archive makes a compressed archive of entries.
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

// An archive is switched to as a whole; what has not changed is left alone, and
// what was left half-way is done again.
func TestUpdateOfAnArchive(t *testing.T) {
	u := &units{}
	h, dir := newHost(t, u)
	file := serve(t, map[string][]byte{"one": archive(t, tar.Header{Name: "bin/etcd"}), "two": archive(t, tar.Header{Name: "bin/etcd"}, tar.Header{Name: "new"})})
	to := filepath.Join(dir, "opt", "etcd")
	if err := os.MkdirAll(to, 0o755); err != nil { // by hand, before
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
		if needed, err := h.Needed(c); needed || err != nil {
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
	if needed, err := h.Needed(c); !needed || err != nil {
		t.Errorf("after half an update none is needed: %v, %v", needed, err)
	}
	u.fail = ""
	update("restart etcd.service")
	if _, err := os.Stat(filepath.Join(to, "new")); err != nil {
		t.Error(err)
	}
}

func TestHostileArchives(t *testing.T) {
	for what, e := range map[string][]tar.Header{
		"climbs out":                  {{Name: "../../etc/passwd"}},
		"through a link":              {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "a/passwd"}},
		"through a relative link":     {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "../.."}},
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

// The keys of Vault go to stdin one by one, and nowhere else.
func TestUnseal(t *testing.T) {
	u := &units{}
	h, dir := newHost(t, u)
	keys, took := filepath.Join(dir, "keys"), filepath.Join(dir, "took")
	script := filepath.Join(dir, "unseal")
	err := errors.Join(
		os.WriteFile(keys, []byte("alpha\nbeta\n"), 0o600),
		os.WriteFile(script, []byte("#!/bin/sh\necho \"$* $(cat)\" >>"+took+"\n[ ! -e "+dir+"/sealed ] || { tail -n1 "+took+"; exit 1; }\n"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	c := release.Component{Name: "vault", Services: []string{"vault"}, AfterStart: &release.AfterStart{Command: []string{script, "unseal"}, EachLineOf: keys}}
	if err := h.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(took); string(data) != "unseal alpha\nunseal beta\n" {
		t.Errorf("%q", data)
	}
	u.runs["vault"] = false
	if err := os.WriteFile(filepath.Join(dir, "sealed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Update(t.Context(), c); err == nil || strings.Contains(err.Error(), "alpha") || !strings.Contains(err.Error(), "(key)") {
		t.Errorf("the error of a key: %v", err)
	}
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	u.runs["vault"] = false
	if err := h.Update(t.Context(), c); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("with keys that all may read: %v", err)
	}
}

// The others' members are asked for by their server's number.
func TestOthers(t *testing.T) {
	h, _ := newHost(t, &units{})
	c := release.Component{Name: "etcd", Members: &release.Health{Command: []string{"sh", "-c", "test $0 != 7", "{lrn}"}}}
	if well, asked := h.Others(t.Context(), c, []int{1, 7, 12}); well != 2 || !asked {
		t.Errorf("%d, %v", well, asked)
	}
	if _, asked := h.Others(t.Context(), release.Component{}, []int{1}); asked {
		t.Error("there was nothing to ask")
	}
}

// What sabakan has is not brought again.
func TestBring(t *testing.T) {
	h, dir := newHost(t, &units{})
	podman := filepath.Join(dir, "podman")
	if err := os.WriteFile(podman, []byte("#!/bin/sh\ncase $1 in image) exit 1;; save) echo image >\"$3\";; esac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var mu sync.Mutex
	var put []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut:
			put = append(put, r.URL.Path)
			w.WriteHeader(http.StatusCreated)
		case r.URL.Path == "/api/v1/images/coreos":
			_ = json.NewEncoder(w).Encode([]map[string]string{{"id": "1"}})
		case r.URL.Path == "/api/v1/assets/old-1.img/meta":
			_, _ = w.Write([]byte(`{"name":"old-1.img"}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	file := serve(t, map[string][]byte{"kernel": []byte("k"), "initrd": []byte("i"), "ignition": []byte("{}")})
	c := release.Contents{
		Key: "sabakan", URL: s.URL, Images: []string{"old:1"}, ImagesOf: []string{"echo", "quay.io/new:2"},
		OSImages:  []release.OSImage{{ID: "1"}, {ID: "2", Kernel: *file("kernel", ""), Initrd: *file("initrd", "")}},
		Ignitions: []release.Ignition{{Role: "cs", ID: "9", File: *file("ignition", "")}},
	}
	if err := h.Bring(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{"/api/v1/assets/quay.io-new-2.img", "/api/v1/ignitions/cs/9", "/api/v1/images/coreos/2"}
	slices.Sort(put)
	if diff := cmp.Diff(want, put); diff != "" {
		t.Error(diff)
	}
}

// A tarball replaces executable and manifest; one that is not whole changes nothing.
func TestInstallTarball(t *testing.T) {
	h, dir := newHost(t, &units{})
	binary := filepath.Join(dir, "opt", "bijou")
	file := filepath.Join(dir, "release.tar.gz")
	err := errors.Join(
		os.MkdirAll(filepath.Dir(binary), 0o755), os.WriteFile(binary, []byte("old"), 0o755),
		os.WriteFile(file, archive(t, tar.Header{Name: "bijou"}, tar.Header{Name: "manifest.yaml"}), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.InstallRelease(t.Context(), release.Tarball, file, binary); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"bijou", "manifest.yaml"} {
		if data, err := os.ReadFile(filepath.Join(dir, "opt", f)); string(data) != "of "+f {
			t.Errorf("%s: %q, %v", f, data, err)
		}
	}
	if err := os.WriteFile(file, archive(t, tar.Header{Name: "README"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.InstallRelease(t.Context(), release.Tarball, file, binary); err == nil {
		t.Error("a tarball without the program was installed")
	}
}

// A program in place of systemctl.
func TestServiceCommand(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ctl")
	script := "#!/bin/sh\ncase $1 in start|restart) touch " + dir + "/$2;; stop) rm -f " + dir + "/$2;; is-active) test -e " + dir + "/$2;; esac\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := host.ServiceCommand{Path: path}
	for _, step := range []struct {
		do   func(context.Context, string) error
		runs bool
	}{{s.Start, true}, {s.Stop, false}, {s.Stop, false}, {s.Restart, true}} {
		if err := step.do(t.Context(), "a.service"); err != nil {
			t.Fatal(err)
		}
		if runs, err := s.Active(t.Context(), "a.service"); runs != step.runs || err != nil {
			t.Errorf("runs: %v, %v", runs, err)
		}
	}
	d := host.Detached{Name: "x", Command: []string{"sh", "-c", "echo half done; exit 3"}, Log: filepath.Join(dir, "log")}
	if err := s.Detached(t.Context(), d); err == nil || !strings.Contains(err.Error(), "half done") {
		t.Errorf("%v", err)
	}
}

// Where process 1 is not systemd that is said.
func TestNoSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("this machine runs systemd")
	}
	if err := (host.Systemd{}).Stop(t.Context(), "cke.service"); err == nil || !strings.Contains(err.Error(), "cannot stop cke.service: process 1 of this machine is not systemd") {
		t.Errorf("%v", err)
	}
}
