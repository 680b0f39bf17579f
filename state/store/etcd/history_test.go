package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"bijou/testscripts/kit/need"
)

// TestHistory checks which answers end an epoch, in whatever order they arrive.
func TestHistory(t *testing.T) {
	need.Whole(t)
	type event struct {
		do       string // "ask" NAME, "answer" NAME, or "tell" in the current epoch
		name     string
		cluster  uint64
		revision int64
		over     bool
	}
	ask := func(name string) event { return event{do: "ask", name: name} }
	answer := func(name string, cluster uint64, revision int64) event {
		return event{"answer", name, cluster, revision, false}
	}
	ends := func(name string, cluster uint64, revision int64) event {
		return event{"answer", name, cluster, revision, true}
	}
	tell := func(revision int64) event { return event{do: "tell", revision: revision} }
	for _, test := range []struct {
		name   string
		events []event
		want   historyState
	}{
		{"it grows", []event{ask("a"), answer("a", 7, 10), ask("b"), answer("b", 7, 10), ask("c"), answer("c", 7, 12)}, historyState{0, 7, 12}},
		{"answers overtake one another", []event{ask("a"), ask("b"), answer("b", 7, 20), answer("a", 7, 10)}, historyState{0, 7, 20}},
		{"a watch is ahead of an older request", []event{ask("a"), tell(30), answer("a", 7, 10)}, historyState{0, 7, 30}},
		{"a member's watch is behind", []event{ask("a"), answer("a", 7, 10), tell(5)}, historyState{0, 7, 10}},
		{"it goes back", []event{ask("a"), answer("a", 7, 10), ask("b"), ends("b", 7, 9)}, historyState{1, 7, 9}},
		{"it goes back behind a watch", []event{tell(10), ask("b"), ends("b", 7, 9)}, historyState{1, 7, 9}},
		{"another cluster", []event{ask("a"), answer("a", 7, 10), ask("b"), ends("b", 8, 90)}, historyState{1, 8, 90}},
		{"several find it at once", []event{
			ask("a"), answer("a", 7, 10), ask("b"), ask("c"), ends("b", 7, 5), answer("c", 7, 5), ask("d"), answer("d", 7, 6),
		}, historyState{1, 7, 6}},
		{"a late answer of the old history", []event{
			ask("a"), answer("a", 7, 10), ask("late"), ask("b"), ends("b", 7, 5), answer("late", 7, 11), ask("c"), answer("c", 7, 6),
		}, historyState{1, 7, 6}},
		{"a late answer of the old cluster", []event{
			ask("a"), answer("a", 7, 10), ask("late"), ask("b"), ends("b", 8, 5), answer("late", 7, 11), ask("c"), answer("c", 8, 6),
		}, historyState{1, 8, 6}},
		{"twice", []event{ask("a"), answer("a", 7, 10), ask("b"), ends("b", 7, 5), ask("c"), ends("c", 7, 4)}, historyState{2, 7, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var h historyTracker
			asked := map[string]historyState{}
			for _, e := range test.events {
				switch e.do {
				case "ask":
					asked[e.name] = h.lastSeen()
				case "tell":
					h.recordRevision(h.lastSeen().epoch, e.revision)
				case "answer":
					if over := h.recordResponse(asked[e.name], &pb.ResponseHeader{ClusterId: e.cluster, Revision: e.revision}); over != e.over {
						t.Errorf("%s at %d: the epoch ends: %t, want %t", e.name, e.revision, over, e.over)
					}
				}
			}
			// The revision comes from a stream of the previous epoch.
			h.recordRevision(h.lastSeen().epoch-1, 1000)
			if got := h.lastSeen(); got != test.want {
				t.Errorf("seen %+v, want %+v", got, test.want)
			}
		})
	}
}
