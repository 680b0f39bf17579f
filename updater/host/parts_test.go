package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
	"bijou/updater/host"
	"bijou/updater/release"
)

// TestUnseal checks that Vault's keys are written one by one to stdin, and nowhere else.
func TestUnseal(t *testing.T) {
	need.Whole(t)
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
	if err := h.Update(t.Context(), c); err == nil || strings.Contains(err.Error(), "lpha") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the error of a key: %v", err)
	}
	if err := h.CheckHealth(t.Context(), c); err == nil || !u.runs["vault"] {
		t.Error("it runs, is sealed, and is said to be well")
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "sealed")), os.Remove(took), h.Update(t.Context(), c), h.CheckHealth(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(took); string(data) != "unseal alpha\nunseal beta\n" {
		t.Errorf("after a failure: %q", data)
	}
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	u.runs["vault"] = false
	if err := h.Update(t.Context(), c); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("with keys that all may read: %v", err)
	}
}

// TestOthers checks that the members on other servers are checked with those servers' LRNs.
func TestOthers(t *testing.T) {
	h, _ := newHost(t, &units{})
	c := release.Component{Name: "etcd", Members: &release.Health{Command: []string{"sh", "-c", "test $0 != 7", "{lrn}"}}}
	if ill, asked := h.CheckMembers(t.Context(), c, []int{1, 7, 12}); len(ill) != 1 || ill[7] == nil || !asked {
		t.Errorf("%v, %v", ill, asked)
	}
	if _, asked := h.CheckMembers(t.Context(), release.Component{}, []int{1}); asked {
		t.Error("there was nothing to ask")
	}
}

// TestBring checks that images that sabakan already has are not uploaded again.
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
	if err := h.DeliverContents(t.Context(), release.Component{Contents: &c}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "state", "downloads")); len(left) > 0 || err != nil {
		t.Errorf("it has left %v, %v", left, err)
	}
	want := []string{"/api/v1/assets/quay.io-new-2.img", "/api/v1/ignitions/cs/9", "/api/v1/images/coreos/2"}
	slices.Sort(put)
	if diff := cmp.Diff(want, put); diff != "" {
		t.Error(diff)
	}
}

