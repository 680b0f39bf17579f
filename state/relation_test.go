package state_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

// endpointCharms returns the charms of the endpoint tests by service.
func endpointCharms() map[string]statetest.Files {
	return map[string]statetest.Files{
		"mysql":     statetest.MySQL(),
		"wordpress": statetest.WordPress(),
		"twice":     statetest.Meta("twice", "requires:\n  db: mysql\n  backup: mysql\n"),
		"monitor":   statetest.Meta("monitor", "requires:\n  target: juju-info\n"),
		"both":      statetest.Meta("both", "requires:\n  db: mysql\n  info: juju-info\n"),
		"logger":    statetest.Meta("logger", "subordinate: true\nrequires:\n  logging: {interface: juju-info, scope: container}\n"),
		"proxy":     statetest.Meta("proxy", "requires:\n  in: mysql\nprovides:\n  out: mysql\n"),
	}
}

func TestInferEndpoints(t *testing.T) {
	st := statetest.New(t)
	for _, f := range endpointCharms() {
		statetest.AddService(t, st, f, 0)
	}
	for _, test := range []struct {
		a, b string
		want string // endpoints, or a part of the error
	}{
		{"wordpress", "mysql", "wordpress:db mysql:server"},
		{"mysql", "wordpress", "mysql:server wordpress:db"},
		{"wordpress:db", "mysql:server", "wordpress:db mysql:server"},
		{"twice:backup", "mysql", "twice:backup mysql:server"},
		{"twice", "mysql", `ambiguous: want one of "twice:backup mysql:server", "twice:db mysql:server"`},
		{"monitor", "mysql", "monitor:target mysql:juju-info"},
		{"both", "mysql", "both:db mysql:server"},
		{"both", "wordpress", "both:info wordpress:juju-info"},
		{"both:info", "mysql", "both:info mysql:juju-info"},
		{"logger", "wordpress", "logger:logging wordpress:juju-info"},
		{"wordpress", "twice", "neither application provides an interface that the other requires: wordpress has db (requires mysql), website (provides http); twice has backup (requires mysql), db (requires mysql)"},
		{"mysql", "mysql", "an application cannot be related to itself"},
		{"proxy", "proxy", "an application cannot be related to itself"},
		{"proxy", "mysql", "proxy:in mysql:server"},
		{"proxy", "wordpress", "proxy:out wordpress:db"},
		{"mysql:cluster", "wordpress", "neither application provides an interface that the other requires"},
		{"mysql:nope", "wordpress", `application "mysql" has no relation "nope": it has cluster, juju-info, server`},
		{"nobody", "mysql", `application "nobody" not found`},
	} {
		got := statetest.Read(t, st, func(v *state.View) (string, error) {
			eps, err := v.InferEndpoints(test.a, test.b)
			if err != nil {
				return err.Error(), nil
			}
			return eps[0].String() + " " + eps[1].String(), nil
		})
		if !strings.Contains(got, test.want) {
			t.Errorf("%s %s:\n got %s\nwant %s", test.a, test.b, got, test.want)
		}
	}
}

func TestAddRelation(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		for _, name := range []string{"mysql", "wordpress", "twice", "logger"} {
			statetest.AddService(t, st, endpointCharms()[name], 0)
		}
		got := statetest.Relate(t, st, "wordpress", "mysql")
		if got.Since.IsZero() {
			t.Error("it does not say since when it is")
		}
		want := state.Relation{ID: got.ID, Since: got.Since, Interface: "mysql", Scope: "global", Life: state.Alive, Endpoints: []state.Endpoint{
			{Service: "mysql", Name: "server", Role: "provides"}, {Service: "wordpress", Name: "db", Role: "consumes"},
		}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if r := statetest.Relate(t, st, "logger", "mysql"); r.Scope != "container" {
			t.Errorf("scope %q, though one end says container", r.Scope)
		}
		statetest.Relate(t, st, "twice:db", "mysql")
		statetest.Relate(t, st, "mysql", "twice:backup")
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			eps, err := tx.InferEndpoints("mysql", "wordpress")
			if err == nil {
				_, err = tx.AddRelation(eps...)
			}
			return err
		})
		if !errors.Is(err, state.ErrExists) {
			t.Errorf("a second relation between the same endpoints: %v", err)
		}
		all := statetest.Read(t, st, (*state.View).Relations)
		if len(all) != 5 { // these are four relations and the peer relation
			t.Errorf("%d relations", len(all))
		}
	})
}

// TestLimit checks that a modern charm can limit its number of relations, and that a classic charm's
// limit has no effect.
func TestLimit(t *testing.T) {
	st := statetest.New(t)
	for _, f := range []statetest.Files{
		statetest.MySQL(), statetest.Meta("other", "provides: {server: mysql}\n"),
		statetest.Meta("old", "requires: {db: {interface: mysql, limit: 1}}\n"),
		statetest.Meta("new", "assumes: [juju]\nrequires: {db: {interface: mysql, limit: 1}, more: {interface: mysql, limit: \"2\"}}\n"),
	} {
		statetest.AddService(t, st, f, 0)
	}
	for _, test := range []struct{ a, b, want string }{
		{"old", "mysql", ""},
		{"old", "other", ""},
		{"new:db", "mysql", ""},
		{"new:db", "other", `the charm of "new" has a limit of 1 for "db", and already has a relation with mysql:server (a relation that is being removed also counts)`},
		{"new:more", "mysql", ""},
		{"new:more", "other", ""},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			eps, err := tx.InferEndpoints(test.a, test.b)
			if err == nil {
				_, err = tx.AddRelation(eps...)
			}
			return err
		})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %s: got %v, want %q", test.a, test.b, err, test.want)
		}
	}
}

