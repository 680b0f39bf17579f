package rack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fleet"
	"bijou/testscripts/judge"
	"bijou/testscripts/need"
)

// limit is several times what anything here takes to come true.
const limit = 2 * time.Minute

// world is three hosts with bijou and etcd on each.
type world struct {
	t       *testing.T
	hosts   []*fleet.Host
	records map[string]record // by unit
}

// record is where a unit's recorder writes.
type record struct {
	host int
	path string
}

// newWorld boots the hosts, with the product's own binary on the first.
func newWorld(t *testing.T) *world {
	t.Helper()
	need.Long(t)
	fleet.Need(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", filepath.Join(dir, "bijou"), "bijou")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	f := fleet.New(t, 3)
	w := &world{t: t, records: map[string]record{}}
	for i := range 3 {
		w.hosts = append(w.hosts, f.Host(i))
	}
	w.copy(0, filepath.Join(dir, "bijou"), "/opt/bijou/bijou")
	w.on(0, "/opt/bijou/bijou install --dir /usr/local/bin")
	witness, err := os.Executable()
	check(t, err)
	w.copy(0, witness, "/opt/bijou/rack.test")
	check(t, judge.Charm(filepath.Join(dir, "recorder"), filepath.Join("..", "charms", "recorder"), "/tmp"))
	w.copy(0, filepath.Join(dir, "recorder"), "/root/recorder")
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copy copies a file or folder to a host.
func (w *world) copy(host int, from, to string) {
	w.t.Helper()
	path := w.hosts[host].Disk(to)
	check(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	if out, err := exec.Command("cp", "-a", from, path).CombinedOutput(); err != nil {
		w.t.Fatalf("cannot copy to the host: %v\n%s", err, out)
	}
}

// write writes a file of a host, readable by root only.
func (w *world) write(host int, path, content string) {
	w.t.Helper()
	path = w.hosts[host].Disk(path)
	check(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(w.t, os.WriteFile(path, []byte(content), 0o600))
}

// on runs a shell's line on a host and returns what it prints.
func (w *world) on(host int, line string) string {
	w.t.Helper()
	out, err := w.hosts[host].Exec("bash", "-c", line)
	check(w.t, err)
	return strings.TrimSpace(out)
}

// juju runs a command of the operator, who sits at host 0.
func (w *world) juju(args string) string {
	w.t.Helper()
	return w.on(0, "juju "+args)
}

// lacks is what a line prints, unless that is or ends with what is wanted.
func (w *world) lacks(host int, line, want string) string {
	out, err := w.hosts[host].Exec("bash", "-c", line)
	if out == want || err == nil && strings.HasSuffix("\n"+out, "\n"+want) {
		return ""
	}
	return fmt.Sprintf("on %s: %s: %s %v", w.hosts[host].Name, line, out, err)
}

// eventually waits until there is no reason any more why something is not so.
func (w *world) eventually(what string, not func() string) (took time.Duration) {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(250 * time.Millisecond) { // each look is a log-in
		why := not()
		if why == "" {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			w.t.Fatalf("never came true: %s\n%s\n%s", what, why, w.everything())
		}
	}
}

// everything is what somebody wants to know when it went wrong.
func (w *world) everything() string {
	var all strings.Builder
	for i, h := range w.hosts {
		line := "journalctl --no-pager -n 40 -u 'bijou-*' -u etcd"
		if i == 0 {
			line = "juju status; " + line
		}
		out, err := h.Exec("bash", "-c", line)
		fmt.Fprintf(&all, "--- %s: %v\n%s", h.Name, err, out)
	}
	return all.String()
}
