package release_test

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
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/fakes/github"
	"bijou/updater/record"
	"bijou/updater/release"
)

const (
	goodPlan = "components:\n- {name: a, strategy: any, services: [a.service]}\n"
	newPlan  = "components:\n- {name: a, strategy: blue-green, services: [a.service]}\n"
)

// tarball returns a package with the given manifest, or with none if manifest is "".
func tarball(t *testing.T, manifest string) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{{"bijou", "a program"}, {release.ManifestFile, manifest}} {
		if f[1] == "" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o755, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestInspect checks which releases cannot be installed, and that no others are refused.
func TestInspect(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := map[string]int{"/there": 200, "/gone": 410, "/no-heads": 405, "/ill": 503}[r.URL.Path]
		if code == 0 {
			code = http.StatusNotFound
		}
		w.WriteHeader(code)
	}))
	defer files.Close()
	withFile := func(path string) string {
		return "version: 2.0\ncomponents:\n- {name: a, strategy: any, artifact: {archive: {url: \"" + files.URL + path + "\", sha256: \"" + strings.Repeat("0", 64) + "\", to: /x}}}\n"
	}
	own := "bijou_2.0_linux_" + runtime.GOARCH + ".tar.gz"
	packed := func(manifest string) map[string][]byte {
		return map[string][]byte{own: tarball(t, manifest)}
	}
	with := func(files map[string][]byte, name, data string) map[string][]byte {
		files[name] = []byte(data)
		return files
	}
	withOwn := func(sum string) string {
		return "version: 2.0\ncomponents:\n- {name: a, strategy: any, artifact: {archive: {file: own.tar, sha256: \"" + sum + "\", to: /x}}}\n"
	}
	sumOfOwn := fmt.Sprintf("%x", sha256.Sum256([]byte("own")))
	publisher := github.NewSigner("publisher")
	signed := func(files map[string][]byte) map[string][]byte {
		files["SHA256SUMS"] = github.Sums(files)
		files["SHA256SUMS.minisig"] = publisher.Sign(files["SHA256SUMS"])
		return files
	}
	old := signed(map[string][]byte{"bijou_1.0_linux_" + runtime.GOARCH + ".tar.gz": tarball(t, "version: 1.0\n"+goodPlan)})
	renamed := map[string][]byte{own: old["bijou_1.0_linux_"+runtime.GOARCH+".tar.gz"], "SHA256SUMS": old["SHA256SUMS"], "SHA256SUMS.minisig": old["SHA256SUMS.minisig"]}

	for what, tt := range map[string]struct {
		files   map[string][]byte
		key     bool
		others  []release.Package
		running string
		refused string // "" if it is accepted
		passes  string // an error that is not a refusal
	}{
		"good":                          {files: packed("version: 2.0\n" + goodPlan)},
		"good, and its file agrees":     {files: with(packed("version: 2.0\n"+goodPlan), release.ManifestFile, "# ours\n"+goodPlan)},
		"good, with the plan built in":  {files: packed("")},
		"good, and signed":              {files: signed(packed("version: 2.0\n" + goodPlan)), key: true},
		"a version of the same meaning": {files: packed("version: 2.00\n" + goodPlan)},
		"a file that is there":          {files: packed(withFile("/there"))},
		"a file of the release":         {files: with(packed(withOwn(sumOfOwn)), "own.tar", "own")},
		"a server without heads":        {files: packed(withFile("/no-heads"))},

		"an unknown strategy":                     {files: packed("version: 2.0\n" + newPlan), refused: `there is no strategy "blue-green"`},
		"an unknown option":                       {files: packed("version: 2.0\ncanary: 1\n" + goodPlan), refused: "canary not found"},
		"an unknown strategy, of a later version": {files: packed("version: 2.0\nrequires: \"2.0\"\n" + newPlan)},
		"an unknown strategy, of this version":    {files: packed("version: 2.0\nrequires: \"1.0\"\n" + newPlan), refused: "blue-green"},
		"it requires what it is not":              {files: packed("version: 2.0\nrequires: \"3.0\"\n" + newPlan), refused: "the plan requires 3.0, but the release itself has version 2.0"},
		"it requires nonsense":                    {files: packed("version: 2.0\nrequires: soon\n" + newPlan), refused: `invalid version "soon"`},
		"no package":                              {files: map[string][]byte{release.ManifestFile: []byte("version: 2.0\n" + goodPlan)}, refused: `has no asset "` + own},
		"no package for another server":           {files: packed("version: 2.0\n" + goodPlan), others: []release.Package{{Form: release.Deb, Arch: "arm64"}}, refused: `has no asset "neco_2.0_arm64.deb"`},
		"no version":                              {files: packed(goodPlan), refused: "has no version"},
		"another version":                         {files: packed("version: 1.0\n" + goodPlan), refused: "has version 1.0, but the tag is release-2.0"},
		"another version in its file":             {files: with(packed("version: 2.0\n"+goodPlan), release.ManifestFile, "version: 1.0\n"+goodPlan), refused: "manifest.yaml has version 1.0"},
		"no YAML":                                 {files: packed("version: [\n"), refused: "cannot read the manifest"},
		"no archive":                              {files: map[string][]byte{own: []byte("a page")}, refused: "cannot read"},
		"another plan in its file":                {files: with(packed("version: 2.0\n"+goodPlan), release.ManifestFile, newPlan), refused: "differs from its file manifest.yaml"},
		"a plan in its file only":                 {files: with(packed(""), release.ManifestFile, goodPlan), refused: "differs from its file manifest.yaml: the digest is unknown"},
		"its sums do not list the package":        {files: with(packed("version: 2.0\n"+goodPlan), "SHA256SUMS", strings.Repeat("0", 64)+"  other\n"), refused: "SHA256SUMS does not list " + own},
		"an older release's signed files":         {files: old, key: true, refused: "has no asset"},
		"the same by newer names":                 {files: renamed, key: true, refused: "SHA256SUMS does not list " + own},
		"not signed":                              {files: packed("version: 2.0\n" + goodPlan), key: true, refused: "it has no SHA256SUMS.minisig"},
		"a file that is not there":                {files: packed(withFile("/none")), refused: "/none does not exist: the server answers 404"},
		"a file that is there no more":            {files: packed(withFile("/gone")), refused: "/gone does not exist: the server answers 410"},
		"a file of the release that it lacks":     {files: packed(withOwn(sumOfOwn)), refused: `has no asset "own.tar"`},
		"a file of the release, of another sum":   {files: with(packed(withOwn(strings.Repeat("0", 64))), "own.tar", "own"), refused: `does not list "own.tar" with the sum that the plan has`},
		"a server of files that is ill":           {files: packed(withFile("/ill")), passes: "the server answers 503"},
	} {
		t.Run(what, func(t *testing.T) {
			server := github.New()
			defer server.Close()
			server.Publish(github.Release{Tag: "release-2.0", Files: tt.files})
			c := record.Config{Env: record.EnvProduction, GitHubRepository: github.Repository, GitHubURL: server.URL()}
			if tt.key {
				c.MinisignKey = publisher.PublicKey()
			}
			source, all := openReleases(t, c)

			i := release.Inspection{Form: release.Tarball, Running: "1.0", Others: tt.others, Dir: t.TempDir()}
			d, err := source.Inspect(t.Context(), all[0], i)
			refused, isRefused := errors.AsType[release.RefusedError](err)
			switch {
			case tt.refused != "":
				if !isRefused || !strings.Contains(err.Error(), tt.refused) || refused.Sums == "" || d.Digests != (record.Digests{}) {
					t.Errorf("%v, of %q, with %+v; want a refusal: %q", err, refused.Sums, d, tt.refused)
				}
				return
			case tt.passes != "":
				if isRefused || err == nil || !strings.Contains(err.Error(), tt.passes) {
					t.Errorf("%v; want an error that passes: %q", err, tt.passes)
				}
				return
			case err != nil || d.Sums == "":
				t.Fatalf("%+v, %v", d, err)
			}

			// If the files are known, an inspection downloads only the sums and their signature.
			before := server.Count().Files
			i.Known = d.Digests
			again, err := source.Inspect(t.Context(), all[0], i)
			if err != nil || again.Digests != d.Digests || server.Count().Files > before+2 {
				t.Errorf("again: %+v, %v, by %d files", again, err, server.Count().Files-before)
			}
		})
	}
}

