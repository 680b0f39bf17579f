package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"bijou/state"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

func TestKilledAtEveryPoint(t *testing.T) {
	for _, point := range []string{"before-spawn", "after-exit", "after-commit"} {
		t.Run(point, func(t *testing.T) {
			once(t, func(r *rig) {
				var crashed atomic.Bool
				r.fault = func(at string) { // ends the loop's goroutine, as if it were killed and started again
					if at == point && crashed.CompareAndSwap(false, true) {
						panic("killed at " + at)
					}
				}
				r.lonely(map[string]string{"install": "status-set active ok; open-port 80"})
				r.start()
				r.awaitState("app/0", "started")
				got := slices.Compact(r.noted("app/0"))
				if want := []string{"install", "config-changed", "start"}; !slices.Equal(got, want) {
					t.Errorf("hooks that ran: %q, want %q", got, want)
				}
				if n := strings.Count(strings.Join(r.noted("app/0"), "\n"), "install"); point != "after-exit" && n != 1 {
					t.Errorf("install ran %d times", n)
				}
				ports := statetest.Read(t, r.st, func(v *state.View) ([]state.Port, error) { return v.Ports("app/0") })
				if len(ports) != 1 {
					t.Errorf("open ports: %v", ports)
				}
			})
		})
	}
}

// crashed puts a unit into the state in which an agent leaves it when it dies during the unit's start hook.
// The hook's process is recorded.
func (r *rig) crashed(pid int) {
	body, _ := r.gate("never")
	r.lonely(map[string]string{"start": body})
	r.manual()
	r.start()
	r.awaitState("app/0", "start-error")
	r.end()
	r.update(func(tx *state.Tx) error {
		w, err := tx.Workflow("app/0")
		if err != nil {
			return err
		}
		h := w.Failure.Hook
		w.State, w.Failure = "installed", nil
		if err := tx.PutOp("app/0", state.Op{ID: "crashed", Hook: h, Expect: "started"}); err != nil {
			return err
		}
		return tx.PutWorkflow("app/0", w)
	})
	r.note(pid)
}

