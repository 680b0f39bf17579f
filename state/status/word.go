package status

import (
	"cmp"
	"strings"
	"time"

	"bijou/state"
)

// Word returns the one word that says how a unit is, on the terminal and on the page: what its charm says, unless
// its agent or a hook of it is in the way of that.
func (u Unit) Word() string {
	said := u.WorkloadInfo().Current
	switch {
	case u.State == state.UnitDown:
		return "down"
	case u.Trouble != nil || IsErrorState(u.State):
		return "error"
	case said == "maintenance" && u.Workload == nil:
		return "installing"
	case said == "unknown":
		return u.State
	}

	return said
}

// Since returns since when the unit is as Word says; zero if that is not known.
func (u Unit) Since() time.Time {
	if id, r := u.HeldByRelation(); id != "" {
		return r.Since
	}

	trouble := cmp.Or(u.Trouble, &state.Trouble{})
	info := cmp.Or(u.Info, &UnitStateInfo{})
	said := cmp.Or(u.Workload, &Workload{})
	return cmp.Or(trouble.Since, info.Since, said.Since)
}

// HeldByRelation returns the relation in which a hook has failed, if the unit is in error by nothing else; an
// empty id: it is not.
func (u Unit) HeldByRelation() (id string, r RelationUnit) {
	id, r = u.RelationInError()
	if _, failed := u.WaitReason(); !failed || u.Trouble != nil || u.Info != nil {
		return "", RelationUnit{}
	}
	return id, r
}

// IsErrorState reports whether an operator must see to a state or word.
func IsErrorState(state string) bool { return strings.HasSuffix(state, "error") || state == "down" }
