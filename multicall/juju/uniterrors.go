package juju

import (
	"context"
	"maps"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// noteErrorsTimeout is short: the change is made, and the store may have gone since.
const noteErrorsTimeout = 2 * time.Second

// noteErrors says which units in error, of these and of related services, are in the way of what was
// just said to follow, and what their hooks wait for. blocks is asked about a unit's own error with an empty relation. What
// cannot be read is not said: the command has done its work.
func (o *operator) noteErrors(s *state.State, services []string, blocks func(name string, u status.Unit, relation string) bool) {
	ctx, cancel := context.WithTimeout(o.ctx, noteErrorsTimeout)
	defer cancel()
	scope := func(service string) (bool, []string) { return slices.Contains(services, service), nil }
	now, err := state.Read(ctx, s, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now(), Scope: scope})
	})
	if err != nil {
		return
	}
	units := allUnits(now)
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		u := units[name]
		if i := u.Info; i != nil && i.Hook != "" && i.Resolved == state.Unresolved && blocks(name, u, "") {
			o.noteError(name, name, i.Hook+": "+i.Message, i.NextRetry)
		}
		for _, end := range slices.Sorted(maps.Keys(u.Relations)) {
			relations := u.Relations[end].Relations
			for _, id := range slices.Sorted(maps.Keys(relations)) {
				r := relations[id]
				if r.State == state.RelationError && r.Resolved == state.Unresolved && blocks(name, u, id) {
					o.noteError(id+" of "+name, name+" "+id, r.Message, r.NextRetry)
				}
			}
		}
	}
}

func (o *operator) noteError(what, where, why string, retry time.Time) {
	byItself := ""
	if !retry.IsZero() {
		byItself = ", or a retry by itself that succeeds, the next at " + retry.Local().Format(time.TimeOnly)
	}
	o.note("%s is in error (%s): its hooks wait for juju resolved --retry %s (it runs again), or juju resolved %[3]s (it counts as done)%s",
		what, why, where, byItself)
}
