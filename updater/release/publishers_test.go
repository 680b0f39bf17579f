package release_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/conformance/releasetest"
	"bijou/testscripts/fakes/github"
	"bijou/updater/record"
	"bijou/updater/release"
)

func TestGitHub(t *testing.T) {
	releasetest.Run(t, func(t *testing.T) releasetest.Place {
		server := github.New()
		t.Cleanup(server.Close)
		gate := releasetest.NewGate(t)
		return releasetest.Place{
			Config:  record.Config{GitHubRepository: github.Repository, GitHubURL: server.URL(), Proxy: gate.URL},
			Break:   gate.Break,
			Publish: func(_ *testing.T, all []github.Release) { server.Replace(all) },
		}
	})
}

// TestWebFolder runs the suite of sources over Go's file server, as an example of a web server.
func TestWebFolder(t *testing.T) {
	releasetest.Run(t, func(t *testing.T) releasetest.Place {
		dir := t.TempDir()
		server := httptest.NewServer(http.StripPrefix("/boot", http.FileServer(http.Dir(dir))))
		t.Cleanup(server.Close)
		gate := releasetest.NewGate(t)
		return releasetest.Place{
			Config:  record.Config{ReleaseFolder: server.URL + "/boot", Proxy: gate.URL},
			Break:   gate.Break,
			Publish: func(t *testing.T, all []github.Release) { fill(t, dir, all) },
		}
	})
}

func TestHostFolder(t *testing.T) {
	releasetest.Run(t, func(t *testing.T) releasetest.Place {
		dir := filepath.Join(t.TempDir(), "a folder, 100% #1")
		return releasetest.Place{
			Config:  record.Config{ReleaseFolder: dir},
			Publish: func(t *testing.T, all []github.Release) { fill(t, dir, all) },
			Break:   func(t *testing.T, f releasetest.Fault) bool { return spoil(t, dir, f) },
		}
	})
}

// fill replaces the releases in the directory with these.
func fill(t *testing.T, dir string, all []github.Release) {
	t.Helper()
	var pre []string
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.RemoveAll(dir))
	check(os.MkdirAll(dir, 0o755))
	for _, r := range all {
		check(os.Mkdir(filepath.Join(dir, r.Tag), 0o755))
		for name, data := range r.Files {
			check(os.WriteFile(filepath.Join(dir, r.Tag, name), data, 0o644))
		}
		if r.Pre {
			pre = append(pre, r.Tag)
		}
	}
	_, err := release.WriteIndex(dir, pre...)
	check(err)
}

// spoil gives the directory one of the faults that a directory on a host may have. It keeps the previous
// index in a different place.
func spoil(t *testing.T, dir string, f releasetest.Fault) bool {
	t.Helper()
	index, aside := filepath.Join(dir, release.IndexFile), filepath.Join(dir, "aside")
	var err error
	switch f {
	case releasetest.Absent:
		err = os.Rename(index, aside)
	case releasetest.Page:
		if err = os.Rename(index, aside); err == nil {
			err = os.WriteFile(index, []byte(releasetest.LoginPage), 0o644)
		}
	case releasetest.None:
		err = os.Rename(aside, index)
	case releasetest.FilesAbsent:
		err = os.RemoveAll(filepath.Join(dir, "release-1.0"))
	case releasetest.FilesPage:
		err = os.WriteFile(filepath.Join(dir, "release-1.0", "bijou_1.0_linux_amd64.tar.gz"), []byte(releasetest.LoginPage), 0o644)
	case releasetest.FilesOther:
		err = os.WriteFile(filepath.Join(dir, "release-1.0", "bijou_1.0_linux_amd64.tar.gz"), []byte(strings.Repeat("x", 1024)), 0o644)
	default:
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// TestFolderPassword checks a web server that needs a password. Errors must not show the password.
func TestFolderPassword(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, nil)
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != "s3cret%" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")

	for user, want := range map[string]string{
		"reader:s3cret%25@": "",
		"reader:wr0ng@":     "cannot list the releases of http://" + host + ": the server answers 401 Unauthorized; to give a user and a password, set release-folder to https://USER:PASSWORD@HOST/",
		"":                  "cannot list the releases of http://" + host + ": the server answers 401 Unauthorized; to give a user and a password, set release-folder to https://USER:PASSWORD@HOST/",
	} {
		source, err := release.NewSource(record.Config{ReleaseFolder: "http://" + user + host})
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		_, err = source.Releases(t.Context())
		if got := errorText(err); got != want {
			t.Errorf("%q: %s; want %s", user, got, want)
		}
	}
}

// TestAwait checks that a source waits for a release that becomes visible on this server later than on other
// servers.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, nil)
	source, err := release.NewSource(record.Config{ReleaseFolder: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()

	came := make(chan bool)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		defer close(came)
		if _, err := source.Await(ctx, "1.0"); err != nil {
			t.Error(err)
		}
	}()
	tag := filepath.Join(dir, "release-1.0")
	if err := errors.Join(os.Mkdir(tag, 0o755), os.WriteFile(filepath.Join(tag, release.SumsFile), []byte("sums\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := release.WriteIndex(dir); err != nil {
		t.Fatal(err)
	}
	<-came
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
