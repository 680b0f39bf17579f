package hook

import (
	"cmp"
	"slices"

	"bijou/state"
)

// Entry is one pending entry of the queue.
type Entry struct {
	Relation Relation
	Member   string
	State    state.MemberState
}

// Hook returns the hook that is pending.
func (e Entry) Hook() state.Hook { return ForRelation(e.State.Pending, e.Relation, e.Member) }

// Pick returns the entry that is next: a changed that is owed after its joined, else the
// oldest, peer relations last. ok is false if there is none.
func Pick(entries []Entry) (first Entry, ok bool) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.State.Pending == "" })
	if len(entries) == 0 {
		return Entry{}, false
	}
	return slices.MinFunc(entries, func(a, b Entry) int {
		return cmp.Or(-compareBools(isChangedOwed(a.State), isChangedOwed(b.State)), compareBools(a.Relation.Peer, b.Relation.Peer),
			cmp.Compare(a.State.Place, b.State.Place), cmp.Compare(a.Relation.ID, b.Relation.ID), cmp.Compare(a.Member, b.Member))
	}), true
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
