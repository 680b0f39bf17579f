package release_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/fakes/github"
	"bijou/updater/record"
	"bijou/updater/release"
)

// published returns a server with releases on three pages, and a source of them.
func published(t *testing.T, change func(*record.Config)) (*github.Server, *release.Source) {
	t.Helper()
	server := github.New()
	t.Cleanup(server.Close)
	files := func(v string) map[string][]byte {
		return map[string][]byte{
			"bijou_" + v + "_linux_amd64.tar.gz": bytes.Repeat([]byte(v), 3000), "neco_" + v + "_amd64.deb": []byte("deb " + v), "notes.txt": []byte("x"),
		}
	}
	for _, r := range []github.Release{
		{Tag: "release-1.2-1"}, {Tag: "release-1.10-1"}, {Tag: "release-1.11-1", Draft: true},
		{Tag: "test-1.12-1", Pre: true}, {Tag: "nightly"}, {Tag: "release-1.9-1"},
	} {
		_, v, _ := strings.Cut(r.Tag, "-")
		r.Files = files(v)
		server.Publish(r)
	}
	c := record.Config{Env: record.EnvProduction, GitHubRepository: github.Repository, GitHubURL: server.URL()}
	if change != nil {
		change(&c)
	}
	source, err := release.NewSource(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	return server, source
}

// TestNewest checks that releases of all pages are read and sorted by version, without drafts.
func TestNewest(t *testing.T) {
	for env, want := range map[string]string{record.EnvProduction: "release-1.10-1", record.EnvStaging: "test-1.12-1", record.EnvNone: ""} {
		t.Run(env, func(t *testing.T) {
			_, source := published(t, func(c *record.Config) { c.Env = env })
			all, err := source.Releases(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			candidates, err := source.Candidates(all)
			tag := ""
			if len(candidates) > 0 {
				tag = candidates[0].Release.Tag
			}
			if err != nil || tag != want {
				t.Errorf("%q, %v; want %q", tag, err, want)
			}
			for i := 1; i < len(candidates); i++ {
				if candidates[i].Version.Compare(candidates[i-1].Version) >= 0 {
					t.Errorf("%s comes after %s", candidates[i].Version, candidates[i-1].Version)
				}
			}
		})
	}
}

// TestConditional checks that unchanged pages are not sent again and do not count against the rate limit.
func TestConditional(t *testing.T) {
	server, source := published(t, nil)
	server.Limit(4, time.Now().Add(time.Hour).Unix())
	var tags []string
	for range 3 {
		all, err := source.Releases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tags = append(tags, all[len(all)-1].Tag)
	}
	if diff := cmp.Diff(github.Count{Lists: 9, NotModified: 6}, server.Count()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"release-1.2-1", "release-1.2-1", "release-1.2-1"}, tags); diff != "" {
		t.Error(diff)
	}
}

// TestRateLimit checks that a rate limit is an error that contains the time of the next attempt. In the
// original neco, a rate limit ended the updater.
func TestRateLimit(t *testing.T) {
	server, source := published(t, nil)
	reset := time.Now().Add(20 * time.Minute)
	server.Limit(0, reset.Unix())
	_, err := source.Releases(t.Context())
	if d := release.Delay(err, 1, time.Minute, reset.Add(-20*time.Minute)); err == nil || d < 19*time.Minute || d > 20*time.Minute {
		t.Errorf("%v: again after %s", err, d)
	}
	server, source = published(t, nil)
	if err := server.Misbehave(github.Throttled); err != nil {
		t.Fatal(err)
	}
	_, err = source.Releases(t.Context())
	if d := release.Delay(err, 7, time.Hour, reset); err == nil || d != github.RetryAfter*time.Second {
		t.Errorf("%v: again after %s", err, d)
	}
	broken := errors.New("broken")
	for n, want := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 60: 10 * time.Minute} {
		if d := release.Delay(broken, n, 10*time.Minute, reset); d != want {
			t.Errorf("after failure %d: %s, want %s", n, d, want)
		}
	}
}

// TestFaultsOfTheAPI checks that each fault of the server leads to an error, and never to a release.
func TestFaultsOfTheAPI(t *testing.T) {
	for _, fault := range []github.Fault{github.Broken, github.Nonsense, github.Hangup} {
		server, source := published(t, nil)
		if err := server.Misbehave(fault); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Releases(t.Context()); err == nil {
			t.Errorf("%s: no error", fault)
		}
	}
}

func TestToken(t *testing.T) {
	server, source := published(t, func(c *record.Config) { c.GitHubToken = "s3cret" })
	server.Private("s3cret")
	if path := fetch(t, source); filepath.Base(path) != "bijou_1.10-1_linux_amd64.tar.gz" {
		t.Error(path)
	}
	server, other := published(t, nil)
	server.Private("s3cret")
	if _, err := other.Releases(t.Context()); err == nil {
		t.Error("without a token")
	}
}

