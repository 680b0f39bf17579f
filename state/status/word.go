package status

import (
	"cmp"
	"strings"
	"time"

	"bijou/state"
)

// Word returns the unit's status in one word, for the terminal and the web page. It returns the charm's status,
// unless the agent is lost or has failed, or a hook has failed. If the charm has not set a status, it returns
// waiting before the first hook runs, and installing while the agent installs the charm. Later, and if the charm
// has set the status unknown, it returns the unit's state.
func (u Unit) Word() string {
	current := u.WorkloadInfo().Current
	switch {
	case u.State == state.UnitDown:
		return "down"
	case u.Trouble != nil || IsErrorState(u.State):
		return "error"
	case current == "maintenance" && u.Workload == nil:
		// The charm has not set this status: the unit's agent is installing the charm.
		return "installing"
	case current == "unknown":
		return u.State
	}

	return current
}

// Since returns the time at which the unit got the status that Word returns, or zero if the time is unknown. The
// time is unknown for a unit that is down, since no record says when its agent was lost.
func (u Unit) Since() time.Time {
	if u.State == state.UnitDown {
		return time.Time{}
	}
	if id, r := u.HeldByRelation(); id != "" {
		return r.Since
	}

	trouble := cmp.Or(u.Trouble, &state.Trouble{})
	info := cmp.Or(u.Info, &UnitStateInfo{})
	workload := cmp.Or(u.Workload, &Workload{})
	return cmp.Or(trouble.Since, info.Since, workload.Since)
}

// HeldByRelation returns the relation in which a hook has failed, if that is the only reason why the unit is
// in error. Otherwise the id is empty.
func (u Unit) HeldByRelation() (id string, r RelationUnit) {
	_, failed := u.WaitReason()
	hasOwnReason := u.Trouble != nil || u.Info != nil
	if !failed || hasOwnReason {
		return "", RelationUnit{}
	}
	return u.RelationInError()
}

// IsErrorState reports whether a state or word needs an operator's attention.
func IsErrorState(state string) bool { return strings.HasSuffix(state, "error") || state == "down" }
