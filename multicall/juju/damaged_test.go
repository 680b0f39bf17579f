package juju

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/store"
	"bijou/state/storeurl"
	"bijou/testscripts/kit/need"
)

// readers returns commands that only read the environment of populate.
func readers() []string {
	return []string{
		"status", "status --format json", "status --format yaml", "status --format dot", "status --relations --storage", "status db", "status db/0 web",
		"show-unit db/0 web/0", "show-application db", "wait --timeout 30ms", "wait --timeout 30ms --for gone db", "machines", "show-machine 0", "export-bundle", "debug-log",
		"hook-history db/0", "storage", "show-storage data/0", "actions db", "show-action-status", "show-action-output 0", "resources db", "get db", "get-environment",
		"get-constraints", "secrets", "show-status-log db/0",
	}
}

// populate creates an environment with a record of every kind.
func populate(w *testEnv) home.Environment {
	w.t.Helper()
	w.mustRun("bootstrap")
	db := w.writeCharm("db", "provides: {server: {interface: sql}}\npeers: {ring: {interface: ring}}\nstorage: {data: {type: filesystem}}\nresources: {seed: {type: file, filename: seed}}\n")
	web := w.writeCharm("web", "requires: {db: {interface: sql}}\n")
	w.mustRun("deploy", db)
	w.mustRun("deploy", web)
	w.mustRun("add-unit", "db")
	w.mustRun("add-relation", "db:server", "web:db")
	w.mustRun("set", "db", "title=x")
	w.mustRun("add-secret", "token", "value=x")
	w.mustRun("grant-secret", "token", "web")

	e, err := w.home.Environment(defaultEnvironment)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := state.Open(w.t.Context(), e.State)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(w.t.Context(), func(tx *state.Tx) error { return putLife(tx) })
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// putLife writes the records that units' agents would write.
func putLife(tx *state.Tx) error {
	now := time.Now()
	failure := &state.Failure{Hook: state.Hook{Name: "start"}, Message: "exit code 1", Attempts: 1, Since: now}
	for key, doc := range map[string]any{
		"uniters/db/0/workflow":          state.Workflow{State: "started", Charm: "local:noble/db-1"},
		"uniters/db/0/op":                state.Op{ID: "r", Hook: state.Hook{Name: "update-status", Relation: state.NoRelation}, Started: now},
		"uniters/web/0/workflow":         state.Workflow{State: "start-error", Failure: failure},
		"uniters/web/0/relations/1":      state.RelationState{State: state.RelationUp, Name: "db"},
		"uniters/web/0/relations/1/db/0": state.MemberState{},
		"history/db/0/1":                 state.HookRun{Seq: 1, ID: "q", Hook: "start", Started: now, Ended: now, Failure: "exit code 1"},
		"presence/unit-db-0":             state.AgentPresence{},
		"units/db/0/ports":               []state.Port{{From: 80, To: 80, Protocol: "tcp"}},
		"units/db/1/restored":            state.Restored{Backup: now, Differs: "it is older"},
		"services/db/status":             state.WorkloadStatus{Status: "active"},
		"actions/0":                      actions.Action{Unit: "db/0", Name: "dump", Status: actions.Pending},
		"units/db/0/actions":             map[string][]int{"waiting": {0}},
		"counters/actions":               1,
	} {
		if err := tx.Keys().Put(key, doc); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, unit := range []string{"db/0", "web/0"} {
		if err := tx.EnterRelation(1, unit, map[string]string{"a": "b"}); err != nil {
			return err
		}
	}
	return nil
}

// TestReadersOfDamagedStates removes each key of an environment in turn, and replaces it with other values.
// No reading command may panic, and a command that fails must print the reason in one line.
func TestReadersOfDamagedStates(t *testing.T) {
	need.Whole(t)
	w := newTestEnv(t)
	e := populate(w)
	st, err := storeurl.Open(t.Context(), e.State)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := map[string][]byte{}
	err = state.OpenIn(st).View(t.Context(), func(v *state.View) error {
		kvs, err := v.Keys().List("")
		for _, kv := range kvs {
			all[kv.Key] = slices.Clone(kv.Value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	commit := func(op store.Op) {
		t.Helper()
		if _, err := st.Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range readers() {
		if said := checkReader(t, w, command); strings.Contains(said, "damaged") {
			t.Errorf("juju %s of a whole state: %s", command, said)
		}
	}
	for key, value := range all {
		t.Run(key, func(t *testing.T) {
			defer commit(store.Op{Key: key, Value: value})
			for _, other := range []string{"null", "{}", "[]", `"x"`} {
				commit(store.Op{Key: key, Value: []byte(other)})
				for _, command := range readers()[:2] {
					checkReader(t, w, command)
				}
				checkReader(t, w, "show-unit db/0 web/0")
				checkReader(t, w, "export-bundle")
			}

			commit(store.Op{Key: key, Delete: true})
			for _, command := range readers() {
				said := checkReader(t, w, command)
				if want := missingOf()[key]; want != "" && isOverview(command) && !strings.Contains(said, want) {
					t.Errorf("juju %s: %q is not in it: %s", command, want, said)
				}
			}
		})
	}
}

// missingOf returns records to which others refer, with the message for each if it is missing.
func missingOf() map[string]string {
	return map[string]string{
		"services/web": `the state is damaged: the record of application "web" is missing`,
		"services/db":  `the state is damaged: the record of application "db" is missing`,
		"machines/0":   `the state is damaged: the record of machine 0 is missing, and it has units`,
		"relations/1":  `the record of relation-1 is missing`,
	}
}

// isOverview reports whether a command shows all units, or waits for them.
func isOverview(command string) bool {
	return slices.Contains([]string{"status", "status --format json", "status --format dot", "wait --timeout 30ms", "machines"}, command)
}

// checkReader runs the command and returns its stderr. The command must not panic. If it fails, it must print
// exactly one error.
func checkReader(t *testing.T, w *testEnv, command string) (said string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("juju %s: panic: %v\n%s", command, p, debug.Stack())
		}
	}()
	code, _, said := w.run("", strings.Fields(command)...)
	errors := 0
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "error: ") {
			errors++
		}
	}
	if code != 0 && errors != 1 {
		t.Errorf("juju %s: exit %d, %s", command, code, said)
	}
	return said
}

// TestDamageIsShownEverywhere checks that every command that shows units reports a missing record of
// their service, in text and in output for programs.
func TestDamageIsShownEverywhere(t *testing.T) {
	w := newTestEnv(t)
	e := populate(w)
	st, err := storeurl.Open(t.Context(), e.State)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "services/web", Delete: true}}}); err != nil {
		t.Fatal(err)
	}

	const said = `the state is damaged: the record of application "web" is missing`
	for _, command := range []string{"status", "status --format yaml", "status --format json", "status --format dot", "machines", "show-machine 0", "show-unit db/0", "show-application web", "wait"} {
		t.Run(command, func(t *testing.T) {
			_, out, errs := w.run("", strings.Fields(command)...)
			if strings.Count(errs, said) != 1 {
				t.Errorf("stderr: %q", errs)
			}
			isDocument := command == "status --format yaml" || command == "status --format json"
			if isDocument && (!strings.Contains(out, "damage") || !strings.Contains(out, "is missing")) {
				t.Errorf("stdout: %q", out)
			}
		})
	}
	for _, format := range []string{"tabular", "yaml", "json", "dot"} {
		t.Run("watch "+format, func(t *testing.T) {
			f := w.startCommand("status", "--watch", "--format", format)
			f.nextLine()
			if _, errs := f.stop(); strings.Count(errs, said) != 1 {
				t.Errorf("stderr: %q", errs)
			}
		})
	}
}