func TestFindRelation(t *testing.T) {
	st := statetest.New(t)
	for _, name := range []string{"mysql", "wordpress", "twice"} {
		statetest.AddService(t, st, endpointCharms()[name], 0)
	}
	statetest.Relate(t, st, "wordpress", "mysql")
	statetest.Relate(t, st, "twice:db", "mysql")
	statetest.Relate(t, st, "twice:backup", "mysql")
	for _, test := range []struct{ a, b, want string }{
		{"mysql", "wordpress", "relation-1"},
		{"wordpress:db", "mysql", "relation-1"},
		{"mysql:server", "twice:backup", "relation-3"},
		{"twice", "mysql", "ambiguous: want one of relation-2 (mysql:server twice:db), relation-3 (mysql:server twice:backup)"},
		{"twice", "wordpress", `relation between "twice" and "wordpress" not found`},
		{"nobody", "wordpress", `application "nobody" not found`},
	} {
		got := statetest.Read(t, st, func(v *state.View) (string, error) {
			r, err := v.FindRelation(test.a, test.b)
			if err != nil {
				return err.Error(), nil
			}
			return r.String(), nil
		})
		if !strings.Contains(got, test.want) {
			t.Errorf("%s %s:\n got %s\nwant %s", test.a, test.b, got, test.want)
		}
	}
}

func TestRelationGoesWithItsLastMember(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		for _, unit := range []string{"mysql/0", "wordpress/0"} {
			statetest.Enter(t, st, r.ID, unit, map[string]string{"k": unit})
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(r.ID) })
		late := st.Update(t.Context(), func(tx *state.Tx) error {
			u, err := tx.AddUnit("mysql", state.Placement{})
			if err != nil {
				return err
			}
			return tx.EnterRelation(r.ID, u.Name, nil)
		})
		if !errors.Is(late, state.ErrDead) {
			t.Errorf("a dying relation was entered: %v", late)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(r.ID, "mysql/0") })
		statetest.View(t, st, func(v *state.View) error {
			s, err := v.Settings(r.ID, "mysql/0")
			if err != nil || s.Values["k"] != "mysql/0" {
				t.Errorf("settings of the departed: %v, %v", s, err)
			}
			members, err := v.Members(r.ID)
			if len(members) != 1 || members[0].Unit != "wordpress/0" {
				t.Errorf("members: %v", members)
			}
			return err
		})
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(r.ID, "wordpress/0") })
		statetest.View(t, st, func(v *state.View) error {
			if _, err := v.Relation(r.ID); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("after the last has left: %v", err)
			}
			if _, err := v.Settings(r.ID, "mysql/0"); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("settings after the relation: %v", err)
			}
			of, err := v.ServiceRelations("wordpress")
			if len(of) != 0 {
				t.Errorf("wordpress still has %v", of)
			}
			return err
		})
	})
}

func TestRelationThatNobodyEnteredGoesAtOnce(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(r.ID) })
	statetest.View(t, st, func(v *state.View) error {
		if _, err := v.Relation(r.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if again := statetest.Relate(t, st, "wordpress", "mysql"); again.ID != r.ID+1 {
		t.Errorf("related again as %s", again)
	}
}

// TestTwoLastMembersLeaveAtOnce checks that if the last two members leave at the same moment, one of them
// notices that it is the last.
func TestTwoLastMembersLeaveAtOnce(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Enter(t, st, r.ID, "mysql/0", nil)
	statetest.Enter(t, st, r.ID, "wordpress/0", nil)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(r.ID) })
	first := true
	statetest.Update(t, st, func(tx *state.Tx) error {
		err := tx.LeaveRelation(r.ID, "mysql/0")
		if first {
			first = false
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(r.ID, "wordpress/0") })
		}
		return err
	})
	statetest.View(t, st, func(v *state.View) error {
		if _, err := v.Relation(r.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("the relation stayed: %v", err)
		}
		return nil
	})
}

// TestPortsKeepWhatTheyDoNotKnow checks unknown members in a list of ports. The list is one record, and
// its elements are matched by their known members.
func TestPortsKeepWhatTheyDoNotKnow(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 1)
		key := keys.Ports("mysql/0")
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.Keys().Put(key, json.RawMessage(`[{"from":80,"to":80,"protocol":"tcp","future":1},{"from":90,"to":90,"protocol":"tcp","future":2}]`))
		})
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.SetPorts("mysql/0", []state.Port{{From: 70, To: 70, Protocol: "tcp"}, {From: 80, To: 80, Protocol: "tcp"}})
		})
		got := statetest.Read(t, st, func(v *state.View) (string, error) {
			value, _, err := v.Keys().Get(key)
			return string(value), err
		})
		want := `[{"from":70,"to":70,"protocol":"tcp"},{"from":80,"to":80,"protocol":"tcp","future":1}]`
		if got != want {
			t.Errorf("got %s", got)
		}
	})
}