// cancelAfterFetch is a Publisher that cancels a context once it has downloaded a file.
type cancelAfterFetch struct {
	release.Publisher
	cancel context.CancelFunc
}

// Fetch downloads the file, and then cancels the context.
func (p cancelAfterFetch) Fetch(ctx context.Context, a release.Asset, path string, sum [sha256.Size]byte) error {
	defer p.cancel()
	return p.Publisher.Fetch(ctx, a, path, sum)
}

// openReleases opens the source of releases, and lists its releases.
func openReleases(t *testing.T, c record.Config) (*release.Source, []release.Release) {
	t.Helper()
	source, err := release.NewSource(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	releases, err := source.Releases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return source, releases
}

// TestInterruptedInspection checks an inspection that is interrupted between the download of the package and
// the check of its plan. It fails, and a later inspection checks the plan.
func TestInterruptedInspection(t *testing.T) {
	server := github.New()
	defer server.Close()
	own := "bijou_2.0_linux_" + runtime.GOARCH + ".tar.gz"
	files := map[string][]byte{own: tarball(t, "version: 2.0\n"+newPlan)}
	server.Publish(github.Release{Tag: "release-2.0", Files: files})
	c := record.Config{Env: record.EnvProduction, GitHubRepository: github.Repository, GitHubURL: server.URL()}
	source, all := openReleases(t, c)

	publisher := source.Publisher
	ctx, cancel := context.WithCancel(t.Context())
	source.Publisher = cancelAfterFetch{publisher, cancel}
	i := release.Inspection{Form: release.Tarball, Running: "1.0", Dir: t.TempDir()}
	if d, err := source.Inspect(ctx, all[0], i); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %+v, %v", d, err)
	}

	source.Publisher = publisher
	d, err := source.Inspect(t.Context(), all[0], i)
	if _, isRefused := errors.AsType[release.RefusedError](err); !isRefused || !strings.Contains(err.Error(), "blue-green") {
		t.Errorf("after the interruption: %+v, %v; want a refusal", d, err)
	}
}