// note writes hook.json for a process.
func (r *rig) note(pid int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		r.t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{
		"id": "crashed", "pid": pid, "start": strings.Fields(string(stat))[21], "boot": strings.TrimSpace(string(boot)),
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.folder("app/0"), "hook.json"), data, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// sleeper starts a process in its own session, like a hook.
func sleeper(t *testing.T) *exec.Cmd {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestLivingHookOfADeadAgentIsKilledAndHasFailed(t *testing.T) {
	once(t, func(r *rig) {
		hook := sleeper(t)
		gone := make(chan error, 1)
		go func() { gone <- hook.Wait() }()
		r.crashed(hook.Process.Pid)
		before := len(r.noted("app/0"))
		r.start()
		r.awaitState("app/0", "start-error")
		if got := r.uniter("app/0").Workflow.Failure.Message; got != "the hook was running when its agent died" {
			t.Errorf("the failure says %q", got)
		}
		_ = receive(t, "the hook is gone", gone)
		if len(r.noted("app/0")) != before {
			t.Error("a hook ran again")
		}
	})
}

func TestHookThatEndedWithItsAgentIsRunAgain(t *testing.T) {
	once(t, func(r *rig) {
		hook := sleeper(t)
		r.crashed(hook.Process.Pid)
		_ = hook.Process.Kill()
		_ = hook.Wait()
		before := len(r.noted("app/0"))
		r.start()
		r.eventually("start runs again", func() bool { return len(r.noted("app/0")) > before })
		r.awaitState("app/0", "start-error")
		if got := r.uniter("app/0").Workflow.Failure.Message; got != "exit code 7" {
			t.Errorf("the failure says %q", got)
		}
	})
}

func TestDaemonOfAHookOutlivesItAndItsAgent(t *testing.T) {
	need.Whole(t)
	once(t, func(r *rig) {
		pidfile := filepath.Join(t.TempDir(), "pid")
		r.lonely(map[string]string{"start": "( trap '' HUP; while echo alive; do sleep 0.1; done ) & echo $! > " + pidfile})
		r.start()
		r.awaitState("app/0", "started")
		r.end()
		data, err := os.ReadFile(pidfile)
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(data), &pid); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, 0); err != nil {
			t.Errorf("the daemon is gone: %v", err)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	})
}

func TestToolsAfterTheHookSayThatItIsGone(t *testing.T) {
	once(t, func(r *rig) {
		out := filepath.Join(t.TempDir(), "out")
		r.lonely(map[string]string{
			"install": "( until [ -e " + out + ".go ]; do sleep 0.05; done; config-get --all > " + out + ".new 2>&1; echo exit $? >> " + out + ".new; mv " + out + ".new " + out + " ) > /dev/null 2>&1 &",
		})
		r.start()
		r.awaitState("app/0", "started")
		if err := os.WriteFile(out+".go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var data []byte
		r.eventually("the left-over tool has run", func() bool {
			var err error
			data, err = os.ReadFile(out)
			return err == nil
		})
		if string(data) != "ERROR hook context gone\nexit 1\n" {
			t.Errorf("it printed %q", data)
		}
	})
}

func TestSecondAgentWaitsForTheUnit(t *testing.T) {
	once(t, func(r *rig) {
		r.lonely(nil)
		r.start()
		r.awaitState("app/0", "started")
		before := r.noted("app/0")
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			second <- RunUnit(ctx, UnitOptions{Unit: "app/0", Options: Options{State: statetest.Share(r.st), Dir: r.dir, Tools: r.tools, Log: r.log()}})
		}()
		r.end() // the first agent ends, and the second takes over
		r.eventually("the second runs config-changed", func() bool { return len(r.noted("app/0")) == len(before)+1 })
		cancel()
		if err := receive(t, "the second ends", second); err != nil {
			t.Errorf("unit agent: %v", err)
		}
	})
}

func TestTakenPresenceIsTakenBack(t *testing.T) {
	once(t, func(r *rig) {
		body, open := r.gate("install")
		r.lonely(map[string]string{"install": "until " + strings.Replace(body, "|| exit 7", "", 1) + "; do sleep 0.05; done"})
		r.start()
		r.awaitNote("app/0", "install")
		statetest.Session(t, statetest.Share(r.st), "unit-app-0")
		open()
		r.awaitState("app/0", "started")
		if got := r.noted("app/0"); !slices.Equal(got, []string{"install", "config-changed", "start"}) {
			t.Errorf("hooks that ran: %q", got)
		}
	})
}

func TestHookInFlightEndsWithItsAgentsGrace(t *testing.T) {
	need.Whole(t)
	once(t, func(r *rig) {
		r.lonely(map[string]string{"install": "sleep 1; open-port 80"})
		r.start()
		r.awaitNote("app/0", "install")
		r.end()
		u := r.uniter("app/0")
		if u.Op != nil || u.Workflow.State != "installed" {
			t.Errorf("after the agent's end: %+v", u)
		}
	})
}

func TestForcedRemovalKillsTheHook(t *testing.T) {
	once(t, func(r *rig) {
		pidfile := filepath.Join(t.TempDir(), "pid")
		r.lonely(map[string]string{"install": "echo $$ > " + pidfile + ".new; mv " + pidfile + ".new " + pidfile + "; exec sleep 1000"})
		r.start()
		var pid int
		r.eventually("the hook runs", func() bool {
			data, err := os.ReadFile(pidfile)
			if err == nil {
				_, err = fmt.Sscan(string(data), &pid)
			}
			return err == nil
		})
		r.update(func(tx *state.Tx) error { return tx.DestroyUnit("app/0") })
		if err := state.RemoveUnit(t.Context(), r.st.Update, "app/0"); err != nil {
			t.Fatal(err)
		}
		r.eventually("the hook is gone", func() bool { return unix.Kill(pid, 0) != nil })
		r.eventually("the folder is gone", func() bool { _, err := os.Stat(r.folder("app/0")); return os.IsNotExist(err) })
	})
}
