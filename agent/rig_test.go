package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/agent/pulse"
	_ "bijou/hookenv/client" // makes this binary a hook tool when it is called by a tool's name
	"bijou/hookenv/tools"
	"bijou/state"
	"bijou/state/logs"
	"bijou/state/unitdir"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/statetest"
)

// rig is one environment with a machine agent in this process. Through hookenv/client, this test binary also
// acts as every hook tool.
type rig struct {
	t      testing.TB
	st     *state.State
	agents *state.State // the state that the agent uses; nil means st
	dir    string       // the machine's directory
	tools  string
	notes  string // the records of recorder hooks
	fault  Fault
	pulse  *pulse.Watchdog // may be nil

	stop context.CancelFunc
	done chan error
}

func newRig(t testing.TB, st *state.State) *rig {
	base := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", base)
	r := &rig{t: t, st: st, dir: filepath.Join(base, "machines", "0"), tools: filepath.Join(base, "tools"), notes: filepath.Join(base, "notes")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.tools, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.All() {
		if err := os.Symlink(self, filepath.Join(r.tools, tool.Name)); err != nil {
			t.Fatal(err)
		}
	}
	statetest.Serve(t, st)
	return r
}

// start starts the machine agent, which ends with the test.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done = cancel, make(chan error, 1)
	st := r.st
	if r.agents != nil {
		st = r.agents
	}
	go func() {
		r.done <- RunMachine(ctx, MachineOptions{Machine: "0", Options: Options{State: st, Dir: r.dir, Tools: r.tools, Fault: r.fault, Log: r.log(), Watchdog: r.pulse}})
	}()
	r.t.Cleanup(r.end)
}

// end stops the machine agent and waits for it.
func (r *rig) end() {
	if r.stop == nil {
		return
	}
	r.stop()
	if err := receive(r.t, "the agent ends", r.done); err != nil {
		r.t.Errorf("machine agent: %v", err)
	}
	r.stop = nil
}

func (r *rig) log() *slog.Logger {
	if os.Getenv("BIJOU_DEBUG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// hooks returns the names of all hooks of a recorder charm with those relations.
func hooks(relations ...string) []string {
	names := []string{"install", "config-changed", "start", "stop"}
	for _, r := range relations {
		for _, kind := range []string{"joined", "changed", "departed", "broken"} {
			names = append(names, r+"-relation-"+kind)
		}
	}
	return names
}

// recorder adds hooks to a charm. Each hook records its name, unit, remote unit and members, and then runs
// its body from bodies.
func (r *rig) recorder(f statetest.Files, names []string, bodies map[string]string) statetest.Files {
	for _, name := range names {
		f["hooks/"+name] = fmt.Sprintf("#!/bin/bash\n"+
			"export GORACE=atexit_sleep_ms=0\n"+ // otherwise every tool takes a second under the race detector
			`echo "$JUJU_UNIT_NAME $JUJU_HOOK_NAME${JUJU_REMOTE_UNIT:+ $JUJU_REMOTE_UNIT}${JUJU_RELATION:+ [$JUJU_MEMBERS]}" >> %s`+"\n%s\n",
			r.notes, bodies[name])
	}
	return f
}

// noted returns the records of one unit, without the unit's name.
func (r *rig) noted(unit string) (lines []string) {
	data, err := os.ReadFile(r.notes)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, unit+" "); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

// patience is three times the time that a busy machine needs with the race detector.
const patience = 2 * time.Minute

// receive waits for a value from the channel.
func receive[T any](t testing.TB, what string, from <-chan T) (word T) {
	t.Helper()
	select {
	case word = <-from:
	case <-time.After(patience):
		t.Fatalf("it did not come to it that %s", what)
	}
	return word
}

// eventually waits until ok returns true.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	await.Until(r.t, await.Poll{Limit: patience, Report: func() string {
		data, _ := os.ReadFile(r.notes)
		return fmt.Sprintf("notes:\n%s\n%s", data, r.logs())
	}}, what, ok)
}

// logs returns the environment's log.
func (r *rig) logs() string {
	var text strings.Builder
	for _, l := range statetest.Read(r.t, r.st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) }) {
		fmt.Fprintf(&text, "%s %s %s: %s\n", l.Source, l.Level, l.Hook, l.Message)
	}
	return text.String()
}

func (r *rig) uniter(unit string) state.Uniter {
	return statetest.Read(r.t, r.st, func(v *state.View) (state.Uniter, error) { return v.Uniter(unit) })
}

// awaitState waits until a unit's workflow is in the state want and no hook runs.
func (r *rig) awaitState(unit, want string) {
	r.t.Helper()
	r.eventually(unit+" is "+want, func() bool {
		u := r.uniter(unit)
		return u.Workflow.State == want && u.Op == nil
	})
}

// awaitNote waits until a unit has recorded a line.
func (r *rig) awaitNote(unit, note string) {
	r.t.Helper()
	r.eventually(unit+" notes "+note, func() bool { return slices.Contains(r.noted(unit), note) })
}

// settle waits for a moment at which no unit has a pending, running or failed hook. It checks all units at
// once, since one unit's commit may cause hooks of another.
func (r *rig) settle() {
	r.t.Helper()
	revision := func() int64 { return statetest.Read(r.t, r.st, (*state.View).Revision) }
	r.eventually("all have settled", func() bool {
		before := revision()
		for _, u := range statetest.Read(r.t, r.st, func(v *state.View) ([]state.Unit, error) { return v.Units("") }) {
			if !r.settled(u.Name) {
				return false
			}
		}
		return revision() == before
	})
}

// settled reports whether the unit has no more work, according to the agent's own snapshot.
func (r *rig) settled(unit string) bool {
	owed, err := state.Read(r.t.Context(), r.st, func(v *state.View) (string, error) { return Owed(v, unit) })
	return err == nil && owed == ""
}

func (r *rig) update(f func(tx *state.Tx) error) { r.t.Helper(); statetest.Update(r.t, r.st, f) }

// folder returns a unit's directory.
func (r *rig) folder(unit string) string { return string(unitdir.Of(r.dir, unit)) }

// twice runs a test over both stores.
func twice(t *testing.T, test func(r *rig)) {
	statetest.Each(t, func(t *testing.T, st *state.State) { test(newRig(t, st)) })
}

// once runs a test over the store in memory.
func once(t *testing.T, test func(r *rig)) { test(newRig(t, statetest.New(t))) }
