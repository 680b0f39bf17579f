package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

const (
	limit   = 90 * time.Second  // several times longer than the longest wait on an idle machine
	outside = "10.77.0.13"      // address of the fourth host, which is not a boot server
	images  = outside + ":8082" // container images
	storage = "etcd://10.77.0.10:2379,10.77.0.11:2379,10.77.0.12:2379/neco"
)

// members returns the boot servers' addresses. Their LRNs are 10, 11 and 12.
func members() []string { return []string{"10.77.0.10", "10.77.0.11", "10.77.0.12"} }

// world is three boot servers, and a host outside that serves releases and runs probes.
type world struct {
	t     *testing.T
	fleet *fleet.Fleet
	dir   string // the test's own: binaries, packages
	alive []*exec.Cmd
}

func newWorld(t *testing.T) *world {
	need.Long(t)
	fleet.Need(t)
	etcdtest.Need(t)
	old, err := etcdtest.Binary35()
	if err != nil {
		need.Skip(t, "etcd", err)
	}
	newer, err := etcdtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir()}
	w.check(os.Rename(versions.Current(t), w.path("bijou")))
	w.check(os.MkdirAll(w.path("srv/files"), 0o755))
	for name, binary := range map[string]string{"etcd-3.5": old, "etcd-3.6": newer} {
		w.check(os.MkdirAll(w.path(name), 0o755))
		w.run("cp", binary, w.path(name, "etcd"))
		w.run("tar", "-C", w.path(name), "-cf", w.path("srv/files", name+".tar"), "etcd")
	}
	w.fleet = fleet.New(t, 4)
	t.Cleanup(w.end)
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

// run runs a command on this machine.
func (w *world) run(command ...string) {
	w.t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("cannot run %v: %v\n%s", command, err, out)
	}
}

// write writes a file below the test's directory.
func (w *world) write(path, text string, mode os.FileMode) {
	w.t.Helper()
	path = w.path(path)
	w.check(os.MkdirAll(filepath.Dir(path), 0o755))
	w.check(os.WriteFile(path, []byte(text), mode))
	w.check(os.Chmod(path, mode))
}

// put copies a file or directory to a host.
func (w *world) put(host int, from, to string) {
	w.t.Helper()
	w.fleet.Host(host).Put(w.t, from, to)
}

// on runs a shell command on a host and returns its output.
func (w *world) on(host int, line string) string {
	w.t.Helper()
	out, err := w.fleet.Host(host).Shell(line)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.journals())
	}
	return strings.TrimSpace(out)
}

// spawn starts a command on a host. The command ends with the test. Its output goes to a file on the host.
func (w *world) spawn(host int, command, log string) {
	w.t.Helper()
	c, err := w.fleet.Host(host).Command("bash", "-c", "echo $$ >"+log+".pid; exec "+command+" >"+log+" 2>&1")
	w.check(err)
	w.check(c.Start())
	w.alive = append(w.alive, c)
}

// end ends the spawned commands.
func (w *world) end() {
	for _, c := range w.alive {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// neco runs neco on the host outside.
func (w *world) neco(args string) string {
	w.t.Helper()
	return w.on(3, "NECO_STATE="+storage+" neco "+args)
}

// status is the part of `neco status` that the tests need.
type status struct {
	raw     string
	Current struct {
		Version string
		Stop    bool
		Why     string
		Missing []int
		EndedAt *time.Time `json:"ended-at"`
	}
}

// status reads the current request from any member of etcd that answers.
func (w *world) status() (s status) {
	w.t.Helper()
	out, _ := w.fleet.Host(3).Shell("standin get /neco/status/current " + strings.Join(members(), " "))
	s.raw = strings.TrimSpace(out)
	// Before the first update there is no request.
	_ = json.Unmarshal([]byte(s.raw), &s.Current)
	return s
}

// await waits until ok returns true for the update to that version. It waits as long as a worker makes
// progress, however long that takes on a busy machine.
func (w *world) await(version, what string, ok func(s status) bool) status {
	w.t.Helper()
	var s status
	for came := false; !came; {
		was := w.doings()
		await.Until(w.t, w.poll(), "update to "+version+": "+what, func() string {
			s = w.status()
			came = s.Current.Version == version && ok(s)
			return await.Unless(came || w.doings() != was, "nobody goes on; the status is %s", s.raw)
		})
	}
	return s
}

// poll returns the settings of all waits.
func (w *world) poll() await.Poll {
	return await.Poll{Limit: limit, Pause: 50 * time.Millisecond, Report: w.journals}
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	await.Until(w.t, w.poll(), what, ok)
}

// soon waits for a condition that may last only for a moment.
func (w *world) soon(what string, ok func() bool) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: limit, Pause: time.Millisecond, Report: w.journals}, what, ok)
}

func done(s status) bool { return s.Current.EndedAt != nil && !s.Current.Stop }

func stopped(s status) bool { return s.Current.EndedAt != nil && s.Current.Stop }

// succeeds waits for the update's success and prints how long it took.
func (w *world) succeeds(version string) {
	w.t.Helper()
	began := time.Now()
	s := w.await(version, "success", func(s status) bool { return done(s) || stopped(s) })
	if !done(s) {
		w.t.Fatalf("update to %s was stopped: %s\n%s", version, s.Current.Why, w.journals())
	}
	fmt.Printf("boot: %s: success, %.1f s\n", w.t.Name(), time.Since(began).Seconds())
}

// stops waits until the update stops for a reason that contains all these words.
func (w *world) stops(version string, words ...string) {
	w.t.Helper()
	s := w.await(version, "stop", func(s status) bool { return done(s) || stopped(s) })
	for _, word := range words {
		if !strings.Contains(s.Current.Why, word) {
			w.t.Fatalf("update to %s: the reason does not say %q: %s\n%s", version, word, s.raw, w.journals())
		}
	}
	fmt.Printf("boot: %s: stopped: %s\n", w.t.Name(), s.Current.Why)
}

// doings returns the journals of all workers.
func (w *world) doings() string {
	var all []byte
	for i := range 3 {
		if path, err := w.fleet.Host(i).Path("/var/lib/neco/journal.json"); err == nil {
			one, _ := os.ReadFile(path)
			all = append(all, one...)
		}
	}
	return string(all)
}

// journals returns the last lines of the daemons' logs.
func (w *world) journals() string {
	return fleet.Report(w.fleet.Hosts()[:3], func(int) string {
		return "journalctl --no-pager -n 40 -o cat -u 'neco-*' -u etcd -u vault -u cke"
	})
}
