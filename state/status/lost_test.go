package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/status"
	"bijou/testscripts/kit/statetest"
)

// TestLostUnits checks that a unit whose agent is lost is down for that reason alone. Earlier failures, their
// retries and the time of the charm's status do not explain it.
func TestLostUnits(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	failed := func(hook string) *state.Failure {
		return &state.Failure{Hook: state.Hook{Name: hook}, Message: "exit code 1", Stderr: "disk full", Since: at, Attempts: 3, RetryAt: at.Add(time.Hour)}
	}

	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(
			tx.SetMachineStatus("0", state.MachineRunning, ""),
			tx.PutWorkflow("mysql/0", state.Workflow{State: "config-changed-error", Failure: failed("config-changed")}),
			tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "active", Since: at}),
			tx.PutWorkflow("wordpress/0", state.Workflow{State: "started"}),
			tx.SetUnitStatus("wordpress/0", state.WorkloadStatus{Status: "active", Since: at}),
			tx.PutRelationState("wordpress/0", r.ID, state.RelationState{State: state.RelationError, Failure: failed("db-relation-changed")}),
		)
	})
	s := statetest.Read(t, st, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: at.Add(time.Minute)})
	})

	for name, last := range map[string]string{"mysql/0": "config-changed-error", "wordpress/0": "started"} {
		t.Run(name, func(t *testing.T) {
			service, _, _ := strings.Cut(name, "/")
			u := s.Services[service].Units[name]
			want := &status.UnitStateInfo{Last: last, Message: "its agent is gone, or cannot reach the store"}
			if diff := cmp.Diff(want, u.Info); diff != "" || u.Word() != "down" {
				t.Errorf("%s, %s", u.Word(), diff)
			}
			if !u.Since().IsZero() || !u.WorkloadInfo().Since.IsZero() || !u.AgentInfo().Since.IsZero() {
				t.Errorf("since %v, %v, %v", u.Since(), u.WorkloadInfo().Since, u.AgentInfo().Since)
			}
			if why, failed := u.WaitReason(); failed || why != want.Message {
				t.Errorf("it waits because of %q; failed: %v", why, failed)
			}

			_, advice := status.Explain(name, u, s.Machines["0"])
			if diff := cmp.Diff([]status.Advice{status.StartAgent("0")}, advice); diff != "" {
				t.Error(diff)
			}
			for _, group := range u.Relations {
				for id, of := range group.Relations {
					if !of.NextRetry.IsZero() {
						t.Errorf("%s is retried at %v", id, of.NextRetry)
					}
				}
			}
		})
	}
}
