package hook

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
)

const tail = 9

func TestArriveReduces(t *testing.T) {
	for _, tc := range []struct {
		pending, arrives, want string
		place                  int64
	}{
		{Joined, Changed, Joined, 4},
		{Joined, Departed, "", 0},
		{Changed, Changed, Changed, 4},
		{Changed, Departed, Departed, tail},
		{Departed, Joined, Changed, tail},
		{Departed, Changed, Departed, 4},
		{"", Joined, Joined, tail},
		{"", Changed, Changed, tail},
		{"", Departed, Departed, tail},
		{Joined, Joined, Joined, 4},
		{Departed, Departed, Departed, 4},
	} {
		m := state.MemberState{Pending: tc.pending}
		if tc.pending != "" {
			m.Place = 4
		}
		want := state.MemberState{Pending: tc.want, Place: tc.place}
		if diff := cmp.Diff(want, Arrive(m, tc.arrives, tail)); diff != "" {
			t.Errorf("%s, then %s: %s", tc.pending, tc.arrives, diff)
		}
	}
}

func TestTakenEntryIsNotReduced(t *testing.T) {
	joining := Take(state.MemberState{Pending: Joined, Place: 4, Version: 7})
	if diff := cmp.Diff(state.MemberState{State: In, Pending: Changed, Place: 4, Version: 7}, joining); diff != "" {
		t.Errorf("taken: %s", diff)
	}
	// The member departs while its joined hook runs. The agent must not forget it, and must run the departed
	// hook.
	if diff := cmp.Diff(state.MemberState{State: In, Pending: Departed, Place: tail, Version: 7}, Arrive(joining, Departed, tail)); diff != "" {
		t.Errorf("departed meanwhile: %s", diff)
	}
	departing := Take(state.MemberState{State: In, Pending: Departed, Place: 4})
	if !IsForgotten(departing) || IsExpected(departing) {
		t.Errorf("%+v: want it forgotten once its departed is done", departing)
	}
	if diff := cmp.Diff(state.MemberState{State: Left, Pending: Joined, Place: tail}, Arrive(departing, Joined, tail)); diff != "" {
		t.Errorf("joined meanwhile: %s", diff)
	}
}

