package kills

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/judge"
)

// world is one BIJOU_HOME with the applets of this test binary around it, and
// one environment in it, in a SQLite file.
type world struct {
	t     *testing.T
	home  string
	gone  string // the records of units that were removed
	charm string
	env   []string

	kills int
	wrong []string // what was found so far, beside the records
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), gone: t.TempDir()}
	w.charm = w.newCharm("recorder")
	w.env = append(os.Environ(), "BIJOU_HOME="+w.home, "NO_COLOR=1", "BIJOU_STATE=")
	t.Cleanup(w.destroy)
	w.juju("bootstrap", "--config", "update-status-interval=0")
	return w
}

// newCharm makes a charm whose records can be judged.
func (w *world) newCharm(name string) string {
	w.t.Helper()
	folder := filepath.Join(w.t.TempDir(), name)
	check(w.t, judge.Charm(folder, filepath.Join("..", "charms", "recorder"), w.gone))
	return folder
}

func (w *world) destroy() {
	if w.t.Failed() {
		log, _ := os.ReadFile(w.machine("agent.log"))
		w.t.Logf("agent.log ends:\n%s", log[max(0, len(log)-6000):])
	}
	if out, err := w.command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		w.t.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

func (w *world) machine(parts ...string) string {
	return filepath.Join(append([]string{w.home, "default", "machines", "0"}, parts...)...)
}

// unit is a file of a unit's folder.
func (w *world) unit(unit string, parts ...string) string {
	return w.machine(append([]string{"units", strings.ReplaceAll(unit, "/", "-")}, parts...)...)
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command("juju", args...)
	cmd.Env = w.env
	return cmd
}

// juju runs a command that must succeed and answers its stdout.
func (w *world) juju(args ...string) string {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("juju %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// try runs a command that may be refused.
func (w *world) try(args ...string) { _ = w.command(args...).Run() }

// agent answers the pid of the background process.
func (w *world) agent() int {
	w.t.Helper()
	data, err := os.ReadFile(w.machine("agent.pid"))
	check(w.t, err)
	pid, err := strconv.Atoi(strings.Fields(string(data))[0])
	check(w.t, err)
	return pid
}

// stateFile is the SQLite file.
func (w *world) stateFile() string { return filepath.Join(w.home, "default", "state", "state.db") }

func (w *world) open() *state.State {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), "sqlite:"+w.stateFile())
	check(w.t, err)
	return s
}

// view reads the state.
func (w *world) view(f func(v *state.View) error) {
	w.t.Helper()
	s := w.open()
	defer s.Close()
	check(w.t, s.View(w.t.Context(), f))
}

// units are all units, or a service's.
func (w *world) units(service string) (all []state.Unit) {
	w.t.Helper()
	w.view(func(v *state.View) (err error) {
		all, err = v.Units(service)
		return err
	})
	return all
}

// records are those of all units that are or were, by unit.
func (w *world) records() map[string][]judge.Event {
	w.t.Helper()
	all := map[string][]judge.Event{}
	saved, err := filepath.Glob(filepath.Join(w.gone, "*"))
	check(w.t, err)
	for _, log := range saved {
		all[judge.UnitOf(filepath.Base(log))], err = judge.Read(log)
		check(w.t, err)
	}
	logs, err := filepath.Glob(w.machine("units", "*", "recorder.log"))
	check(w.t, err)
	for _, log := range logs {
		events, err := judge.Read(log)
		check(w.t, err)
		if len(events) > 0 { // it may have gone just now
			all[judge.UnitOf(filepath.Base(filepath.Dir(log)))] = events
		}
	}
	return all
}

// eventually waits until there is no reason any more why something is not so,
// far longer than it should need.
func (w *world) eventually(what string, not func() string) {
	w.t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		why := not()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("never came true: %s\n%s\n%s", what, why, w.juju("status"))
		}
	}
}

// unless is the reason, unless something is so.
func unless(so bool, reason string, args ...any) string {
	if so {
		return ""
	}
	return fmt.Sprintf(reason, args...)
}
