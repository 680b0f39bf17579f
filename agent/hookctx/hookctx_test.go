package hookctx_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/text"
	"bijou/testscripts/kit/statetest"
)

func ptr(s string) *string { return &s }

// pair returns a relation of mysql/0 and wordpress/0, and the context of a hook of wordpress/0 in it.
func pair(t *testing.T) (*state.State, int, *hookctx.Context) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"user": "root"})
	statetest.Enter(t, st, r.ID, "wordpress/0", map[string]string{"old": "1"})
	c := hookctx.New(hookctx.Options{
		State: st, Update: st.Update, RelationName: "db", Log: func(string, string) {},
		Facts: hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", Hook: "db-relation-changed", Relation: r.ID,
			RemoteUnit: "mysql/0", RemoteService: "mysql", Members: []string{"mysql/0"}},
	})
	return st, r.ID, c
}

func TestANodeIsReadOnce(t *testing.T) {
	_, id, c := pair(t)
	node := hookapi.Node{Relation: id, Unit: "mysql/0"}
	for range 100 {
		if _, err := c.Settings(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if c.Reads() != 1 { // one read for both the relation and the node
		t.Errorf("100 reads of one node asked the store %d times, want 1", c.Reads())
	}
	if got := c.SeenSettings(id, "mysql/0"); got != 1 {
		t.Errorf("seen version %d, want 1", got)
	}
}

func TestCommitSaysWhatChanged(t *testing.T) {
	st, id, c := pair(t)
	own := hookapi.Node{Relation: id, Unit: "wordpress/0"}
	err := c.SetSettings(t.Context(), own, map[string]*string{"new": ptr("2"), "old": nil, "db-Password": ptr("s3cret"), "long": ptr(strings.Repeat("x", 300)),
		"url": ptr("mysql://me:" + strings.Repeat("p", 300) + "@db/")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	statetest.Update(t, st, func(tx *state.Tx) error {
		got = nil
		changes, err := c.AddTo(t.Context(), tx)
		for _, ch := range changes {
			got = append(got, text.HideSecrets(ch.String()))
		}
		return err
	})
	want := []string{
		`setting changed: "db-Password"=(hidden) (was unset)`, // as the tools print it
		`setting changed: "long"="` + strings.Repeat("x", 200) + `"... (300 bytes) (was unset)`,
		`setting changed: "new"="2" (was unset)`,
		`setting removed: "old" (was "1")`,
		`setting changed: "url"="mysql://me:(hidden)@db/" (was unset)`, // the value is not cut off
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatNoStoreTakesIsRefusedAtOnce(t *testing.T) {
	_, id, c := pair(t)
	own := hookapi.Node{Relation: id, Unit: "wordpress/0"}
	for _, value := range []string{"a\xff", "a\x00", strings.Repeat("x", state.MaxSetting+1)} {
		if err := c.SetSettings(t.Context(), own, map[string]*string{"k": &value}); err == nil {
			t.Errorf("a value of %d bytes was taken: %.10q", len(value), value)
		}
	}
}

func TestImpliedRelationThatIsGone(t *testing.T) {
	st, id, c := pair(t)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyRelation(id) })
	for _, unit := range []string{"mysql/0", "wordpress/0"} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(id, unit) })
	}
	got, err := c.Relation(t.Context(), id)
	want := hookapi.Relation{ID: id, Ends: []hookapi.End{
		{Service: "wordpress", Name: "db", Units: []string{"wordpress/0"}},
		{Service: "mysql", Units: []string{"mysql/0"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestPortsOfAnotherUnit(t *testing.T) {
	st, _, c := pair(t)
	http := hookapi.Port{From: 80, To: 80, Protocol: "tcp"}
	if err := c.SetPort(t.Context(), "mysql/0", http, true); err != nil {
		t.Fatal(err)
	}
	if err := c.SetPort(t.Context(), "mysql/9", http, true); !errors.Is(err, hookapi.ErrUnknownUnit) {
		t.Errorf("unknown unit: %v", err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { _, err := c.AddTo(t.Context(), tx); return err })
	got := statetest.Read(t, st, func(v *state.View) ([]state.Port, error) { return v.Ports("mysql/0") })
	if diff := cmp.Diff([]state.Port{{From: 80, To: 80, Protocol: "tcp"}}, got); diff != "" {
		t.Error(diff)
	}
}
