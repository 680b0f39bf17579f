package outage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/unitdir"
	"bijou/testscripts/fakes/github"
	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
	"bijou/updater/host"
	"bijou/updater/record"
	"bijou/updater/release"
)

// operationProgram is the name under which this binary carries out one operation, so that it can be
// killed in the middle.
const operationProgram = "lying-operation"

// operation is an action on a disk that leads from version 0 to version 1. A caller repeats it if it was
// interrupted.
type operation struct {
	name  string
	run   func(ctx context.Context, j job) error
	check func(t *testing.T, j job) // checks that version 1 is complete
}

// job describes an operation to the process that carries it out.
type job struct {
	Operation string
	Folder    string // on the disk
	Elsewhere string
	Version   int
	URL       string // of the files of both versions
	Releases  string // the address of releases
	State     string
	Charms    [2]string
}

func (j job) at(parts ...string) string {
	return filepath.Join(append([]string{j.Folder}, parts...)...)
}

// content returns the large file of a version.
func content(version int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "version %d\n", version), 10_000)
}

// released returns the files of a version's release. Its program runs under any name.
func released(version int) map[string][]byte {
	return map[string][]byte{
		"bijou":         append([]byte("#!/bin/sh\nexit 0\n"), content(version)...),
		"manifest.yaml": fmt.Appendf(nil, "version: 1.%d-1\ncomponents:\n- {name: last, strategy: any, services: [last.service]}\n", version),
	}
}

func (j job) file(name string) release.File {
	data := operationFiles()[fmt.Sprintf("%s-%d", name, j.Version)]
	sum := sha256.Sum256(data)
	return release.File{URL: fmt.Sprintf("%s/%s-%d", j.URL, name, j.Version), SHA256: hex.EncodeToString(sum[:]), To: j.at("opt", "tool")}
}

// operationFiles returns the files that are downloaded, by name and version.
func operationFiles() map[string][]byte {
	all := map[string][]byte{}
	for version := range 2 {
		all[fmt.Sprintf("large-%d", version)] = content(version)
		archive, err := packSorted(map[string][]byte{"dir/large": content(version), "dir/small": []byte("small")})
		if err != nil {
			panic(err)
		}
		all[fmt.Sprintf("archive-%d", version)] = archive
	}
	return all
}

func operations() []operation {
	return []operation{
		{"download", download, checkDownload},
		{"component", updateComponent, checkComponent},
		{"release", installRelease, checkRelease},
		{"charm", putCharm, checkCharm},
		{"inspection", inspectRelease, checkInspection},
	}
}

func download(ctx context.Context, j job) error {
	f := j.file("large")
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil {
		return err
	}
	return release.Download{
		Client: http.DefaultClient, URL: f.URL, Path: j.at("large"), Size: int64(len(content(j.Version))), SHA256: [sha256.Size]byte(sum),
	}.Get(ctx)
}

func checkDownload(t *testing.T, j job) { wantContent(t, j.at("large"), content(j.Version)) }

func wantContent(t *testing.T, path string, want []byte) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, want) {
		t.Errorf("%s has %d bytes that are not the %d that were acknowledged: %v", path, len(data), len(want), err)
	}
}

func updateComponent(ctx context.Context, j job) error {
	h, err := host.New(host.Options{Dir: j.at("worker"), Services: host.ServiceCommand{Path: "true"}})
	if err != nil {
		return err
	}
	archive := j.file("archive")
	return h.Update(ctx, release.Component{Name: "tool", Strategy: release.Any, Artifact: &release.Artifact{Archive: &archive}})
}

func checkComponent(t *testing.T, j job) {
	wantContent(t, j.at("opt/tool/dir/large"), content(j.Version))
}

func installRelease(ctx context.Context, j job) error {
	h, err := host.New(host.Options{Dir: j.at("worker"), Services: host.ServiceCommand{Path: "true"}})
	if err != nil {
		return err
	}
	version := fmt.Sprintf("1.%d-1", j.Version)
	p := host.Package{Form: release.Tarball, File: filepath.Join(j.Elsewhere, version), Version: version, Sums: version}
	return h.InstallRelease(ctx, p, j.at("bin", "bijou"))
}

