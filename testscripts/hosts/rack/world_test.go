package rack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/need"
)

// limit is several times longer than the longest wait on an idle machine.
const limit = 2 * time.Minute

// world is three hosts with bijou and etcd on each.
type world struct {
	t       *testing.T
	hosts   []*fleet.Host
	records map[string]record // by unit
}

// record is the file of a unit's recorder.
type record struct {
	host int
	path string
}

// newWorld boots the hosts, with the real binary on the first.
func newWorld(t *testing.T) *world {
	t.Helper()
	need.Long(t)
	fleet.Need(t)
	dir := t.TempDir()
	binary := versions.Current(t)
	w := &world{t: t, hosts: fleet.New(t, 3).Hosts(), records: map[string]record{}}
	w.copy(0, binary, "/opt/bijou/bijou")
	w.on(0, "/opt/bijou/bijou install --dir /usr/local/bin")
	witness, err := os.Executable()
	check(t, err)
	w.copy(0, witness, "/opt/bijou/rack.test")
	check(t, judge.Charm(filepath.Join(dir, "recorder"), filepath.Join("..", "..", "charms", "recorder"), "/tmp"))
	w.copy(0, filepath.Join(dir, "recorder"), "/root/recorder")
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copy copies a file or directory to a host.
func (w *world) copy(host int, from, to string) {
	w.t.Helper()
	w.hosts[host].Put(w.t, from, to)
}

// write writes a file on a host that only root can read.
func (w *world) write(host int, path, content string) {
	w.t.Helper()
	w.hosts[host].Write(w.t, path, content, 0o600)
}

// on runs a shell command on a host and returns its output.
func (w *world) on(host int, line string) string {
	w.t.Helper()
	return w.hosts[host].On(w.t, line)
}

// juju runs an operator's command on host 0.
func (w *world) juju(args string) string {
	w.t.Helper()
	return w.on(0, "juju "+args)
}

// lacks returns "" if a command's output is want or ends with it. Otherwise it returns a message with
// the output.
func (w *world) lacks(host int, line, want string) string {
	out, err := w.hosts[host].Shell(line)
	return await.Unless(out == want || err == nil && strings.HasSuffix("\n"+out, "\n"+want), "on %s: %s: %s %v", w.hosts[host].Name, line, out, err)
}

// eventually waits until the function not returns "". Until then, the function returns the reason to wait longer.
func (w *world) eventually(what string, not func() string) (took time.Duration) {
	w.t.Helper()
	// Each check is a login, so there is a pause.
	return await.Until(w.t, await.Poll{Limit: limit, Pause: 250 * time.Millisecond, Report: w.everything}, what, not)
}

// everything returns all information that helps to find the cause of a failure.
func (w *world) everything() string {
	return fleet.Report(w.hosts, func(i int) string {
		line := "journalctl --no-pager -n 40 -u 'bijou-*' -u etcd"
		if i == 0 {
			line = "juju status; " + line
		}
		return line
	})
}
