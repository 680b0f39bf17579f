// Package releasetest states what a source of releases must do. Anything that it does not state is not
// required. It is a slice of named functions and contains no Go test.
package releasetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/fakes/github"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Place is one source under test, with nothing published.
type Place struct {
	Config record.Config
	// Publish makes these the only releases. SHA256SUMS is among their files.
	Publish func(t *testing.T, all []github.Release)
	// After Break the source misbehaves. ok is false if it cannot misbehave in that way.
	Break func(t *testing.T, f Fault) (ok bool)
}

type testCase struct {
	name string
	run  func(f *fixture)
}

// fixture contains the source and the helpers of one case.
type fixture struct {
	*testing.T
	place  Place
	source *release.Source
}

// Run checks every promise, each with its own source.
func Run(t *testing.T, open func(t *testing.T) Place) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{T: t, place: open(t)}
			f.place.Config.Env = record.EnvProduction
			f.open(f.place.Config)
			c.run(f)
		})
	}
}

func (f *fixture) open(c record.Config) {
	f.Helper()
	source, err := release.NewSource(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(source.Close)
	f.source = source
}

func cases() []testCase {
	return []testCase{
		{"nothing is published", nothingPublished},
		{"releases are listed with their files", listed},
		{"what is published later is seen, and what is taken back is gone", listedAgain},
		{"a small file is read", readSmall},
		{"a file comes to its path, and once only", fetched},
		{"a file of another content never comes to its path", fetchedOther},
		{"a file that is not there says so", fetchedMissing},
		{"a download that is cut goes on", fetchedCut},
		{"signed sums are trusted, others refused", signatures},
		{"a file of the release, named by its plan", planFile},
		{"a user or a token is wanted", breaks(Unauthorized, release.Unauthorized)},
		{"what is asked for is forbidden", breaks(Forbidden, release.Forbidden)},
		{"nothing is there", breaks(Absent, release.Missing)},
		{"too many have asked", breaks(Limited, release.Limited)},
		{"the server is ill", breaks(Ill, release.Faulty)},
		{"a login page stands in the place of the list", breaks(Page, release.NoReleases)},
		{"nobody answers", breaks(Hangup, release.Unreachable)},
		{"a call that is called off", calledOff},
	}
}

const content = "0123456789abcdef"

// version returns a release with the given tag and its files.
func version(tag string) github.Release {
	_, v, _ := strings.Cut(tag, "-")
	files := map[string][]byte{"bijou_" + v + "_linux_amd64.tar.gz": bytes.Repeat([]byte(content), 64), "notes.txt": []byte(tag)}
	files[release.SumsFile] = github.Sums(files)
	return github.Release{Tag: tag, Files: files}
}

func (f *fixture) publish(all ...github.Release) {
	f.Helper()
	f.place.Publish(f.T, all)
}

func (f *fixture) list() []release.Release {
	f.Helper()
	all, err := f.source.Releases(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	slices.SortFunc(all, func(a, b release.Release) int { return strings.Compare(a.Tag, b.Tag) })
	return all
}

func (f *fixture) asset(name string) release.Asset {
	f.Helper()
	a, err := f.list()[0].Find(name)
	if err != nil {
		f.Fatal(err)
	}
	return a
}

func (f *fixture) failsWith(err error, kind release.Kind) release.SourceError {
	f.Helper()
	failed, ok := errors.AsType[release.SourceError](err)
	if !ok || failed.Kind != kind {
		f.Fatalf("%v, of kind %q; want kind %q", err, failed.Kind, kind)
	}
	return failed
}

func nothingPublished(f *fixture) {
	f.publish()
	if all := f.list(); len(all) > 0 {
		f.Error(all)
	}
}

func listed(f *fixture) {
	pre := version("test-1.12-1")
	pre.Pre = true
	odd := version("odd-0.1")
	odd.Files = map[string][]byte{"a name with blanks & more.txt": []byte("x"), release.SumsFile: []byte("none\n")}
	f.publish(version("release-1.2-1"), pre, odd)
	all := f.list()

	var got []string
	for _, r := range all {
		got = append(got, r.Tag)
		if r.PreRelease != (r.Tag == "test-1.12-1") || r.Draft {
			f.Errorf("%+v", r)
		}
	}
	if diff := cmp.Diff([]string{"odd-0.1", "release-1.2-1", "test-1.12-1"}, got); diff != "" {
		f.Error(diff)
	}

	sizes := map[string]int64{}
	for _, a := range all[1].Assets {
		sizes[a.Name] = a.Size
	}
	want := map[string]int64{"bijou_1.2-1_linux_amd64.tar.gz": 1024, "notes.txt": 13, release.SumsFile: int64(len(version("release-1.2-1").Files[release.SumsFile]))}
	if diff := cmp.Diff(want, sizes); diff != "" {
		f.Error(diff)
	}

	data, err := f.source.Read(f.Context(), f.asset("a name with blanks & more.txt"))
	if err != nil || string(data) != "x" {
		f.Errorf("%q, %v", data, err)
	}
}

func listedAgain(f *fixture) {
	for _, tags := range [][]string{{"release-1.0"}, {"release-1.0", "release-1.1"}, {"release-1.1"}, {"release-1.1"}} {
		var all []github.Release
		for _, tag := range tags {
			all = append(all, version(tag))
		}
		f.publish(all...)

		var got []string
		for _, r := range f.list() {
			got = append(got, r.Tag)
		}
		if diff := cmp.Diff(tags, got); diff != "" {
			f.Error(diff)
		}
	}
}

func readSmall(f *fixture) {
	f.publish(version("release-1.0"))
	data, err := f.source.Read(f.Context(), f.asset("notes.txt"))
	if err != nil || string(data) != "release-1.0" {
		f.Errorf("%q, %v", data, err)
	}
}

func fetched(f *fixture) {
	f.publish(version("release-1.0"))
	want := version("release-1.0").Files["bijou_1.0_linux_amd64.tar.gz"]
	a := f.asset("bijou_1.0_linux_amd64.tar.gz")
	path := filepath.Join(f.TempDir(), "file")

	for range 2 {
		if err := f.source.Publisher.Fetch(f.Context(), a, path, sha256.Sum256(want)); err != nil {
			f.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			f.Fatalf("%d bytes, %v", len(got), err)
		}
		// A file that exists is not requested again, so the fault has no effect.
		f.place.Break(f.T, FilesPage)
	}
}

func fetchedOther(f *fixture) {
	f.publish(version("release-1.0"))
	a := f.asset("bijou_1.0_linux_amd64.tar.gz")
	path := filepath.Join(f.TempDir(), "file")
	fails := func(what string, sum [sha256.Size]byte) {
		err := f.source.Publisher.Fetch(f.Context(), a, path, sum)
		if _, there := os.Stat(path); err == nil || there == nil {
			f.Errorf("%s: %v, %v", what, err, there)
		}
	}
	want := sha256.Sum256(version("release-1.0").Files[a.Name])
	fails("another sum", sha256.Sum256(nil))
	if f.place.Break(f.T, FilesPage) {
		fails("a web page", want)
	}
	if f.place.Break(f.T, FilesOther) {
		fails("as many bytes", want)
	}
}

func fetchedMissing(f *fixture) {
	f.publish(version("release-1.0"))
	a := f.asset("notes.txt")
	if !f.place.Break(f.T, FilesAbsent) {
		f.Skip("its files are always there")
	}
	_, err := f.source.Read(f.Context(), a)
	f.failsWith(err, release.Missing)
	f.failsWith(f.source.Publisher.Fetch(f.Context(), a, filepath.Join(f.TempDir(), "file"), sha256.Sum256(nil)), release.Missing)
}

func fetchedCut(f *fixture) {
	f.publish(version("release-1.0"))
	a := f.asset("bijou_1.0_linux_amd64.tar.gz")
	if !f.place.Break(f.T, FilesCut) {
		f.Skip("its files are never cut")
	}
	err := f.source.Publisher.Fetch(f.Context(), a, filepath.Join(f.TempDir(), "file"), sha256.Sum256(version("release-1.0").Files[a.Name]))
	if err != nil {
		f.Error(err)
	}
}

func signatures(f *fixture) {
	signer := github.NewSigner("publisher")
	signed, forged, unsigned := version("release-1.0"), version("release-1.1"), version("release-1.2")
	signed.Files[release.SignatureFile] = signer.Sign(signed.Files[release.SumsFile])
	forged.Files[release.SignatureFile] = github.NewSigner("forger").Sign(forged.Files[release.SumsFile])
	f.publish(signed, forged, unsigned)
	f.place.Config.MinisignKey = signer.PublicKey()
	f.open(f.place.Config)

	for version, want := range map[string]string{"1.0": "", "1.1": "it was made with key", "1.2": "it has no SHA256SUMS.minisig"} {
		path, err := f.source.FetchPackage(f.Context(), release.Wanted{Version: version, Form: release.Tarball, Arch: "amd64", Dir: f.TempDir()})
		_, there := os.Stat(path)
		if want == "" && (err != nil || there != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			f.Errorf("%s: %q, %v; want %q", version, path, err, want)
		}
	}
}

func planFile(f *fixture) {
	f.publish(version("release-1.0"))
	sum := sha256.Sum256([]byte("release-1.0"))
	file := release.File{Name: "notes.txt", SHA256: hexOf(sum), Release: "1.0"}
	path := filepath.Join(f.TempDir(), "file")
	if err := f.source.FetchFile(f.Context(), file, path); err != nil {
		f.Fatal(err)
	}

	file.SHA256 = strings.Repeat("0", 64)
	if err := f.source.FetchFile(f.Context(), file, path+"2"); err == nil {
		f.Error("another sum is taken")
	}
}

// breaks returns a case that checks the kind of error while the source has the given fault. The case also
// checks that the source works afterwards.
func breaks(fault Fault, kind release.Kind) func(f *fixture) {
	return func(f *fixture) {
		f.publish(version("release-1.0"))
		if !f.place.Break(f.T, fault) {
			f.Skip("it cannot misbehave so")
		}
		_, err := f.source.Releases(f.Context())
		failed := f.failsWith(err, kind)
		if !strings.HasPrefix(err.Error(), "cannot list the releases of ") {
			f.Error(err)
		}
		if d := release.Delay(err, 1, time.Hour, time.Now()); fault == Limited && d != RetryAfter {
			f.Errorf("again after %s; %+v", d, failed)
		}

		f.place.Break(f.T, None)
		if all := f.list(); len(all) != 1 {
			f.Error(all)
		}
	}
}

func calledOff(f *fixture) {
	f.publish(version("release-1.0"))
	a := f.asset("notes.txt")
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if _, err := f.source.Releases(ctx); !errors.Is(err, context.Canceled) {
		f.Error(err)
	}
	if _, err := f.source.Read(ctx, a); !errors.Is(err, context.Canceled) {
		f.Error(err)
	}
}