func checkRelease(t *testing.T, j job) {
	t.Helper()
	for name, data := range released(j.Version) {
		wantContent(t, j.at("bin", name), data)
	}
	version := fmt.Sprintf("1.%d-1", j.Version)
	if sums, err := host.InstalledSums(j.at("worker"), j.at("bin", "bijou"), version); sums != version || err != nil {
		t.Errorf("it is installed from %q: %v", sums, err)
	}
}

func putCharm(ctx context.Context, j job) error {
	st, err := state.Open(ctx, j.State)
	if err != nil {
		return err
	}
	defer st.Close()
	f := unitdir.Of(j.Folder, "mysql/0")
	lock, err := f.Lock(ctx, nil)
	if err != nil {
		return err
	}
	defer lock.Close()
	return unitdir.PutCharm(ctx, st, j.Charms[j.Version], f, nil, func(string) {})
}

// inspectRelease inspects the release as an updater does, and repeats the inspection until it has a result.
func inspectRelease(ctx context.Context, j job) error {
	s, err := release.NewSource(record.Config{Env: "production", GitHubURL: j.Releases, GitHubRepository: github.Repository})
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Releases(ctx)
	if err != nil {
		return err
	}
	r, err := release.Lookup(fmt.Sprintf("1.%d-1", j.Version), "", all)
	if err != nil {
		return err
	}

	var first error
	for range 3 {
		_, err = s.Inspect(ctx, r, release.Inspection{Form: release.Tarball, Running: "1.0-1", Dir: j.at("downloads")})
		if err == nil {
			return first
		}
		if _, refused := errors.AsType[release.RefusedError](err); refused {
			return errors.Join(err, os.WriteFile(j.at("refused"), []byte(err.Error()), 0o644))
		}
		first = cmp.Or(first, err)
	}
	return first
}

func checkInspection(t *testing.T, j job) {
	t.Helper()
	if why, err := os.ReadFile(j.at("refused")); err == nil {
		t.Errorf("a good release is refused: %s", why)
	}
}

// madeByHook returns the files that hooks have created in the charm's directory.
func madeByHook() []string { return []string{"data", "lib/database", "made/deep/file"} }

func checkCharm(t *testing.T, j job) {
	t.Helper()
	f := unitdir.Of(j.Folder, "mysql/0")
	wantContent(t, f.Path("charm/large"), content(j.Version))
	for _, name := range madeByHook() {
		wantContent(t, f.Path("charm/"+name), []byte(name))
	}
}

