package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

const (
	env     = "/root/.bijou/default"
	machine = "bijou-machine-default.service"
	limit   = 90 * time.Second // several times longer than the longest wait on an idle machine
)

// world is one host with bijou and the recorder charm on it.
type world struct {
	t    *testing.T
	host *fleet.Host
}

// newWorld boots a host and installs the real binary on it.
func newWorld(t *testing.T) *world {
	need.Long(t)
	fleet.Need(t)
	binary := versions.Current(t)
	w := &world{t, fleet.New(t, 1).Host(0)}
	w.host.Put(t, binary, "/opt/bijou/bijou")
	w.host.Put(t, "../../charms/recorder", "/root/recorder")
	w.on("/opt/bijou/bijou install --dir /usr/local/bin")
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// on runs a shell command on the host and returns its output.
func (w *world) on(line string) string {
	w.t.Helper()
	return w.host.On(w.t, line)
}

// refused runs a command that must fail, and returns its output.
func (w *world) refused(line string) string {
	w.t.Helper()
	out, err := w.host.Shell(line)
	if err == nil {
		w.t.Errorf("%s succeeded: %s", line, out)
	}
	return out
}

// eventually waits until the command prints want.
func (w *world) eventually(line, want string) {
	w.t.Helper()
	w.host.Await(w.t, w.poll("journalctl --no-pager -n 60 -u 'bijou-*'"), line, want)
}

// poll returns the settings of all waits. If a wait fails, the output of the command is shown.
func (w *world) poll(line string) await.Poll {
	return await.Poll{Limit: limit, Pause: 100 * time.Millisecond, Report: func() string {
		out, _ := w.host.Shell(line)
		return out
	}}
}

// ready waits until machine 0's service is up, and returns its process id.
func (w *world) ready() string {
	w.t.Helper()
	w.eventually("systemctl is-active "+machine, "active\n")
	w.eventually("systemctl show -p SubState --value "+machine, "running")
	return w.main()
}

func (w *world) main() string { return w.on("systemctl show -p MainPID --value " + machine) }

// restarts returns how often systemd has restarted the service by itself.
func (w *world) restarts() string { return w.on("systemctl show -p NRestarts --value " + machine) }

// event is a line of the recorder's log.
type event struct {
	Event, Hook string
	PID         int
	Exit        *int
	Config      map[string]any
}

func (w *world) events(unit string) (all []event) {
	w.t.Helper()
	path, err := w.host.Path(unitDir(unit) + "/recorder.log")
	w.check(err)
	data, err := os.ReadFile(path)
	w.check(err)
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			// The last line is still being written.
			break
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("%v in %q", err, line)
		}
		all = append(all, e)
	}
	return all
}

func unitDir(unit string) string {
	return env + "/machines/0/units/" + strings.ReplaceAll(unit, "/", "-")
}

// change sets an option, and waits until the unit's hook has seen it and ended.
func (w *world) change(service string, number int) {
	w.t.Helper()
	w.on(fmt.Sprintf("juju set %s big=%d", service, number))
	w.seen(service+"/0", number)
}

// seen waits until a config-changed with the given number has succeeded.
func (w *world) seen(unit string, number int) {
	w.t.Helper()
	w.seenTimes(unit, number, 1)
}

// seenTimes waits until the n-th config-changed that began with the given number, or a later one, has
// succeeded.
func (w *world) seenTimes(unit string, number, n int) {
	w.t.Helper()
	more := w.poll("juju status; tail -n 4 " + unitDir(unit) + "/recorder.log")
	await.Until(w.t, more, fmt.Sprintf("%s has seen %d", unit, number), func() bool {
		saw, begun := false, 0
		for _, e := range w.events(unit) {
			if e.Event == "begin" && e.Hook == "config-changed" {
				if saw = e.Config["big"] == float64(number); saw {
					begun++
				}
			}
			if e.Event == "end" && e.Hook == "config-changed" && saw && begun >= n && e.Exit != nil && *e.Exit == 0 {
				return true
			}
		}
		return false
	})
}

// whole checks a unit's record after any interruptions: hooks never overlap, and install and start have
// each succeeded once, install first.
func (w *world) whole(unit string) (hooks int) {
	w.t.Helper()
	done := map[string]int{}
	running := ""
	for _, e := range w.events(unit) {
		switch e.Event {
		case "begin":
			// An earlier hook without an end was killed.
			running = e.Hook
		case "end":
			if e.Hook != running {
				w.t.Errorf("%s: %s ends in the middle of %s", unit, e.Hook, running)
			}
			if *e.Exit == 0 {
				done[e.Hook]++
				hooks++
			}
			if done["install"] == 0 {
				w.t.Errorf("%s: %s ends before install", unit, e.Hook)
			}
		}
	}
	for _, once := range []string{"install", "start", "server-relation-joined"} {
		if done[once] > 1 || done[once] == 0 && once != "server-relation-joined" {
			w.t.Errorf("%s: %s was run to its end %d times", unit, once, done[once])
		}
	}
	return hooks
}
