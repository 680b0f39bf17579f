package status_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/logs"
	"bijou/state/status"
	"bijou/testscripts/kit/statetest"
)

// TestReadUnit checks that a unit's status explains the unit's state and what an operator can do.
func TestReadUnit(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	hook := state.Hook{Kind: "start", Name: "start", Relation: state.NoRelation}
	failure := &state.Failure{Hook: hook, Message: "exit code 1", Since: at, RetryAt: at.Add(time.Hour)}
	relates := state.RelationState{State: state.RelationUp, Name: "server"}
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Session(t, st, state.MachineAgent("0"), state.UnitAgent("mysql/0"))
	statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"user": "anna", "password": "hunter2"})
	statetest.Enter(t, st, r.ID, "wordpress/0", map[string]string{"url": "http://anna:hunter2@host/"})
	statetest.Update(t, st, func(tx *state.Tx) error {
		u, err := tx.Unit("mysql/0")
		return errors.Join(err, tx.SetMachineStatus(u.Machine, state.MachineRunning, ""),
			tx.PutRelationState("mysql/0", r.ID, relates),
			tx.PutMember("mysql/0", r.ID, "wordpress/0", state.MemberState{Pending: "relation-joined", Place: 7}),
			tx.PutMember("mysql/0", r.ID, "wordpress/1", state.MemberState{Pending: "relation-departed", Place: 3}),
			tx.AddHookRun("mysql/0", state.HookRun{Seq: 0, Hook: "install", Started: at, Ended: at.Add(time.Second), Failure: "exit code 2"}),
			tx.AddHookRun("mysql/0", state.HookRun{Seq: 1, Hook: "install", Started: at.Add(time.Minute), Ended: at.Add(2 * time.Minute)}))
	})
	lines := []logs.Line{
		{Time: at.Add(-time.Second), Level: "INFO", Hook: "install", Message: "before"}, {Time: at, Level: "INFO", Hook: "install", Message: "password=hunter2"},
		{Time: at.Add(time.Minute), Level: "INFO", Hook: "install", Message: "after"},
	}
	if err := logs.Append(t.Context(), st, "mysql/0", lines); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		flow     state.Workflow
		owed     string
		waitsFor string
		toDo     string
		agent    string
	}{
		{"nothing is owed", state.Workflow{State: "started"}, "", "", "", "idle"},
		{"something is", state.Workflow{State: "started"}, "run server-relation-joined", "", "", "idle"},
		{"a hook has failed", state.Workflow{State: "start-error", Failure: failure}, "", "your answer, or its retry at ", "juju resolved --retry mysql/0 runs it again", "idle"},
		{"nobody leads", state.Workflow{State: "installed"}, "", "a unit that leads its application", "", "idle"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.ChangeWorkflow("mysql/0", func(now *state.Workflow) { *now = tc.flow })
			})
			d := statetest.Read(t, st, func(v *state.View) (status.UnitDetail, error) {
				return status.ReadUnit(v, "mysql/0", status.Options{Now: at}, func(*state.View, string) (string, error) { return tc.owed, nil })
			})
			if d.Next != tc.owed || !strings.HasPrefix(d.WaitsFor, tc.waitsFor) || (tc.waitsFor == "") != (d.WaitsFor == "") || !strings.Contains(strings.Join(d.ToDo, "\n"), tc.toDo) || d.Agent.Current != tc.agent {
				t.Errorf("%s: next %q, waits for %q, to do %q, agent %q", tc.name, d.Next, d.WaitsFor, d.ToDo, d.Agent.Current)
			}
			if diff := cmp.Diff([]string{"server-relation-departed of relation-1, for wordpress/1", "server-relation-joined of relation-1, for wordpress/0"}, d.Queue); diff != "" {
				t.Errorf("%s: queue (-want +got):\n%s", tc.name, diff)
			}
			if d.LastFailed == nil || d.LastFailed.Failure != "exit code 2" || cmp.Diff([]string{"password=(hidden)"}, d.LastFailed.Lines) != "" {
				t.Errorf("%s: the last that failed is %+v", tc.name, d.LastFailed)
			}
			if !d.Agent.Since.Equal(at.Add(2 * time.Minute)) {
				t.Errorf("%s: idle since %v", tc.name, d.Agent.Since)
			}
			shown := d.Relations[slices.IndexFunc(d.Relations, func(of status.RelationDetail) bool { return of.ID == r.ID })]
			if shown.LocalUnit.Data["password"] != "hunter2" || shown.RelatedUnits["wordpress/0"].Data["url"] == "" {
				t.Errorf("%s: settings are not as they are: %+v", tc.name, shown)
			}
			d.HideSettings()
			if shown.LocalUnit.Data["password"] != "(hidden)" || shown.LocalUnit.Data["user"] != "anna" || strings.Contains(shown.RelatedUnits["wordpress/0"].Data["url"], "hunter2") {
				t.Errorf("%s: passwords are shown: %+v", tc.name, shown)
			}
		})
	}
}
