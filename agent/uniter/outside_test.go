package uniter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hook"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/state/actions"
)

func TestFindRelation(t *testing.T) {
	in := state.MemberState{State: hook.In}
	records := state.Uniter{
		Relations: map[int]state.RelationState{
			1: {State: state.RelationUp, Name: "db", RemoteService: "mysql"},
			2: {State: state.RelationError, Name: "web", RemoteService: "proxy"},
			3: {State: state.RelationUp, Name: "web", RemoteService: "cache"},
			4: {State: "departed", Name: "old", RemoteService: "gone"},
		},
		Members: map[int]map[string]state.MemberState{
			1: {"mysql/10": in, "mysql/2": in, "mysql": {}, "mysql/3": {}},
			2: {"proxy/0": in},
		},
	}

	for _, tc := range []struct {
		name string
		in   server.Command
		want *actions.Relation
		err  string
	}{
		{"by number", server.Command{Relation: "2"}, &actions.Relation{ID: 2, Name: "web", RemoteUnit: "proxy/0", RemoteService: "proxy"}, ""},
		{"by the classic id", server.Command{Relation: "relation-2"}, &actions.Relation{ID: 2, Name: "web", RemoteUnit: "proxy/0", RemoteService: "proxy"}, ""},
		{"by name and unit", server.Command{Relation: "db", RemoteUnit: "mysql/2"}, &actions.Relation{ID: 1, Name: "db", RemoteUnit: "mysql/2", RemoteService: "mysql"}, ""},
		{"by id and application", server.Command{Relation: "web:2", RemoteService: "proxy"}, &actions.Relation{ID: 2, Name: "web", RemoteUnit: "proxy/0", RemoteService: "proxy"}, ""},
		{"nobody, by force", server.Command{Relation: "3", Force: true}, &actions.Relation{ID: 3, Name: "web", RemoteService: "cache"}, ""},
		{"somebody else, by force", server.Command{Relation: "3", RemoteUnit: "cache/9", Force: true}, &actions.Relation{ID: 3, Name: "web", RemoteUnit: "cache/9", RemoteService: "cache"}, ""},
		{"several relations", server.Command{Relation: "web"}, nil, `relation "web" is ambiguous: want one of 2, 3`},
		{"several units", server.Command{Relation: "db"}, nil, `cannot choose a remote unit in relation "db": want one of mysql/2, mysql/10`},
		{"nobody", server.Command{Relation: "3"}, nil, "no remote unit is in"},
		{"not a member", server.Command{Relation: "db", RemoteUnit: "mysql/3"}, nil, "is not in relation"},
		{"another application", server.Command{Relation: "db", RemoteService: "proxy"}, nil, `relation "db" is "mysql", and not "proxy"`},
		{"left", server.Command{Relation: "old"}, nil, "not found"},
		{"unknown", server.Command{Relation: "db:2"}, nil, "not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := findRelation(records, tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestOutsideLeavesTheLoopAlone checks that commands of other programs do not reach the method commit, since that
// changes the cache of the unit's loop.
func TestOutsideLeavesTheLoopAlone(t *testing.T) {
	errRaw := errors.New("the Update that was passed to Run")
	u := &uniter{rawUpdate: func(context.Context, func(tx *state.Tx) error) error { return errRaw }}
	u.Update = u.commit
	if err := u.outside().Update(t.Context(), nil); !errors.Is(err, errRaw) {
		t.Errorf("got %v, want %v", err, errRaw)
	}
}