// TestNeedsOfARelease checks the total size of the files that each server downloads. Files whose size the web
// server does not report are not counted.
func TestNeedsOfARelease(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if size, known := strings.CutPrefix(r.URL.Path, "/bytes/"); known {
			w.Header().Set("Content-Length", size)
			return
		}
		http.Error(w, "not by HEAD", http.StatusMethodNotAllowed)
	}))
	defer files.Close()
	file := func(name, rest string) string {
		return "{url: \"" + files.URL + name + "\", sha256: \"" + strings.Repeat("ab", 32) + "\"" + rest + "}"
	}
	plan := "version: 2.0\ncomponents:\n" +
		"- {name: a, strategy: any, artifact: {archive: " + file("/bytes/3000", ", to: /usr/local/a") + "}}\n" +
		"- {name: b, strategy: any, artifact: {deb: " + file("/bytes/2000", "") + "}}\n" +
		"- {name: silent, strategy: any, artifact: {deb: " + file("/silent", "") + "}}\n" +
		"- {name: image, strategy: any, artifact: {image: \"image:1\"}}\n" +
		"- {name: none, strategy: any}\n"
	server := github.New()
	defer server.Close()
	own := tarball(t, plan)
	server.Publish(github.Release{Tag: "release-2.0", Files: map[string][]byte{
		"bijou_2.0_linux_" + runtime.GOARCH + ".tar.gz": own, "neco_2.0_" + runtime.GOARCH + ".deb": []byte("a package"),
	}})
	source, err := release.NewSource(record.Config{Env: record.EnvProduction, GitHubRepository: github.Repository, GitHubURL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	all, err := source.Releases(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	others := []release.Package{{Form: release.Deb, Arch: runtime.GOARCH}}
	found, err := source.Inspect(t.Context(), all[0], release.Inspection{Form: release.Tarball, Running: "1.0", Others: others, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	want := &record.Needs{
		Version: "2.0", Sums: found.Sums,
		Packages: map[string]int64{"tarball/" + runtime.GOARCH: int64(len(own)), "deb/" + runtime.GOARCH: int64(len("a package"))},
		Files: map[string][]record.NeededFile{runtime.GOARCH: {
			{Component: "a", Sum: "abababababab", Size: 3000, Into: "/usr/local"},
			{Component: "b", Sum: "abababababab", Size: 2000, Into: record.RoomPackages},
		}},
	}
	if diff := cmp.Diff(want, found.Needs); diff != "" {
		t.Error(diff)
	}
}
