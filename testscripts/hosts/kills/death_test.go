package kills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"bijou/state"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// kill kills the background process immediately and starts it again.
func (w *world) kill() {
	w.t.Helper()
	pid := w.Agent()
	check(w.t, kill9(pid))
	w.bury(pid)
	w.start("")
}

// killGateway kills the gateway of the background process, calls meanwhile, and starts the gateway again.
func (w *world) killGateway(meanwhile func()) {
	w.t.Helper()
	w.gateway.Kill()
	w.gatewayKills++
	meanwhile()
	w.gateway.Start()
}

// bury waits until a background process is dead, and writes the hooks that it was running into the records of
// all units. Before it reads the state, the gateway must have completed the requests of the dead process.
func (w *world) bury(pid int) {
	w.t.Helper()
	w.eventually("the agent is dead", func() string { return await.Unless(!localenv.Alive(pid), "it lives") })
	w.kills++
	if w.over == overGateway {
		w.gateway.Drain()
	}
	w.view(func(v *state.View) error {
		units, err := v.Units("")
		for _, u := range units {
			op, inFlight, opErr := v.Op(u.Name)
			err = errors.Join(err, opErr, w.noteDeath(u.Name, op, inFlight))
		}
		return err
	})
}

// noteDeath records the death in one unit's record.
func (w *world) noteDeath(unit string, op state.Op, inFlight bool) error {
	e := judge.Event{Event: judge.Died}
	_, err := os.Stat(w.Unit(unit, "charm", "hooks", op.Hook.Name))
	if inFlight && err == nil {
		e.Hook, e.Client, e.Remote = op.Hook.Name, op.ClientID, op.Hook.RemoteUnit
		if op.Hook.Relation != state.NoRelation {
			e.ID = fmt.Sprintf("%s:%d", op.Hook.RelationName, op.Hook.Relation)
		}
	}
	err = judge.Append(w.Unit(unit, "recorder.log"), e)
	if errors.Is(err, fs.ErrNotExist) { // the unit has not run a hook yet
		return nil
	}
	return err
}

// start starts the background process. If fault is "point:n", the process dies when it reaches the point for
// the n-th time, perhaps before it has answered.
func (w *world) start(fault string) {
	w.t.Helper()
	cmd := w.Command("start")
	cmd.Env = append(cmd.Env, "BIJOU_FAULT="+fault)
	if out, err := cmd.CombinedOutput(); err != nil && fault == "" {
		w.t.Fatalf("juju start: %v\n%s", err, out)
	}
}

func kill9(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
