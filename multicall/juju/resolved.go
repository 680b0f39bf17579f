package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

type resolvedCmd struct {
	Unit        string  `arg:"" help:"The unit; or the id of a machine that could not be started, which is tried again."`
	Relation    string  `arg:"" optional:"" help:"One relation of the unit, by name or id."`
	Retry       bool    `short:"r" help:"Run the failed hook again, instead of counting it as done."`
	Constraints *string `placeholder:"\"K=V ...\"" help:"What the machine has to satisfy from now on, instead of all it had to."`
}

// Run marks the error as resolved. Nothing to resolve is a line of output, not an error.
func (c resolvedCmd) Run(o *operator) error {
	_, notNumber := strconv.Atoi(c.Unit)
	switch isMachine := notNumber == nil; {
	case isMachine && c.Relation != "":
		return console.Usage(fmt.Errorf("machine %s has no relations", c.Unit))
	case isMachine:
		return retryProvisioningCmd{Machines: []string{c.Unit}, Constraints: c.Constraints}.Run(o)
	case c.Constraints != nil:
		return console.Usage(fmt.Errorf(
			"--constraints is for machines, and %q is not the id of one: a unit's never change",
			c.Unit,
		))
	}

	var failed state.Hook
	var runs *state.RunningHook
	var mark state.Restored

	err := o.update(func(tx *state.Tx) (err error) {
		if _, err = tx.Unit(c.Unit); err != nil {
			return err
		}
		if runs, err = tx.Running(c.Unit); err != nil {
			return err
		}
		if mark, _, err = tx.Restored(c.Unit); err != nil {
			return err
		}

		failed, err = tx.SetResolved(c.Unit, c.Relation, c.Retry)
		return err
	})

	if runs != nil {
		o.note("%s of %s has been running since %s%s; to end it: juju interrupt %[2]s", runs.Name, c.Unit,
			runs.Since.Local().Format(time.DateTime), runs.HeldBy())
	}

	what := fmt.Sprintf("unit %q", c.Unit)
	if c.Relation != "" {
		what = fmt.Sprintf("relation %q of %s", c.Relation, what)
	}

	switch {
	case errors.Is(err, state.ErrNotInError):
		fmt.Fprintf(o.streams.Out, "%s is already running\n", what)
		return c.noteRelationErrors(o)
	case errors.Is(err, state.ErrAlreadyResolved):
		fmt.Fprintf(o.streams.Out, "%s is already marked as resolved\n", what)
		return nil
	case err != nil:
		return err
	}

	fmt.Fprintf(o.streams.Out, "%s is marked as resolved%s\n", what, c.describeEffect(failed))
	if c.Relation == "" && len(mark.Storage) > 0 {
		o.note("storage %s is made again, empty", strings.Join(mark.Storage, ", "))
	}
	return nil
}

func (c resolvedCmd) noteRelationErrors(o *operator) error {
	if c.Relation != "" {
		return nil
	}

	return o.view(func(v *state.View) error {
		inside, err := v.Uniter(c.Unit)
		for _, id := range slices.Sorted(maps.Keys(inside.Relations)) {
			if r := inside.Relations[id]; r.Failure != nil {
				o.note("its %s is in error; for that: juju resolved %s %s",
					state.Relation{ID: id}, c.Unit, r.Name)
			}
		}

		return err
	})
}

func (c resolvedCmd) describeEffect(failed state.Hook) string {
	text := "counts as done; --retry runs it again"
	if c.Retry {
		text = "runs again"
	}
	if failed.Name == "" { // it was restored
		return ""
	}

	return fmt.Sprintf(": %s of %s %s", failed.Name, c.Unit, text)
}

// noteErrorsTimeout is short: the change is made, and the store may have gone since.
const noteErrorsTimeout = 2 * time.Second

// noteErrors says which units in error, of these and of related services, are in the way of what was
// just said to follow, and what their hooks wait for. blocks is asked about a unit's own error with an empty relation. What
// cannot be read is not said: the command has done its work.
func (o *operator) noteErrors(
	s *state.State,
	services []string,
	blocks func(name string, u status.Unit, relation string) bool,
) {
	ctx, cancel := context.WithTimeout(o.ctx, noteErrorsTimeout)
	defer cancel()

	now, err := state.Read(ctx, s, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now(), Globs: services, Related: true})
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
