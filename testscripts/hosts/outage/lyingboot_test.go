package outage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/testscripts/fakes/github"
	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// bootFleet is two boot servers on a disk that loses data and fails. The disk contains their programs, their
// workers' directories, and the files of the components. Neco's keys, the releases and the services are
// elsewhere.
//
// A server's archives go below its worker's working directory, so that the same plan works for both.
type bootFleet struct {
	t         *testing.T
	disk      *lyingdisk.Disk
	elsewhere string
	releases  *github.Server
	state     string
	versions  []bootVersion // the oldest version first

	mu      sync.Mutex
	halted  bool
	said    []string // the output of daemons when they ended
	running sync.WaitGroup
}

// bootVersion is one release, and the files that it installs on a server's disk.
type bootVersion struct {
	name     string
	manifest string
	program  []byte
	archives map[string]bootArchive // by component
}

// bootArchive is the archive that a component installs.
type bootArchive struct {
	sum    string
	packed []byte
	files  map[string][]byte
}

// bootServers returns the servers' numbers.
func bootServers() []string { return []string{"1", "2"} }

// bootSystemctl imitates systemctl. Each service checks its own files before it starts.
const bootSystemctl = `#!/bin/bash
name=${2%.service}
mark=$ELSEWHERE/run/$2.$LRN
case $1 in
start|restart)
	if [ -e "opt/$name" ]; then
		out=$(cd "opt/$name" && sha256sum --quiet -c sums 2>&1) || {
			[[ $out == *"Input/output error"* ]] && { echo "$out"; exit 1; }
			echo "$LRN $2 starts from files that are not whole: $out" >>"$ELSEWHERE/torn"
			exit 1
		}
	fi
	touch "$mark" ;;
stop) rm -f "$mark" ;;
is-active) [ -e "$mark" ] ;;
esac
`

const bootComponents = `components:
- {name: tool, strategy: stop-all, services: [tool.service], artifact: {archive: %s}}
- {name: data, strategy: rolling, services: [data.service], artifact: {archive: %s}}
- {name: last, strategy: any, services: [last.service]}
`

// bootSteps returns the plan's steps in order.
func bootSteps() []string {
	return []string{"install", "hand over", "tool/stop", "tool/update", "data/update", "last/update"}
}

func newBootFleet(t *testing.T, versions int) *bootFleet {
	t.Helper()
	need.Long(t)
	f := &bootFleet{t: t, disk: lyingdisk.New(t), elsewhere: t.TempDir(), releases: github.New(), halted: true}
	t.Cleanup(f.releases.Close)
	t.Cleanup(func() {
		f.halt()
		if t.Failed() {
			t.Logf("neco status says\n%s\nthe daemons said\n%s", f.neco("status"), strings.Join(f.said, "\n"))
		}
	})
	f.state = "sqlite:" + f.at("neco.db")
	for n := range versions {
		f.versions = append(f.versions, f.makeVersion(n))
	}

	check(t, os.WriteFile(f.at("systemctl"), []byte(bootSystemctl), 0o755))
	check(t, os.Mkdir(f.at("run"), 0o755))
	check(t, os.Mkdir(f.onDisk("tmp"), 0o755))
	for _, lrn := range bootServers() {
		f.installByHand(lrn)
	}
	f.cut(1) // all files from before the test count as synced
	for _, words := range []string{
		"init", "config set github-url " + f.releases.URL(), "config set github-repository " + github.Repository,
		"config set env production", "config set check-update-interval 1s", "bootserver add 1 2",
	} {
		f.neco(strings.Fields(words)...)
	}
	return f
}

func (f *bootFleet) at(name string) string { return filepath.Join(f.elsewhere, name) }

func (f *bootFleet) onDisk(parts ...string) string {
	return filepath.Join(append([]string{f.disk.Path}, parts...)...)
}

