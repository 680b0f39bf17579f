package status

import (
	"testing"
	"time"

	"bijou/state"
)

func TestWord(t *testing.T) {
	at := time.Date(2026, 2, 28, 17, 0, 0, 0, time.UTC)
	later := at.Add(time.Minute)
	said := &Workload{Current: "active", Since: at}
	inRelation := func(r RelationUnit) map[string]UnitRelation {
		r.State = state.RelationError
		return map[string]UnitRelation{"db": {State: r.State, Relations: map[string]RelationUnit{"relation-1": r}}}
	}

	for name, tc := range map[string]struct {
		unit  Unit
		word  string
		since time.Time
	}{
		"active":           {Unit{State: "started", Workload: said}, "active", at},
		"nothing said":     {Unit{State: "started"}, "started", time.Time{}},
		"unknown said":     {Unit{State: "started", Workload: &Workload{Current: "unknown", Since: at}}, "started", at},
		"stopped":          {Unit{State: "stopped"}, "stopped", time.Time{}},
		"waits for agent":  {Unit{State: state.UnitPending}, "waiting", time.Time{}},
		"install runs":     {Unit{State: state.UnitPending, Running: &state.RunningHook{Name: "install"}}, "installing", time.Time{}},
		"installed":        {Unit{State: "installed"}, "installing", time.Time{}},
		"maintenance said": {Unit{State: "started", Workload: &Workload{Current: "maintenance", Since: at}}, "maintenance", at},
		"blocked":          {Unit{State: "started", Workload: &Workload{Current: "blocked", Since: at}}, "blocked", at},
		"down":             {Unit{State: state.UnitDown, Workload: said, Info: &UnitStateInfo{Message: LostMessage}}, "down", time.Time{}},
		"down after a failure in a relation": {Unit{State: state.UnitDown, Workload: said, Info: &UnitStateInfo{Message: LostMessage},
			Relations: inRelation(RelationUnit{Since: later})}, "down", time.Time{}},
		"agent in trouble": {Unit{State: "started", Workload: said, Trouble: &state.Trouble{Message: "disk", Since: later}}, "error", later},
		"hook failed": {Unit{State: "start-error", Workload: said,
			Info: &UnitStateInfo{Hook: "start", Since: later}}, "error", later},
		"hook failed, answered": {Unit{State: "start-error", Workload: said,
			Info: &UnitStateInfo{Hook: "start", Since: later, Resolved: state.ResolvedRetry}}, "error", later},
		"relation failed":           {Unit{State: "started", Workload: said, Relations: inRelation(RelationUnit{Since: later})}, "error", later},
		"relation failed, answered": {Unit{State: "started", Workload: said, Relations: inRelation(RelationUnit{Since: later, Resolved: state.ResolvedRetry})}, "active", at},
		"relation runs again": {Unit{State: "started", Workload: said, Relations: inRelation(RelationUnit{Since: later}),
			Running: &state.RunningHook{Name: "db-relation-changed", Relation: "relation-1"}}, "active", at},
		"hook that is slow": {Unit{State: "started", Workload: said, Info: &UnitStateInfo{Message: "x has been running", Since: later}}, "active", later},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.unit.Word(); got != tc.word {
				t.Errorf("word %q, want %q", got, tc.word)
			}
			if got := tc.unit.Since(); !got.Equal(tc.since) {
				t.Errorf("since %v, want %v", got, tc.since)
			}
		})
	}
}
