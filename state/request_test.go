package state_test

import (
	"errors"
	"slices"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// leaders returns the cases of the test: the possible leaders of the provisioners while agents work, and
// whether each serves requests.
func leaders() []struct {
	name   string
	lead   func(t *testing.T, st *state.State)
	serves bool
} {
	return []struct {
		name   string
		lead   func(t *testing.T, st *state.State)
		serves bool
	}{
		{"nobody leads", func(*testing.T, *state.State) {}, true},
		{"one that serves leads", func(t *testing.T, st *state.State) {
			if _, err := state.CampaignToProvision(t.Context(), statetest.Session(t, st)); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"one of a former binary leads", func(t *testing.T, st *state.State) {
			if _, err := state.Campaign(t.Context(), statetest.Session(t, st), "provisioner"); err != nil {
				t.Fatal(err)
			}
		}, false},
	}
}

func requestsOf(t *testing.T, st *state.State) (kinds []state.RequestKind) {
	t.Helper()
	for _, r := range statetest.Read(t, st, (*state.View).Requests) {
		if r.Since.IsZero() {
			t.Errorf("%+v has no time", r)
		}
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

// TestAgentsLeaveWhatIsNotTheirs lets units enter relations, leave them and end, under each leader. If the
// leader runs a current binary, an agent requests the work that belongs to the leader. If the leader runs a
// former binary, the agent does that work itself.
func TestAgentsLeaveWhatIsNotTheirs(t *testing.T) {
	for _, l := range leaders() {
		t.Run(l.name, func(t *testing.T) {
			statetest.Each(t, func(t *testing.T, st *state.State) {
				for name, units := range map[string]int{"wordpress": 1, "logger": 0} {
					statetest.AddService(t, st, endpointCharms()[name], units)
				}
				r := statetest.Relate(t, st, "logger", "wordpress")
				l.lead(t, st)

				exists := func(what string, read func(v *state.View) error, want bool) {
					t.Helper()
					err := st.View(t.Context(), read)
					if err != nil && !errors.Is(err, state.ErrNotFound) {
						t.Fatal(err)
					}
					if (err == nil) != want {
						t.Errorf("%s is there: %v", what, err == nil)
					}
				}
				requested := func(want ...state.RequestKind) {
					t.Helper()
					if !l.serves {
						want = nil
					}
					if got := requestsOf(t, st); !slices.Equal(got, want) {
						t.Errorf("requests: %q, want %q", got, want)
					}
				}

				statetest.Update(t, st, func(tx *state.Tx) error { return tx.EnterRelation(r.ID, "wordpress/0", nil) })
				requested(state.RequestSubordinate)
				exists("the subordinate", func(v *state.View) error { _, err := v.Unit("logger/0"); return err }, !l.serves)
				if l.serves { // the test carries out the requests as a leader does
					statetest.Update(t, st, func(tx *state.Tx) error {
						tx.RemoveRequest(state.Request{Unit: "wordpress/0", Kind: state.RequestSubordinate, Relation: r.ID})
						return tx.AddSubordinate(r.ID, "wordpress/0")
					})
				}

				statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(r.ID) })
				statetest.Update(t, st, func(tx *state.Tx) error { return tx.DepartRelation(r.ID, "wordpress/0") })
				requested(state.RequestRelationEnd)
				exists("the relation", func(v *state.View) error { _, err := v.Relation(r.ID); return err }, l.serves)

				statetest.Update(t, st, func(tx *state.Tx) error { return tx.PutWorkflow("logger/0", state.Workflow{State: "started"}) })
				statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyIfUnrelated("logger/0") })
				for range 2 {
					removes := false
					statetest.Update(t, st, func(tx *state.Tx) (err error) {
						removes, err = tx.RetireUnit("logger/0")
						return err
					})
					if removes == l.serves {
						t.Errorf("the agent removes the unit: %v", removes)
					}
				}
				requested(state.RequestRelationEnd, state.RequestRemoval)
				if life := lifeOf(t, st, "logger/0"); life != state.Dead {
					t.Errorf("the unit is %s", life)
				}
			})
		})
	}
}