// server returns the path of a file in a server's own directory, which contains its program and its
// components' files.
func (f *bootFleet) server(lrn string, parts ...string) string {
	return f.onDisk(append([]string{"s" + lrn}, parts...)...)
}

// worker returns the path of a file in a worker's directory.
func (f *bootFleet) worker(lrn string, parts ...string) string {
	return f.onDisk(append([]string{"w" + lrn}, parts...)...)
}

func (f *bootFleet) makeVersion(n int) bootVersion {
	f.t.Helper()
	v := bootVersion{name: fmt.Sprintf("1.%d-1", n), archives: map[string]bootArchive{}}
	binary, err := os.ReadFile("/proc/self/exe")
	check(f.t, err)
	v.program = append(binary, "version "+v.name...) // after the end of the ELF file

	var archives []any
	components := map[string][]byte{}
	for _, name := range []string{"tool", "data"} {
		a := f.makeArchive(name, v.name)
		v.archives[name] = a
		components[name+".tar"] = a.packed
		archives = append(archives, fmt.Sprintf("{url: %sfiles/parts-%s/%s.tar, sha256: %s, to: /proc/self/cwd/opt/%s}",
			f.releases.URL(), v.name, name, a.sum, name))
	}
	f.releases.Publish(github.Release{Tag: "parts-" + v.name, Draft: true, Files: components})
	v.manifest = "version: " + v.name + "\n" + fmt.Sprintf(bootComponents, archives...)
	return v
}

// makeArchive makes an archive of many small files and a large one, and their sums.
func (f *bootFleet) makeArchive(component, version string) (a bootArchive) {
	f.t.Helper()
	a.files = map[string][]byte{"large": bytes.Repeat([]byte(component+version+"\n"), 100_000)}
	for n := range 20 {
		a.files[fmt.Sprintf("dir%d/file%d", n%4, n)] = []byte(fmt.Sprintln(component, version, n))
	}
	var sums strings.Builder
	for name, data := range a.files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
	}
	a.files["sums"] = []byte(sums.String())
	a.packed = packFiles(f.t, a.files)
	sum := sha256.Sum256(a.packed)
	a.sum = hex.EncodeToString(sum[:])
	return a
}

func packFiles(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	packed, err := packSorted(files)
	check(t, err)
	return packed
}

// packSorted packs files without compression, because compression would take longer than the rest of the
// test.
func packSorted(files map[string][]byte) ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func (f *bootFleet) installByHand(lrn string) {
	f.t.Helper()
	check(f.t, os.Mkdir(f.server(lrn), 0o755))
	check(f.t, os.Mkdir(f.server(lrn, "opt"), 0o755))
	check(f.t, os.WriteFile(f.server(lrn, "bijou"), f.versions[0].program, 0o755))
	check(f.t, os.WriteFile(f.server(lrn, "manifest.yaml"), []byte(f.versions[0].manifest), 0o644))
}

