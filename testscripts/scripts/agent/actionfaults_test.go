package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// TestActionFaults kills the background process with SIGKILL at every point of an action's run, and starts it
// again. The action must have failed unless its end was committed. The settings that it writes must exist
// only in that case. It must never run twice.
func TestActionFaults(t *testing.T) {
	need.Whole(t)
	for _, tc := range []struct {
		point, status string
		ran           int // the largest number of times that its process has started
	}{
		{"before-spawn", "failed", 0},
		{"after-let-go", "failed", 1},
		{"after-exit", "failed", 1},
		{"after-commit", "completed", 1},
	} {
		t.Run(tc.point, func(t *testing.T) { surviveInAction(t, tc.point, tc.status, tc.ran) })
	}
}

func surviveInAction(t *testing.T, point, status string, ran int) {
	w := newWorld(t)
	w.Juju("bootstrap")
	// The only unit has no relations, so no other hook reaches the points.
	w.Juju("deploy", "../../charms/actor")
	w.eventually("it has started", func() bool { return strings.Contains(w.Juju("status", "--wide"), "started") })
	w.kill()

	// The first hook is the config-changed after the restart.
	w.Vars = append(w.Vars, "BIJOU_FAULT="+point+":2")
	w.Juju("start")
	pid := w.Agent()
	id := strings.TrimSpace(w.Juju("run-action", "actor/0", "publish", "word=set"))
	w.eventually("the fault kills the agent", func() bool { return !localenv.Alive(pid) })
	w.Vars = w.Vars[:len(w.Vars)-1]
	w.Juju("start")

	show := func() string { return w.Juju("show-action-output", id) }
	w.eventually("the action has "+status, func() bool { return strings.Contains(show(), "status: "+status) })
	// The action may have ended before the kill, and juju run reaches a unit only while its agent runs.
	w.eventually("the unit's agent is back", func() bool { return !strings.Contains(w.Juju("status", "--wide"), "down") })
	got := w.Juju("run", "actor/0", "--", "relation-get -r $(relation-ids ring) word actor/0")
	if want := map[bool]string{true: "set\n"}[status == "completed"]; got != want {
		t.Errorf("the setting is %q, want %q", got, want)
	}
	log, err := os.ReadFile(w.Machine("units", "actor-0", "published"))
	if n := strings.Count(string(log), "\n"); n > ran || err != nil && ran > 0 && point != "after-let-go" {
		t.Errorf("it ran %d times, want at most %d (%v)", n, ran, err)
	}
}

// kill ends the background process with SIGKILL.
func (w *world) kill() {
	w.t.Helper()
	pid := w.Agent()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the agent is dead", func() bool {
		_, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(pid), "exe"))
		return err != nil
	})
}
