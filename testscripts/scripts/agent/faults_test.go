package agent

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// faultPoints returns the named points of a hook's run at which the agent is killed. The value of each is the
// number of units in which a hook may have begun twice. A hook that had not begun or was committed runs once.
// An uncommitted hook runs again, and a hook of the other unit may also have been running.
func faultPoints() map[string]int {
	return map[string]int{"before-spawn": 1, "after-let-go": 2, "after-exit": 2, "after-commit": 1}
}

// TestFaults kills the background process with SIGKILL at every point of every hook in the life of a related
// pair, and starts it again. It checks the records of the recorder charms against docs/reference/hooks.md
// (When an agent ends).
func TestFaults(t *testing.T) {
	need.Whole(t)
	const hooks = 12 // two units run install, leader-elected, config-changed, start, joined and changed
	for point, repeats := range faultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= hooks; n++ {
				t.Run(strconv.Itoa(n), func(t *testing.T) { surviveFault(t, fmt.Sprintf("%s:%d", point, n), repeats) })
			}
		})
	}
}

// surviveFault runs the pair once from start to end, with one kill.
func surviveFault(t *testing.T, fault string, repeats int) {
	w := newWorld(t)
	w.Vars = append(w.Vars, "BIJOU_FAULT="+fault)
	w.Juju("bootstrap")
	pid := w.Agent()
	w.Juju("deploy", "../../charms/recorder", "giver", "--config", w.file("giver.yaml", "giver: {set: color=red}\n"))
	w.Juju("deploy", "../../charms/recorder", "taker")
	w.Juju("add-relation", "giver:server", "taker:client")
	w.eventually("the fault kills the agent", func() bool { return !localenv.Alive(pid) })

	w.Vars = w.Vars[:len(w.Vars)-1]
	w.Juju("start")
	w.eventually("both sides have settled", func() bool { return w.settled(fault) })
	repeated := checkRecord(t, "giver-0", "server", w.record("giver-0")) + checkRecord(t, "taker-0", "client", w.record("taker-0"))
	if repeated > repeats {
		t.Errorf("hooks of %d units began twice, want at most %d", repeated, repeats)
	}
	checkCommitted(t, w)
}

// settled reports whether the pair's work is finished. It also resolves errors of the kill, since a
// hook that was running when its agent died counts as failed.
func (w *world) settled(fault string) bool {
	status := w.Juju("status", "--format", "yaml")
	if strings.HasPrefix(fault, "after-let-go") {
		for _, unit := range []string{"giver/0", "taker/0"} {
			w.Try("resolved", "--retry", unit)
			w.Try("resolved", "--retry", unit, "server")
			w.Try("resolved", "--retry", unit, "client")
		}
	}
	if strings.Contains(status, "error") || strings.Contains(status, "down") {
		return false
	}
	seen := false
	for _, e := range w.record("taker-0") {
		if e.Event == "begin" && e.Hook == "client-relation-changed" {
			seen = e.Settings["color"] == "red"
		}
	}
	return seen && ended(w.record("giver-0"), "server-relation-changed") && ended(w.record("taker-0"), "client-relation-changed")
}

func ended(events []judge.Event, hook string) bool {
	for _, e := range events {
		if e.Event == "end" && e.Hook == hook && e.Exit == 0 {
			return true
		}
	}
	return false
}

// checkRecord checks one unit's record against the failure model: hooks run alone and in order, and
// none is skipped. One kill affects at most one hook of a unit. It returns how many hooks began again
// because of it, 0 or 1.
func checkRecord(t *testing.T, unit, side string, events []judge.Event) (repeated int) {
	t.Helper()
	checkAlone(t, unit, events)
	var order []string
	begun := map[string]int{}
	for _, e := range events {
		if e.Event != "begin" || strings.HasPrefix(e.Hook, "ring") {
			continue
		}
		// The place of leader hooks depends on the time of the election.
		if begun[e.Hook]++; begun[e.Hook] == 1 && !strings.HasPrefix(e.Hook, "leader-") {
			order = append(order, e.Hook)
		}
	}
	want := []string{"install", "config-changed", "start", side + "-relation-joined", side + "-relation-changed"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("%s: order in which hooks first began (-want +got):\n%s", unit, diff)
	}
	for hook, n := range begun {
		// config-changed runs again after a restart, and a relation's changed when the other side's
		// settings are new.
		if n > 1 && !strings.HasSuffix(hook, "-changed") {
			repeated += n - 1
		}
	}
	if repeated > 1 {
		t.Errorf("%s: %d hooks ran again after one kill: %v", unit, repeated, begun)
	}
	return repeated
}

// checkAlone checks that no hooks overlap and that no client id is used twice.
func checkAlone(t *testing.T, unit string, events []judge.Event) {
	t.Helper()
	open, abandoned, clients := 0, map[int]bool{}, map[string]bool{}
	for _, e := range events {
		if e.Event == "end" {
			if abandoned[e.PID] {
				t.Errorf("%s: %s (pid %d) ended after its successor had begun", unit, e.Hook, e.PID)
			}
			open = 0
			continue
		}
		if open != 0 {
			abandoned[open] = true
		}
		if clients[e.Client] {
			t.Errorf("%s: two hook runs share the client id %s", unit, e.Client)
		}
		open, clients[e.Client] = e.PID, true
	}
}

// checkCommitted checks in the agent's log that no committed hook ran twice.
func checkCommitted(t *testing.T, w *world) {
	t.Helper()
	log, err := os.ReadFile(w.Machine("agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for _, m := range regexp.MustCompile(`msg="hook (starts|is done)".* unit=(\S+) .*hook=(\S+)`).FindAllStringSubmatch(string(log), -1) {
		run := m[2] + " " + m[3]
		if m[1] == "starts" && done[run] && !strings.HasSuffix(run, "-changed") {
			t.Errorf("%s was done, and ran again", run)
		}
		done[run] = m[1] == "is done"
	}
	if len(done) == 0 {
		t.Error("the agent's log tells of no hook")
	}
}
