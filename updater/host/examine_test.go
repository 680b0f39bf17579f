package host_test

import (
	"archive/tar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"bijou/updater/release"
)

// programs writes scripts into a directory, and puts the directory at the front of the PATH. The scripts run
// in this directory.
func programs(t *testing.T, all map[string]string) (here string) {
	t.Helper()
	here = t.TempDir()
	for name, script := range all {
		text := "#!/bin/sh\ncd " + here + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(here, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", here+":"+os.Getenv("PATH"))
	return here
}

// TestExamine checks that Examine finds missing or broken parts of a component on the host, and not in the
// record. An update restores these parts, and changes nothing if there is no problem.
func TestExamine(t *testing.T) {
	here := programs(t, map[string]string{
		"podman": `case "$1 $2" in
			"image inspect") [ ! -e broken ] || { echo "cannot lock" >&2; exit 125; }
				[ -e image ] || { echo "Error: no such image $5" >&2; exit 125; } ;;
			pull*) touch image ;;
			esac`,
		"dpkg-deb":   `echo "serf 1.0-1"`,
		"dpkg-query": `cat package 2>/dev/null || { echo "no packages found" >&2; exit 1; }`,
	})
	sets := func(name, text string) func(t *testing.T) {
		return func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(here, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	removes := func(path string) func(t *testing.T) {
		return func(t *testing.T) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}

	var answer atomic.Int64
	answer.Store(http.StatusOK)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(answer.Load()))
	}))
	defer web.Close()

	file := serve(t, map[string][]byte{"etcd": archive(t, tar.Header{Name: "bin/etcd"}, tar.Header{Name: "LICENSE"}), "deb": []byte("a package")})
	to := filepath.Join(t.TempDir(), "etcd")
	etcd := &release.Artifact{Archive: file("etcd", to)}
	unpacked := filepath.Join(to+".releases", etcd.Archive.SHA256[:16])
	serf := &release.Artifact{Deb: file("deb", "")}
	healthy := &release.Health{HTTP: web.URL}
	sets("package", "installed 1.0-1\n")(t)

	u := &units{}
	stops := func(*testing.T) { u.runs["a.service"] = false }
	for what, tt := range map[string]struct {
		artifact *release.Artifact
		breaks   func(t *testing.T)
		want     string
		runs     bool // set if the services run although the component is ill
		mends    func(t *testing.T)
		did      string // the calls that restore the component
	}{
		"a service has died": {nil, stops, "a.service does not run", false, nil, "start a.service"},
		"it answers 500":     {nil, func(*testing.T) { answer.Store(500) }, "answers 500 Internal Server Error", true, func(*testing.T) { answer.Store(200) }, ""},
		"an archive is gone": {etcd, removes(unpacked), "into which its archive was unpacked, is gone", false, nil, "restart a.service"},
		"an archive is emptied": {etcd, func(t *testing.T) {
			removes(filepath.Join(unpacked, "bin"))(t)
			removes(filepath.Join(unpacked, "LICENSE"))(t)
		}, "into which its archive was unpacked, is empty", false, nil, "restart a.service"},
		"its files are gone":    {etcd, removes(filepath.Join(unpacked, "bin", "etcd")), "no longer has a file in bin", false, nil, "restart a.service"},
		"its link is gone":      {etcd, removes(to), "is not a symlink to ", false, nil, "restart a.service"},
		"an image is gone":      {&release.Artifact{Image: "a:1"}, removes(filepath.Join(here, "image")), "its image a:1 is gone", false, nil, "restart a.service"},
		"podman does not say":   {&release.Artifact{Image: "a:1"}, sets("broken", ""), "", true, removes(filepath.Join(here, "broken")), ""},
		"a package is gone":     {serf, removes(filepath.Join(here, "package")), "its package serf is unknown to dpkg", false, sets("package", "installed 1.0-1\n"), ""},
		"a package was removed": {serf, sets("package", "config-files 1.0-1\n"), "its package serf is not installed: dpkg says config-files", false, nil, "detached neco-install restart a.service"},
		"a package is another":  {serf, sets("package", "installed 2.0-1\n"), "its package serf has version 2.0-1, not 1.0-1", false, nil, "detached neco-install restart a.service"},
	} {
		t.Run(what, func(t *testing.T) {
			u.runs, u.did = nil, nil
			sets("package", "installed 1.0-1\n")(t)
			h, _ := newHost(t, u)
			c := release.Component{Name: "a", Strategy: release.Any, Services: []string{"a.service"}, Artifact: tt.artifact, Health: healthy}
			update := func() string {
				if err := h.Update(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				return strings.Join(u.asked(), " ")
			}
			update()
			if ill, _ := h.Examine(t.Context(), c); ill != nil {
				t.Fatalf("it is ill at first: %v", ill)
			}

			tt.breaks(t)
			ill, runs := h.Examine(t.Context(), c)
			if got := fmt.Sprint(ill); runs != tt.runs || (ill != nil) != (tt.want != "") || ill != nil && !strings.Contains(got, tt.want) {
				t.Errorf("%q, runs: %t; want %q, %t", got, runs, tt.want, tt.runs)
			}
			all := h.Diagnose(t.Context(), release.Manifest{Components: []release.Component{c}})
			if all[0].Bad != (tt.want != "") || !strings.Contains(all[0].How, tt.want) {
				t.Errorf("neco diagnose says %+v", all[0])
			}

			if tt.mends != nil {
				tt.mends(t)
			}
			if did := update(); did != tt.did {
				t.Errorf("to bring it back it did %q, want %q", did, tt.did)
			}
			sets("package", "installed 1.0-1\n")(t)
			if ill, _ := h.Examine(t.Context(), c); ill != nil {
				t.Errorf("it is ill after that: %v", ill)
			}
			if did := update(); did != "" {
				t.Errorf("a component that is well: %q", did)
			}
		})
	}
}

// TestNotesOfAnotherArtifact checks that the package and entries in a record count only for the artifact that
// they belong to. An earlier version that installs a different artifact leaves them in the record.
func TestNotesOfAnotherArtifact(t *testing.T) {
	file := serve(t, map[string][]byte{"etcd": archive(t, tar.Header{Name: "bin/etcd"})})
	u := &units{}
	h, dir := newHost(t, u)
	c := release.Component{
		Name:     "a",
		Strategy: release.Any,
		Artifact: &release.Artifact{Archive: file("etcd", filepath.Join(dir, "etcd"))},
	}
	if err := h.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, "state", "components", "a.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"noted-of":"archive `, `"noted-of":"another `, 1)
	other = strings.Replace(other, `["bin"]`, `["sbin"]`, 1)

	for what, tt := range map[string]struct {
		record string
		ill    bool
	}{
		"as it was":           {string(text), false},
		"of another artifact": {other, false},
		"of this one":         {strings.Replace(string(text), `["bin"]`, `["sbin"]`, 1), true},
	} {
		t.Run(what, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(tt.record), 0o600); err != nil {
				t.Fatal(err)
			}
			if ill, _ := h.Examine(t.Context(), c); (ill != nil) != tt.ill {
				t.Errorf("it is ill: %v, want %t; the record is %s", ill, tt.ill, tt.record)
			}
		})
	}
}