// neco runs a command and returns its output, even if the command fails.
func (f *bootFleet) neco(words ...string) string {
	cmd := exec.Command("neco", words...)
	cmd.Env = append(os.Environ(), "NECO_STATE="+f.state, "NO_COLOR=1")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// start starts all daemons. It restarts each when it ends, as systemd does.
func (f *bootFleet) start() {
	f.mu.Lock()
	f.halted = false
	f.mu.Unlock()
	for _, lrn := range bootServers() {
		f.running.Go(func() {
			f.keepRunning(lrn, "neco-worker", "--lrn", lrn, "--dir", f.worker(lrn), "--services", f.at("systemctl"))
		})
		f.running.Go(func() { f.keepRunning(lrn, "neco-updater") })
	}
}

func (f *bootFleet) keepRunning(lrn string, words ...string) {
	for {
		var said bytes.Buffer
		cmd := exec.Command(f.server(lrn, "bijou"))
		cmd.Args, cmd.Dir, cmd.Stdout, cmd.Stderr = words, f.server(lrn), &said, &said
		cmd.Env = append(os.Environ(), "NECO_STATE="+f.state, "LRN="+lrn, "ELSEWHERE="+f.elsewhere, "TMPDIR="+f.onDisk("tmp"))

		f.mu.Lock()
		if f.halted {
			f.mu.Unlock()
			return
		}
		err := cmd.Start()
		f.mu.Unlock()
		if err == nil {
			err = cmd.Wait()
		}
		f.mu.Lock()
		f.said = append(f.said, fmt.Sprintf("%s %s: %v\n%s", words[0], lrn, err, said.String()))
		f.mu.Unlock()
		rest(300 * time.Millisecond)
	}
}

// halt kills all processes that run on the servers.
func (f *bootFleet) halt() {
	f.t.Helper()
	f.mu.Lock()
	f.halted = true
	f.mu.Unlock()
	f.disk.KillUsers()
	f.running.Wait()
	f.disk.KillUsers() // kills processes that have started while halt waited for the others
}

// cut cuts the power of both servers. Afterwards their files must be complete, and the files must match the
// servers' records.
func (f *bootFleet) cut(survive float64) {
	f.t.Helper()
	f.halt()
	status := f.status()
	f.disk.Cut(survive)

	services, err := filepath.Glob(f.at("run/*"))
	check(f.t, err)
	for _, s := range services {
		check(f.t, os.Remove(s))
	}
	for _, lrn := range bootServers() {
		f.checkServer(lrn, status)
	}
	f.checkTorn()
}

// checkTorn checks that no service has started from incomplete files.
func (f *bootFleet) checkTorn() {
	f.t.Helper()
	if torn, err := os.ReadFile(f.at("torn")); err == nil {
		f.t.Errorf("%s", torn)
	}
}

// bootStatus is the output of neco status.
type bootStatus struct {
	State   string `json:"state"`
	Why     string `json:"why"`
	Version string `json:"version"`
	Servers []struct {
		LRN    int    `json:"lrn"`
		Worker string `json:"worker-version"`
		Status *struct {
			Version  string `json:"version"`
			StepName string `json:"step-name"`
			Finished bool   `json:"finished"`
		} `json:"status"`
	} `json:"servers"`
}

func (f *bootFleet) status() (s bootStatus) {
	f.t.Helper()
	cmd := exec.Command("neco", "status", "--format", "json")
	cmd.Env = append(os.Environ(), "NECO_STATE="+f.state)
	out, _ := cmd.Output() // its exit code shows the state
	if err := json.Unmarshal(out, &s); err != nil && len(f.versions) > 0 && f.isSetUp() {
		f.t.Fatalf("%v: %s", err, out)
	}
	return s
}

func (f *bootFleet) isSetUp() bool {
	_, err := os.Stat(f.at("neco.db"))
	return err == nil
}

// checkServer compares a server's disk after a cut with the records from before the cut.
func (f *bootFleet) checkServer(lrn string, status bootStatus) {
	f.t.Helper()
	program := f.installedProgram(lrn)
	manifest, err := os.ReadFile(f.server(lrn, "manifest.yaml"))
	check(f.t, err)
	planned := slices.IndexFunc(f.versions, func(v bootVersion) bool { return v.manifest == string(manifest) })
	if program < 0 || planned < 0 || planned > program {
		f.t.Errorf("server %s has program %d and manifest %d", lrn, program, planned)
	}

	at := map[string]string{} // the archive of each component
	for _, name := range []string{"tool", "data"} {
		at[name] = f.checkComponent(lrn, name)
	}
	for _, s := range status.Servers {
		if fmt.Sprint(s.LRN) != lrn || s.Status == nil {
			continue
		}
		n := slices.IndexFunc(f.versions, func(v bootVersion) bool { return v.name == s.Status.Version })
		step := slices.Index(bootSteps(), s.Status.StepName)
		if n < 0 || step < 0 {
			f.t.Errorf("server %s: unknown record %+v", lrn, *s.Status)
			continue
		}
		if step >= 1 && (program != n || planned != n) {
			f.t.Errorf("server %s has come to %s of %s; its program is number %d, its manifest %d", lrn, s.Status.StepName, s.Status.Version, program, planned)
		}
		for _, name := range []string{"tool", "data"} {
			done := s.Status.Finished || step > slices.Index(bootSteps(), name+"/update")
			if want := f.versions[n].archives[name].sum[:16]; done && at[name] != want {
				f.t.Errorf("server %s has done %s/update of %s; after the cut it has %q, want %q", lrn, name, s.Status.Version, at[name], want)
			}
		}
	}
}

// installedProgram returns the number of the version whose program a server has. The program must be
// complete.
func (f *bootFleet) installedProgram(lrn string) int {
	f.t.Helper()
	program, err := os.ReadFile(f.server(lrn, "bijou"))
	check(f.t, err)
	return slices.IndexFunc(f.versions, func(v bootVersion) bool { return bytes.Equal(v.program, program) })
}

// checkComponent returns the archive of a component by the beginning of its sum, or "". The target of
// the component's symlink must be complete, and must exist if the worker's own record says so.
func (f *bootFleet) checkComponent(lrn, name string) (sum string) {
	f.t.Helper()
	link, err := os.Readlink(f.server(lrn, "opt", name))
	if err == nil {
		sum = filepath.Base(link)
		f.checkWhole(name, f.server(lrn, "opt", name+".releases", sum), sum)
	}

	var record struct{ Artifact, Phase string }
	data, err := os.ReadFile(f.worker(lrn, "components", name+".json"))
	if os.IsNotExist(err) {
		return sum
	}
	check(f.t, err)
	if err := json.Unmarshal(data, &record); err != nil {
		f.t.Errorf("server %s: the record of %s is not whole: %v: %q", lrn, name, err, data)
	}
	if record.Phase != "changing" && !strings.HasPrefix(record.Artifact, "archive "+sum) || record.Phase != "changing" && sum == "" {
		f.t.Errorf("server %s: the record of %s says %+v, and its link leads to %q", lrn, name, record, sum)
	}
	return sum
}

func (f *bootFleet) checkWhole(component, dir, sum string) {
	f.t.Helper()
	for _, v := range f.versions {
		a := v.archives[component]
		if a.sum[:16] != sum {
			continue
		}
		for name, want := range a.files {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(data, want) {
				f.t.Errorf("%s is not whole: %d of %d bytes (%v)", filepath.Join(dir, name), len(data), len(want), err)
			}
		}
		return
	}
	f.t.Errorf("%s is of no release", dir)
}

// publish publishes the version with that number.
func (f *bootFleet) publish(n int) {
	v := f.versions[n]
	f.releases.Publish(github.Release{Tag: "release-" + v.name, Files: map[string][]byte{
		fmt.Sprintf("bijou_%s_linux_%s.tar.gz", v.name, runtime.GOARCH): packFiles(f.t, map[string][]byte{"bijou": v.program, "manifest.yaml": []byte(v.manifest)}),
		"manifest.yaml": []byte(v.manifest),
	}})
}

// reached returns "" if both servers have finished all steps of that version. Otherwise it returns the
// missing part.
func (f *bootFleet) reached(n int) string {
	s := f.status()
	want := f.versions[n].name
	for _, one := range s.Servers {
		if one.Worker != want || one.Status == nil || one.Status.Version != want || !one.Status.Finished {
			return f.neco("status")
		}
	}
	return await.Unless(s.State == "up to date" && s.Version == want && len(s.Servers) == len(bootServers()), "%s", f.neco("status"))
}

// diskTrouble matches the file and the cause in a refusal.
var diskTrouble = regexp.MustCompile(`(` + regexp.QuoteMeta(os.TempDir()) + `|/proc/self/cwd)/[^ ]+.*: (input/output error|Input/output error)`)

// retryStopped runs the command that neco status suggests for an update that the disk's failure has stopped.
func (f *bootFleet) retryStopped() (retried bool) {
	f.t.Helper()
	if f.status().State != "stopped" {
		return false
	}
	said := f.neco("status")
	if !diskTrouble.MatchString(said) {
		f.t.Errorf("the update is stopped, and neco status names no file that the disk could not read or write:\n%s", said)
	}
	if !strings.Contains(said, "neco retry") || !strings.Contains(said, "dmesg") {
		f.t.Errorf("the update is stopped, and neco status does not say what to do:\n%s", said)
	}
	f.neco("retry")
	return true
}

// TestWorkersUnsyncedIsLost cuts the power while workers install releases. The disk keeps all synced data,
// and none or some of the other data.
func TestWorkersUnsyncedIsLost(t *testing.T) {
	f := newBootFleet(t, 4)
	f.start()
	chances, cuts := []float64{0, 0.5, 0, 0.9}, 0
	for n := 1; n < len(f.versions); n++ {
		f.publish(n)
		for range chances {
			rest(time.Second + time.Duration(f.disk.Dice.IntN(int(4*time.Second))))
			f.cut(chances[cuts%len(chances)])
			f.start()
			cuts++
			if f.reached(n) == "" {
				break
			}
		}
		f.awaitVersion(n)
	}
	f.cut(0)
	fmt.Printf("outage: workers' unsynced is lost: %d cuts, %d releases\n", cuts+1, len(f.versions)-1)
}

func (f *bootFleet) awaitVersion(n int) (retries int) {
	f.t.Helper()
	await.Until(f.t, await.Poll{Limit: 90 * time.Second, Pause: 300 * time.Millisecond}, "the fleet has "+f.versions[n].name, func() string {
		if f.retryStopped() {
			retries++
		}
		return f.reached(n)
	})
	return retries
}

// TestWorkersFailingDisk makes syncs, writes and reads of the disk fail briefly while workers install
// releases. Refusals must say why and what to do. Once the disk works again, the updates must continue.
func TestWorkersFailingDisk(t *testing.T) {
	kinds := []string{"sync", "write", "read"}
	f := newBootFleet(t, 1+len(kinds))
	f.start()
	f.awaitWorkers(0)
	for i, what := range kinds {
		f.failUnder(i+1, what)
	}
}

// failUnder makes the disk fail while the fleet installs that version.
func (f *bootFleet) failUnder(n int, what string) {
	f.t.Helper()
	f.publish(n)
	retries := 0
	for range 12 {
		rest(f.moment(100*time.Millisecond, time.Second))
		f.disk.Fail(what)
		rest(f.moment(100*time.Millisecond, time.Second))
		f.disk.Heal()
		if f.retryStopped() {
			retries++
		}
		if f.reached(n) == "" {
			break
		}
	}
	failed := f.disk.Failed(what)
	if failed == 0 {
		f.t.Errorf("no %s failed", what)
	}
	retries += f.awaitVersion(n)
	f.cut(0)
	f.start()
	f.awaitWorkers(n)
	fmt.Printf("outage: workers' failing disk: %d failures to %s, %d retries of an operator\n", failed, what, retries)
}

// awaitWorkers waits until the workers of both servers run that version.
func (f *bootFleet) awaitWorkers(n int) {
	f.t.Helper()
	await.Until(f.t, await.Poll{Limit: 90 * time.Second, Pause: 300 * time.Millisecond}, "the workers are at work", func() string {
		for _, s := range f.status().Servers {
			if s.Worker != f.versions[n].name {
				return f.neco("status")
			}
		}
		return ""
	})
}

func (f *bootFleet) moment(least, most time.Duration) time.Duration {
	return least + time.Duration(f.disk.Dice.IntN(int(most-least)))
}
