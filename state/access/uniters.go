package access

import (
	"strconv"
	"strings"

	"bijou/state/keys"
)

// tracksRelation allows the unit's machine to change the unit's record of a relation. A new record must
// belong to a relation of the unit's service. Otherwise the number of a unit's records would have no limit,
// and they would delay the unit's removal.
func tracksRelation(a *ask) bool {
	unit := a.vars["unit"]
	return a.hosts(unit) && (a.old != nil || a.isAtEnd(serviceOf(unit)))
}

// tracksMember is like tracksRelation, for a record of a member. A new record must name a unit of a service
// in the relation. The unit may have been removed since the agent read the members, so it is enough that a
// unit once had its number.
func tracksMember(a *ask) bool {
	service, number, _ := strings.Cut(a.vars["member"], "/")
	n, err := strconv.Atoi(number)
	if !tracksRelation(a) {
		return false
	}
	if a.old != nil {
		return true
	}

	return err == nil && a.isAtEnd(service) && n < a.unitsEver(service)
}

// tracksService is like tracksRelation, for a record of an application's own settings.
func tracksService(a *ask) bool {
	return tracksRelation(a) && (a.old != nil || a.isAtEnd(a.vars["service"]))
}

// isAtEnd reports whether the service is one end of the relation that the key names.
func (a *ask) isAtEnd(service string) bool {
	r, _ := a.relation(a.vars["relation"])
	return r.has(service)
}

// unitsEver returns how many units the service has had. Numbers of units are never used again.
func (a *ask) unitsEver(service string) int {
	n, _ := load[int](a.Placement, keys.UnitCounter(service))
	return n
}