func fetch(t *testing.T, s *release.Source) string {
	t.Helper()
	path, err := s.FetchPackage(t.Context(), release.Wanted{Version: "1.10-1", Form: release.Tarball, Arch: "amd64", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestResume checks that a download that is interrupted many times continues where it stopped.
func TestResume(t *testing.T) {
	server, source := published(t, nil)
	got, err := os.ReadFile(fetch(t, source))
	before := server.Count().Files
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("1.10-1"), 3000)) {
		t.Fatal(len(got), err)
	}
	data := bytes.Repeat([]byte("0123456789"), 100)
	server.Publish(github.Release{Tag: "release-2.0", Files: map[string][]byte{"a.txt": data}})
	d := download(t, server, data)
	if err := server.Misbehave(github.Cut); err != nil {
		t.Fatal(err)
	}
	if err := d.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(d.Path); err != nil || !bytes.Equal(got, data) {
		t.Error(len(got), err)
	}
	if n := server.Count().Files - before; n != 10 { // 1000 bytes: 500, 250, 125, ... 1
		t.Errorf("it took %d requests", n)
	}
}

// TestNeverInstalled checks that a file other than the published one never reaches its destination.
func TestNeverInstalled(t *testing.T) {
	for _, fault := range []github.Fault{github.ErrorPage, github.Missing, github.Swapped} {
		server, _ := published(t, nil)
		data := bytes.Repeat([]byte("0123456789"), 100)
		server.Publish(github.Release{Tag: "release-2.0", Files: map[string][]byte{"a.txt": data}})
		d := download(t, server, data)
		if err := server.Misbehave(fault); err != nil {
			t.Fatal(err)
		}
		err := d.Get(t.Context())
		if _, there := os.Stat(d.Path); err == nil || there == nil {
			t.Errorf("%s: %v, %v", fault, err, there)
		}
		if err := server.Misbehave(github.None); err != nil {
			t.Fatal(err)
		}
		if err := d.Get(t.Context()); err != nil {
			t.Errorf("after %s: %v", fault, err)
		}
	}
}

func download(t *testing.T, server *github.Server, data []byte) release.Download {
	t.Helper()
	client, err := release.NewClient("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return release.Download{
		Client: client, URL: server.URL() + "files/release-2.0/a.txt", Path: filepath.Join(t.TempDir(), "a.txt"), Size: int64(len(data)), SHA256: sha256.Sum256(data),
	}
}

// TestFetchRefuses checks that a file without a checksum, a missing package and a missing release are
// refused. The original neco had no checksums, and failed if there was more than one asset.
func TestFetchRefuses(t *testing.T) {
	server, source := published(t, nil)
	server.Publish(github.Release{Tag: "release-3.0", Files: map[string][]byte{"neco_3.0_amd64.deb": []byte("x"), "SHA256SUMS": github.Sums(map[string][]byte{"other": nil})}})
	for _, tt := range []struct{ version, form, want string }{
		{"3.0", release.Deb, "SHA256SUMS does not list it"},
		{"3.0", release.Tarball, "it has: SHA256SUMS, neco_3.0_amd64.deb"},
		{"1.11-1", release.Deb, "there is no release of version 1.11-1"},
	} {
		_, err := source.FetchPackage(t.Context(), release.Wanted{Version: tt.version, Form: tt.form, Arch: "amd64", Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	_, signed := published(t, func(c *record.Config) { c.MinisignKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3" })
	_, err := signed.FetchPackage(t.Context(), release.Wanted{Version: "1.10-1", Form: release.Deb, Arch: "amd64", Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "SHA256SUMS.minisig") {
		t.Errorf("unsigned, with a key: %v", err)
	}
}

// TestWhereTheAPIIs checks the URL of the API. It is below /api/v3/ on a GitHub Enterprise server, and at
// the root on GitHub's own host.
func TestWhereTheAPIIs(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.URL.Path)
		_, _ = w.Write([]byte("[]"))
	}))
	defer server.Close()
	for _, tt := range []struct{ url, want string }{
		{"http://ghe.example.com", "ghe.example.com/api/v3/repos/a/b/releases"},
		{"http://ghe.example.com/", "ghe.example.com/api/v3/repos/a/b/releases"},
		{"http://ghe.example.com/api/v3", "ghe.example.com/api/v3/repos/a/b/releases"},
		{"http://ghe.example.com/api/v3/", "ghe.example.com/api/v3/repos/a/b/releases"},
		{"http://ghe.example.com:8080/", "ghe.example.com:8080/api/v3/repos/a/b/releases"},
		{"http://api.example.ghe.com", "api.example.ghe.com/repos/a/b/releases"},
		{"http://api.github.com/", "api.github.com/repos/a/b/releases"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			asked = nil
			source, err := release.NewSource(record.Config{Env: record.EnvProduction, GitHubRepository: "a/b", GitHubURL: tt.url, Proxy: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = source.Releases(t.Context())
			source.Close()
			if err != nil || len(asked) != 1 || asked[0] != tt.want {
				t.Errorf("%s: asked for %q, %v; want %q", tt.url, asked, err, tt.want)
			}
		})
	}
}
