package outage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// TestDeleted deletes the file under a working fleet. The agents must report it and end with their hooks. No
// write may succeed after that, and commands must say what to do.
func TestDeleted(t *testing.T) {
	need.Long(t)
	w := newWorld(t, "")
	services := []string{"hub", "east"}
	w.deployFleet(services, 3)
	l := w.drive(services)
	rest(8 * time.Second)
	pid, mark := w.Agent(), w.mark()
	w.deleteState()
	deleted := time.Now()
	w.eventually("the agent ends", time.Minute, func() string { return await.Unless(!localenv.Alive(pid), "it lives") })
	l.halt()
	w.eventually("its hooks have ended", time.Minute, func() string { return strings.Join(w.hookProcesses(), "\n") })
	w.checkSilence(deleted, mark)
	hooks := 0
	for _, events := range w.records() {
		all, _ := judge.Runs(events)
		hooks += len(all)
	}
	w.checkAdvice("status")
	w.checkAdvice("set", "hub", "set=turn=x")
	w.checkAdvice("start")
	fmt.Printf("outage: deleted file: 6 units, %d hooks until then, none left running, none done after\n", hooks)
}

func (w *world) deleteState() {
	w.t.Helper()
	files, err := filepath.Glob(w.StateFile() + "*")
	check(w.t, err)
	for _, f := range files {
		check(w.t, os.Remove(f))
	}
}

// checkSilence checks that the agent has reported that the store is gone, that no hook has completed since,
// and that nobody has created a new file in its place.
func (w *world) checkSilence(deleted time.Time, mark int) {
	w.t.Helper()
	said := w.log(mark)
	if n := strings.Count(said, "store is gone"); n == 0 || n > 3 {
		w.t.Errorf("the agent said %d times that the store is gone:\n%s", n, said)
	}
	for line := range strings.Lines(said) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err == nil && at.After(deleted.Add(time.Second)) && strings.Contains(line, `"hook is done"`) {
			w.t.Errorf("after the file was deleted: %s", line)
		}
	}
	if _, err := os.Stat(w.StateFile()); !os.IsNotExist(err) {
		w.t.Errorf("there is a file again: %v", err)
	}
}

// checkAdvice runs a command, which must report that the store is gone, and what to do.
func (w *world) checkAdvice(args ...string) {
	w.t.Helper()
	a := w.ask(args...)
	if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "hint: the model's store is gone") {
		w.t.Errorf("want one error, and a hint what to do: %s", a)
	}
}

// hookProcesses describes the processes that the agents' hooks left running.
func (w *world) hookProcesses() (found []string) {
	for _, pid := range w.hookPIDs() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		found = append(found, fmt.Sprintf("%d: %q", pid, line))
	}
	return found
}

// hookPIDs returns the processes of hooks, which it finds by their environment.
func (w *world) hookPIDs() (pids []int) {
	word := []byte("JUJU_UNIT_DIR=" + w.Machine("agents"))
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		if env, _ := os.ReadFile(path); bytes.Contains(env, word) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