// TestTidy checks that leftovers of updates to other releases are removed, and that downloads of this release
// are kept.
func TestTidy(t *testing.T) {
	h, dir := newHost(t, &units{})
	kernel, deb, old := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	downloads := filepath.Join(dir, "state", "downloads")
	for _, name := range []string{kernel, deb + ".part", old, old + ".part", "os-1.tar", "quay.io-new-2.img"} {
		if err := os.WriteFile(filepath.Join(downloads, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.MkdirAll(filepath.Join(downloads, "release.draft", "opt"), 0o700), h.RemoveOldDownloads(release.Manifest{Components: []release.Component{
		{Name: "contents", Contents: &release.Contents{OSImages: []release.OSImage{{ID: "1", Kernel: release.File{SHA256: kernel}}}}},
		{Name: "agent", Artifact: &release.Artifact{Deb: &release.File{SHA256: deb}}},
		{Name: "plain"},
	}}))
	left, readErr := os.ReadDir(downloads)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range left {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{kernel, deb + ".part"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestInstallTarball checks that a tarball replaces the executable and the manifest, and that an
// incomplete one changes nothing.
func TestInstallTarball(t *testing.T) {
	h, dir := newHost(t, &units{})
	const program = "#!/bin/sh\ncase $* in plan|--help) exit 0;; esac\nexit 7\n"
	binary := filepath.Join(dir, "opt", "bijou")
	file := filepath.Join(dir, "release.tar.gz")
	err := errors.Join(
		os.MkdirAll(filepath.Dir(binary), 0o755), os.WriteFile(binary, []byte("old"), 0o755),
		os.WriteFile(file, packed(t, map[string]string{"bijou": program, "manifest.yaml": "version: 1.2-1"}), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.InstallRelease(t.Context(), host.Package{Form: release.Tarball, File: file, Version: "1.2-1"}, binary); err != nil {
		t.Fatal(err)
	}
	for what, files := range map[string]map[string]string{
		"without the program":              {"README": "", "manifest.yaml": "version: 1.2-1 # new"},
		"without the manifest":             {"bijou": program + "# new"},
		"whose daemons do not run":         {"bijou": "#!/bin/sh\ntest \"$*\" = plan\n", "manifest.yaml": "version: 1.2-1 # new"},
		"with a program that does not run": {"bijou": "#!/bin/sh\nexit 1", "manifest.yaml": "version: 1.2-1 # new"},
		"of another version":               {"bijou": program + "# new", "manifest.yaml": "version: 1.2-2"},
		"of no version":                    {"bijou": program + "# new", "manifest.yaml": "components: []"},
		"with what is no program":          {"bijou": "new", "manifest.yaml": "version: 1.2-1 # new"},
	} {
		if err := os.WriteFile(file, packed(t, files), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.InstallRelease(t.Context(), host.Package{Form: release.Tarball, File: file, Version: "1.2-1"}, binary); err == nil {
			t.Errorf("a tarball %s was installed", what)
		}
	}
	for f, want := range map[string]string{"bijou": program, "manifest.yaml": "version: 1.2-1"} {
		if data, err := os.ReadFile(filepath.Join(dir, "opt", f)); string(data) != want {
			t.Errorf("%s: %q, %v", f, data, err)
		}
	}
}

// TestServiceCommand checks a program that replaces systemctl.
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
		if runs, err := s.IsActive(t.Context(), "a.service"); runs != step.runs || err != nil {
			t.Errorf("runs: %v, %v", runs, err)
		}
	}
	d := host.Detached{Name: "x", Command: []string{"sh", "-c", "echo half done; exit 3"}, Log: filepath.Join(dir, "log")}
	if err := s.RunDetached(t.Context(), d); err == nil || !strings.Contains(err.Error(), "half done") {
		t.Errorf("%v", err)
	}
}

// TestServiceCommandWithChildren checks that a call does not wait for children that keep the program's
// output open, neither after the program has exited nor after it was cancelled. Such children can be
// daemons.
func TestServiceCommandWithChildren(t *testing.T) {
	need.Whole(t)
	dir := t.TempDir()
	path, lives := filepath.Join(dir, "ctl"), filepath.Join(dir, "lives")
	script := "#!/bin/sh\n(while [ -e " + lives + " ]; do sleep 0.05; done) &\ntouch " + dir + "/$1\n[ $1 = start ] || wait\n"
	if err := errors.Join(os.WriteFile(path, []byte(script), 0o700), os.WriteFile(lives, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(lives)
	s := host.ServiceCommand{Path: path}
	ended := make(chan error, 1) // buffered, since the test may have ended
	go func() {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Start(ctx, "a.service")
		go func() { // cancels the call once the program runs
			defer cancel()
			_, _ = await.Try(await.Poll{Limit: time.Minute}, func() bool {
				return ctx.Err() != nil || os.Remove(filepath.Join(dir, "stop")) == nil
			})
		}()
		if cancelled := s.Stop(ctx, "a.service"); cancelled == nil {
			err = errors.Join(err, errors.New("what was cancelled has succeeded"))
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it waits for the children")
	}
}

// TestNoSystemd checks that an error says so if process 1 is not systemd.
func TestNoSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("this machine runs systemd")
	}
	if err := (host.Systemd{}).Stop(t.Context(), "cke.service"); err == nil || !strings.Contains(err.Error(), "cannot stop cke.service: process 1 of this machine is not systemd") {
		t.Errorf("%v", err)
	}
}

// TestAnswersAreBounded checks that an answer from sabakan's address is read up to a limit.
func TestAnswersAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 32 {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
		}
	}))
	defer s.Close()
	h, _ := newHost(t, &units{})
	c := release.Contents{Key: "sabakan", URL: s.URL, OSImages: []release.OSImage{{ID: "1"}}}
	err := h.DeliverContents(t.Context(), release.Component{Contents: &c})
	if err == nil || !strings.Contains(err.Error(), "its answer has more than 8388608 bytes") {
		t.Error(err)
	}
}
