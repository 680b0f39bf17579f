package juju

import (
	"errors"
	"fmt"
	"time"

	"bijou/state"
)

// maxErrorsNoted bounds the lines about units in error.
const maxErrorsNoted = 10

// noteUnitErrors says where what a command leads to waits, since a unit or a relation of it is
// in error, and what ends that. read returns the units; describe an empty string for an error
// that is not in the way.
func (o *operator) noteUnitErrors(s *state.State, read func(v *state.View) ([]string, error), describe func(e state.UnitError) string) error {
	all, err := readView(o.ctx, s, func(v *state.View) ([]state.UnitError, error) {
		units, err := read(v)
		if err != nil {
			return nil, err
		}
		return v.UnitErrors(units)
	})
	var lines []string
	for _, e := range all {
		if line := describe(e); line != "" {
			lines = append(lines, line)
		}
	}
	for _, line := range lines[:min(len(lines), maxErrorsNoted)] {
		o.note("%s", line)
	}
	if more := len(lines) - maxErrorsNoted; more > 0 {
		o.note("and %s more; all of them: juju status", formatCount(more, "error"))
	}
	return err
}

func describeUnitError(e state.UnitError) string {
	what, where := e.Unit, e.Unit
	if e.Relation != state.NoRelation {
		where = fmt.Sprintf("%s %s:%d", e.Unit, e.Name, e.Relation)
		what = fmt.Sprintf("%s of %s", state.Relation{ID: e.Relation}, e.Unit)
	}
	retry := ""
	if !e.RetryAt.IsZero() {
		retry = ", or a retry by itself that succeeds, the next at " + e.RetryAt.Local().Format(time.TimeOnly)
	}
	return fmt.Sprintf("%s is in error (%s failed): its hooks wait for juju resolved --retry %s (it runs again), or juju resolved %[3]s (it counts as done)%s",
		what, e.Hook.Name, where, retry)
}

// describeOwnError leaves out errors of relations.
func describeOwnError(e state.UnitError) string {
	if e.Relation != state.NoRelation {
		return ""
	}
	return describeUnitError(e)
}

// describeLeaversError is about a unit that is to leave.
func describeLeaversError(e state.UnitError) string {
	if e.Hook.Kind == "install" {
		return e.Unit + " was never installed, and goes without hooks"
	}
	return describeUnitError(e)
}

// aliveUnits lists the units that go on to run all their hooks.
func aliveUnits(v *state.View, service string) (names []string, err error) {
	units, err := v.Units(service)
	for _, u := range units {
		if u.Life == state.Alive {
			names = append(names, u.Name)
		}
	}
	return names, err
}

// leavingUnits lists the unit with its subordinates; none if it is gone.
func leavingUnits(v *state.View, name string) ([]string, error) {
	u, err := v.Unit(name)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	return append(u.Subordinates, name), err
}

func leavingServiceUnits(v *state.View, service string) (names []string, err error) {
	units, err := v.Units(service)
	for _, u := range units {
		names = append(append(names, u.Name), u.Subordinates...)
	}
	return names, err
}