func TestDoneDropsWhatWasSeen(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    state.MemberState
		seen int64
		want state.MemberState
	}{
		{"nothing pending", state.MemberState{State: In, Version: 3}, 3, state.MemberState{State: In, Version: 3, Seen: 3}},
		{"the pending one was read already", state.MemberState{State: In, Pending: Changed, Place: 4, Version: 5}, 5,
			state.MemberState{State: In, Version: 5, Seen: 5}},
		{"the pending one is newer", state.MemberState{State: In, Pending: Changed, Place: 4, Version: 6}, 5,
			state.MemberState{State: In, Pending: Changed, Place: 4, Version: 6, Seen: 5}},
		{"a departed stays", state.MemberState{State: In, Pending: Departed, Place: 4, Version: 5}, 5,
			state.MemberState{State: In, Pending: Departed, Place: 4, Version: 5, Seen: 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Done(tc.m, tc.seen)); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	in := func(version, seen int64) state.MemberState {
		return state.MemberState{State: In, Version: version, Seen: seen}
	}
	pending := func(kind string, version int64) state.MemberState {
		return state.MemberState{State: In, Pending: kind, Place: 1, Version: version}
	}
	type members = map[string]state.MemberState
	present := func(pairs ...any) (all []state.Member) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, state.Member{Unit: pairs[i].(string), Version: int64(pairs[i+1].(int))})
		}
		return all
	}
	for _, tc := range []struct {
		name     string
		recorded members
		present  []state.Member
		leaving  bool
		want     []Arrival
	}{
		{name: "nothing new", recorded: members{"a/0": in(3, 3)}, present: present("a/0", 3)},
		{name: "two come, in the order of their numbers", present: present("a/10", 2, "a/9", 1), want: []Arrival{
			{Member: "a/9", State: state.MemberState{Pending: Joined, Place: tail, Version: 1}},
			{Member: "a/10", State: state.MemberState{Pending: Joined, Place: tail + 1, Version: 2}},
		}},
		{name: "settings changed", recorded: members{"a/0": in(3, 3)}, present: present("a/0", 4), want: []Arrival{
			{Member: "a/0", State: state.MemberState{State: In, Pending: Changed, Place: tail, Version: 4, Seen: 3}},
		}},
		{name: "settings changed, but a hook has read them", recorded: members{"a/0": in(3, 4)}, present: present("a/0", 4)},
		{name: "settings changed while one is pending", recorded: members{"a/0": pending(Changed, 3)}, present: present("a/0", 4)},
		{name: "gone while the agent was down", recorded: members{"a/0": in(3, 3)}, want: []Arrival{
			{Member: "a/0", State: state.MemberState{State: In, Pending: Departed, Place: tail, Version: 3, Seen: 3}},
		}},
		{name: "gone before it was told of", recorded: members{"a/0": {Pending: Joined, Place: 1}}, want: []Arrival{
			{Member: "a/0", Forget: true},
		}},
		{name: "gone while its departed runs", recorded: members{"a/0": {State: Left}}},
		{name: "back while its departed is pending", recorded: members{"a/0": pending(Departed, 3)}, present: present("a/0", 3), want: []Arrival{
			{Member: "a/0", State: state.MemberState{State: In, Pending: Changed, Place: tail, Version: 3}},
		}},
		{name: "back while its departed runs", recorded: members{"a/0": {State: Left}}, present: present("a/0", 3), want: []Arrival{
			{Member: "a/0", State: state.MemberState{State: Left, Pending: Joined, Place: tail, Version: 3}},
		}},
		{name: "a service has settings of its own", present: present("a/0", 1, "a", 4), want: []Arrival{
			{Member: "a/0", State: state.MemberState{Pending: Joined, Place: tail, Version: 1}},
			{Member: "a", State: state.MemberState{State: In, Pending: Changed, Place: tail + 1, Version: 4}},
		}},
		{name: "a service's settings changed", recorded: members{"a": in(4, 4)}, present: present("a", 5), want: []Arrival{
			{Member: "a", State: state.MemberState{State: In, Pending: Changed, Place: tail, Version: 5, Seen: 4}},
		}},
		{name: "a service never departs", recorded: members{"a": pending(Changed, 5)}, leaving: true, want: []Arrival{
			{Member: "a", Forget: true},
		}},
		{name: "everybody departs from what goes", recorded: members{"a/0": in(3, 3), "a/1": pending(Changed, 1), "a/2": {Pending: Joined, Place: 2}},
			present: present("a/0", 3, "a/1", 1, "a/2", 1, "a/3", 1), leaving: true, want: []Arrival{
				{Member: "a/0", State: state.MemberState{State: In, Pending: Departed, Place: tail, Version: 3, Seen: 3}},
				{Member: "a/1", State: state.MemberState{State: In, Pending: Departed, Place: tail + 1, Version: 1}},
				{Member: "a/2", Forget: true},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i, a := range tc.want {
				_, tc.want[i].Known = tc.recorded[a.Member]
			}
			if diff := cmp.Diff(tc.want, Arrivals(0, tc.recorded, tc.present, tc.leaving, tail)); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}

func TestPick(t *testing.T) {
	db, peer := Relation{ID: 1, Name: "db"}, Relation{ID: 0, Name: "ring", Peer: true}
	entry := func(r Relation, member, st, pending string, place, seen int64) Entry {
		return Entry{r, member, state.MemberState{State: st, Pending: pending, Place: place, Seen: seen}}
	}
	for _, tc := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"none", []Entry{entry(db, "a/0", In, "", 0, 3)}, ""},
		{"the oldest", []Entry{entry(db, "a/0", In, Changed, 5, 1), entry(db, "a/1", "", Joined, 4, 0)}, "a/1 db-relation-joined"},
		{"peers last", []Entry{entry(db, "a/0", In, Changed, 5, 1), entry(peer, "b/1", "", Joined, 4, 0)}, "a/0 db-relation-changed"},
		{"an owed changed before all", []Entry{entry(db, "a/0", "", Joined, 2, 0), entry(peer, "b/1", In, Changed, 4, 0)}, "b/1 ring-relation-changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if e, ok := Pick(slices.Values(tc.entries)); ok {
				got = e.Member + " " + e.Hook().Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
