package hook

import "bijou/state"

// A member's recorded state (state.MemberState.State) is what its hooks have
// been told of it, the entry being executed included: nothing, that it is in,
// or that it has left.
const (
	In   = "in"
	Left = "left"
)

// Arrive adds a hook of that kind to a member's entry, at the tail where it does not leave
// the entry as it is. The table is in docs/reference/hooks.md, "The queue"; a hook that was
// taken out for execution is not in the entry any more, and so is never reduced.
func Arrive(m state.MemberState, kind string, tail int64) state.MemberState {
	switch [2]string{m.Pending, kind} {
	case [2]string{Joined, Departed}:
		m.Pending, m.Place = "", 0
	case [2]string{Departed, Joined}:
		m.Pending, m.Place = Changed, tail
	case [2]string{"", kind}, [2]string{Changed, Departed}:
		m.Pending, m.Place = kind, tail
	}
	return m
}

// Take takes the pending hook out for execution. After a joined, whether it succeeds or
// not, a changed is owed in the same place.
func Take(m state.MemberState) state.MemberState {
	switch m.Pending {
	case Joined:
		m.State, m.Pending, m.Seen = In, Changed, 0
	case Departed:
		m.State, m.Pending, m.Place = Left, "", 0
	default:
		m.Pending, m.Place = "", 0
	}
	return m
}

// Done records that a changed hook for the member counts as done, which knew its settings
// up to the given version. A pending changed that has nothing newer to tell is dropped.
func Done(m state.MemberState, seen int64) state.MemberState {
	m.Seen = max(m.Seen, seen)
	if m.Pending == Changed && m.Version <= m.Seen {
		m.Pending, m.Place = "", 0
	}
	return m
}

// IsForgotten reports whether nothing is left to be remembered of the member.
func IsForgotten(m state.MemberState) bool { return m.State != In && m.Pending == "" }

// IsExpected reports whether the member is in as far as its hooks know, once what is
// pending has run.
func IsExpected(m state.MemberState) bool {
	switch m.Pending {
	case Joined, Changed:
		return true
	case Departed:
		return false
	}
	return m.State == In
}

// isChangedOwed reports whether the pending hook is the changed that directly follows a
// joined.
func isChangedOwed(m state.MemberState) bool {
	return m.State == In && m.Pending == Changed && m.Seen == 0
}