func runOperation() {
	var j job
	if err := json.Unmarshal([]byte(os.Args[1]), &j); err != nil {
		panic(err)
	}
	for _, o := range operations() {
		if o.name != j.Operation {
			continue
		}
		if err := o.run(context.Background(), j); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// do carries out the operation in a separate process.
func (j job) do(t *testing.T) (said string, err error) {
	t.Helper()
	executable, err := os.Executable()
	check(t, err)
	text, err := json.Marshal(j)
	check(t, err)
	cmd := exec.Command(executable)
	cmd.Args = []string{operationProgram, string(text)}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// interruption is a way to interrupt an operation.
type interruption struct {
	name  string
	what  string // "read", "write" or "sync"
	stays bool   // whether all later calls of that kind fail too
	kills bool
	power int // the number of power cuts to try; 0 for none
}

func interruptions() []interruption {
	return []interruption{
		{name: "reads fail", what: "read", stays: true},
		{name: "a write fails", what: "write"},
		{name: "writes fail", what: "write", stays: true},
		{name: "a sync fails", what: "sync"},
		{name: "killed at a sync", what: "sync", kills: true},
		{name: "power cut at a sync", what: "sync", kills: true, power: 3},
	}
}

// TestEachSync interrupts operations at each of their reads, writes and syncs. It then repeats the
// interrupted operation, as the caller would. Once the operation has reported success, its result must
// survive a power cut.
func TestEachSync(t *testing.T) {
	need.Long(t)
	d := lyingdisk.New(t)
	elsewhere := t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(operationFiles()[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer server.Close()
	st, url := statetest.SQLite(t)
	releases := github.New()
	defer releases.Close()
	j := job{Elsewhere: elsewhere, URL: server.URL, Releases: releases.URL(), State: url}
	for version := range j.Charms {
		files := statetest.MySQL()
		files["large"], files["revision"] = string(content(version)), fmt.Sprintln(version)
		j.Charms[version] = statetest.AddCharm(t, st, files).URL.String()
		packed, err := packSorted(released(version))
		check(t, err)
		name := fmt.Sprintf("1.%d-1", version)
		check(t, os.WriteFile(filepath.Join(elsewhere, name), packed, 0o644))
		releases.Publish(github.Release{Tag: "release-" + name, Files: map[string][]byte{
			fmt.Sprintf("bijou_%s_linux_%s.tar.gz", name, runtime.GOARCH): packed,
		}})
	}

	for _, o := range operations() {
		for _, how := range interruptions() {
			t.Run(o.name+"/"+how.name, func(t *testing.T) {
				j.Operation, j.Folder = o.name, filepath.Join(d.Path, "folder")
				n := 1
				for cutShortOften(t, d, o, j, how, n) {
					n++
				}
				if n == 1 {
					t.Errorf("it needs no %s", how.what)
				}
				t.Logf("%d times %s", n-1, how.what)
			})
		}
	}
}

func cutShortOften(t *testing.T, d *lyingdisk.Disk, o operation, j job, how interruption, n int) bool {
	t.Helper()
	for range max(1, how.power) {
		if !cutShort(t, d, o, j, how, n) {
			return false
		}
	}
	return true
}

// cutShort interrupts an operation at its n-th read, write or sync, and repeats it. It returns false if
// there is no n-th one.
func cutShort(t *testing.T, d *lyingdisk.Disk, o operation, j job, how interruption, n int) bool {
	t.Helper()
	prepareOperation(t, j)
	d.Cut(1)

	switch {
	case how.kills:
		d.KillAtSync(n)
	case how.stays:
		d.FailFrom(n, how.what)
	default:
		d.FailAt(n, how.what)
	}
	j.Version = 1
	said, err := j.do(t)
	reached := d.Failed(how.what) > 0
	d.Heal()
	if !reached && err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if !how.kills && err != nil && !diskTrouble.MatchString(said) {
		t.Errorf("%s %d fails, and it says: %s", how.what, n, said)
	}
	if reached && how.power > 0 {
		d.Cut(0.5)
	}
	for tries := 0; err != nil; tries++ {
		if said, err = j.do(t); err != nil && tries == 2 {
			t.Fatalf("after %s, number %d, it cannot be done again: %v: %s", how.name, n, err, said)
		}
	}

	d.Cut(0)
	before := t.Failed()
	o.check(t, j)
	if t.Failed() && !before {
		t.Errorf("so it is after %s: number %d", how.name, n)
	}
	return reached
}

// prepareOperation creates the initial files: version 0, and the files that hooks have created beside it.
func prepareOperation(t *testing.T, j job) {
	t.Helper()
	check(t, os.RemoveAll(j.Folder))
	for _, dir := range []string{j.Folder, j.at("bin"), j.at("opt")} {
		check(t, os.Mkdir(dir, 0o755))
	}
	if said, err := j.do(t); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if j.Operation != "charm" {
		return
	}
	f := unitdir.Of(j.Folder, "mysql/0")
	for _, name := range madeByHook() {
		check(t, os.MkdirAll(filepath.Dir(f.Path("charm/"+name)), 0o755))
		check(t, os.WriteFile(f.Path("charm/"+name), []byte(name), 0o644))
	}
}
