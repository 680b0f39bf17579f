package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/status"
)

type resolvedCmd struct {
	Targets     []string `arg:"" optional:"" name:"unit" help:"Units; or one unit and one of its relations, by name or id; or ids of machines, to retry their start."`
	All         bool     `help:"Resolve all units in error, and all relations in error."`
	Retry       bool     `short:"r" xor:"answer" help:"Run the failed hook again; the default, unless the model sets resolved-skips=true."`
	NoRetry     bool     `xor:"answer" help:"Count the failed hook as done, and do not run it again."`
	Constraints *string  `placeholder:"\"K=V ...\"" help:"Replace the machines' constraints."`
}

// errorOf names an error that an operator resolves: the unit's own error or, if relation is set, the error of
// that relation.
type errorOf struct{ unit, relation string }

// String returns the unit, or the relation of the unit, for messages.
func (e errorOf) String() string {
	if e.relation == "" {
		return fmt.Sprintf("unit %q", e.unit)
	}
	return fmt.Sprintf("relation %q of unit %q", e.relation, e.unit)
}

// Run resolves all errors that the arguments or --all select, or none. If there is nothing to resolve, it prints
// a line and returns nil. But with --retry it returns an error if an earlier juju resolved has skipped the failed
// hook. If the first argument is the id of a machine, it instead retries the start of machines.
func (c resolvedCmd) Run(o *operator) error {
	switch {
	case c.All && len(c.Targets) > 0:
		return console.Usage(errors.New("--all and names cannot be used together"))
	case !c.All && len(c.Targets) == 0:
		return console.Hint(console.Usage(errors.New("no unit given")), "juju resolved UNIT, or juju resolved --all")
	case !c.All && isMachineID(c.Targets[0]):
		return c.retryMachines(o)
	case c.Constraints != nil:
		return console.Usage(fmt.Errorf(
			"--constraints is for machines, and %q is not a machine's id: a unit's constraints cannot change",
			strings.Join(c.Targets, " "),
		))
	}

	subjects, err := c.subjects()
	if err != nil {
		return err
	}

	return o.openChosen(func(s *state.State) error {
		if c.All {
			subjects, err = state.Read(o.ctx, s, findErrors)
			if err != nil {
				return err
			}
			if len(subjects) == 0 {
				fmt.Fprintln(o.streams.Out, "no unit is in error")
			}
		}

		return c.resolveAll(o, s, subjects)
	})
}

// retryMachines requests a new attempt to start the machines, as retry-provisioning does.
func (c resolvedCmd) retryMachines(o *operator) error {
	id := c.Targets[0]
	for _, word := range c.Targets[1:] {
		if !isMachineID(word) {
			return console.Usage(fmt.Errorf("machine %s has no relations", id))
		}
	}
	if c.NoRetry {
		return console.Hint(
			console.Usage(fmt.Errorf("--no-retry is only for units: the start of machine %s cannot count as done", id)),
			"to retry the start: juju resolved "+id+"; to remove the machine: juju remove-machine "+id,
		)
	}

	return retryProvisioningCmd{Machines: c.Targets, Constraints: c.Constraints}.Run(o)
}

// subjects returns the errors that the arguments name: UNIT RELATION is the error of a unit's relation, and each
// of UNIT... is the unit's own error. It returns each error once. If any other argument
// after the first is not a unit, subjects returns a usage error.
func (c resolvedCmd) subjects() (subjects []errorOf, err error) {
	if len(c.Targets) == 2 && !charm.IsUnit(c.Targets[1]) {
		return []errorOf{{unit: c.Targets[0], relation: c.Targets[1]}}, nil
	}

	for i, word := range c.Targets {
		if i > 0 && !charm.IsUnit(word) {
			return nil, console.Usage(fmt.Errorf("%q is not a unit: give a relation after a single unit", word))
		}
		if subject := (errorOf{unit: word}); !slices.Contains(subjects, subject) {
			subjects = append(subjects, subject)
		}
	}

	return subjects, nil
}

// findErrors returns the errors of all units and of their relations that no operator has answered yet.
func findErrors(v *state.View) (found []errorOf, err error) {
	units, err := v.Units("")
	if err != nil {
		return nil, err
	}

	for _, u := range units {
		uniter, err := v.Uniter(u.Name)
		if err != nil {
			return nil, err
		}

		if uniter.Workflow.Failure != nil && u.Resolved == state.Unresolved {
			found = append(found, errorOf{unit: u.Name})
		}
		for _, id := range slices.Sorted(maps.Keys(uniter.Relations)) {
			if uniter.Relations[id].Failure != nil && u.ResolvedRelations[id] == state.Unresolved {
				found = append(found, errorOf{unit: u.Name, relation: state.Relation{ID: id}.String()})
			}
		}
	}

	return found, nil
}

// resolution is the outcome of juju resolved for one error.
type resolution struct {
	of      errorOf
	failed  state.Hook         // the hook that had failed; empty if the unit was restored from a backup
	retry   bool               // the hook runs again
	running *state.RunningHook // the hook that the unit is currently running
	storage []string           // storage that is created again, empty
	refused error              // ErrNotInError or ErrAlreadyResolved if there was nothing to do
}

// resolveAll marks all subjects as resolved in one transaction, or none, and prints the outcome of each.
func (c resolvedCmd) resolveAll(o *operator, s *state.State, subjects []errorOf) error {
	var done []resolution
	err := s.Update(o.ctx, func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		done = nil
		env, err := tx.Environment()
		if err != nil {
			return err
		}

		// Without --retry and --no-retry, a setting of the environment decides.
		retry := c.Retry || !c.NoRetry && !env.ResolvedSkips()

		// Try all subjects, so that the operator sees all obstacles at once.
		var obstacles []error
		for _, subject := range subjects {
			outcome, err := resolveOne(tx, subject, retry)
			if err == nil && c.Retry && errors.Is(outcome.refused, state.ErrNotInError) {
				// An explicit --retry must not seem to succeed for a hook that was skipped.
				err = refuseSkipped(tx, subject)
			}
			if err != nil {
				obstacles = append(obstacles, err)
			}
			done = append(done, outcome)
		}

		return joinErrors(obstacles)
	})

	// With one subject, the error itself shows that nothing was changed.
	if err != nil && len(subjects) > 1 {
		return console.Hint(err, "nothing was changed")
	}
	if err != nil {
		return err
	}

	for _, outcome := range done {
		if err := c.print(o, s, outcome); err != nil {
			return err
		}
	}

	return nil
}

// resolveOne marks one unit, or one of its relations, as resolved. retry selects whether the failed hook runs
// again. If there is nothing to resolve, resolveOne sets the result's field refused and returns no error, so that
// other units are still resolved.
func resolveOne(tx *state.Tx, of errorOf, retry bool) (outcome resolution, err error) {
	outcome = resolution{of: of, retry: retry}
	// The unit's record is not needed, but the unit must exist.
	if _, err = tx.Unit(of.unit); err != nil {
		return outcome, err
	}
	outcome.running, err = tx.Running(of.unit)
	if err != nil {
		return outcome, err
	}

	// A unit that was restored from a backup waits for this answer before it creates missing storage again. The
	// mark of any other unit is empty.
	mark, _, err := tx.Restored(of.unit)
	if err != nil {
		return outcome, err
	}
	// An answer for a relation does not accept the loss of the unit's storage.
	if of.relation == "" {
		outcome.storage = mark.Storage
	}

	outcome.failed, err = actions.SetResolved(tx, of.unit, of.relation, retry)
	if errors.Is(err, state.ErrNotInError) || errors.Is(err, state.ErrAlreadyResolved) {
		outcome.refused = err
		return outcome, nil
	}
	return outcome, err
}

// refuseSkipped is for a unit or relation that is no longer in error. It returns an error if an earlier juju resolved
// has skipped the failed hook, since a retry would run nothing.
func refuseSkipped(tx *state.Tx, of errorOf) error {
	skipped, ok, err := actions.SkippedHook(tx.View, of.unit, of.relation)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}

	return console.Hint(
		fmt.Errorf("cannot retry %s of %s: it failed at %s, and an earlier juju resolved counted it as done",
			skipped.Hook, of.unit, skipped.Ended.Local().Format(time.DateTime)),
		fmt.Sprintf("to see that hook: juju hook-history %s; to finish its work in a shell as that unit: juju do %[1]s", of.unit),
	)
}

// print prints the outcome for one unit or relation.
func (c resolvedCmd) print(o *operator, s *state.State, outcome resolution) error {
	if r := outcome.running; r != nil {
		o.note("%s of %s has been running since %s%s; to end it: juju interrupt %[2]s", r.Name, outcome.of.unit,
			r.Since.Local().Format(time.DateTime), r.HeldBy())
	}

	switch {
	case errors.Is(outcome.refused, state.ErrNotInError):
		fmt.Fprintf(o.streams.Out, "%s is already running\n", outcome.of)
		return noteRelationErrors(o, s, outcome.of)
	case outcome.refused != nil:
		// This can only be state.ErrAlreadyResolved.
		fmt.Fprintf(o.streams.Out, "%s is already marked as resolved\n", outcome.of)
		return nil
	}

	fmt.Fprintf(o.streams.Out, "%s is marked as resolved%s\n", outcome.of, c.describeEffect(outcome))
	if len(outcome.storage) > 0 {
		o.note("storage %s is created again, empty", strings.Join(outcome.storage, ", "))
	}
	return nil
}

// noteRelationErrors prints the relations of a unit that are in error, if the operator named only the unit. The
// unit itself is not in error, so the operator may have meant one of its relations.
func noteRelationErrors(o *operator, s *state.State, of errorOf) error {
	if of.relation != "" {
		return nil
	}

	return s.View(o.ctx, func(v *state.View) error {
		uniter, err := v.Uniter(of.unit)
		if err != nil {
			return err
		}

		for _, id := range slices.Sorted(maps.Keys(uniter.Relations)) {
			if r := uniter.Relations[id]; r.Failure != nil {
				o.note("%s of this unit is in error; to resolve it: juju resolved --retry %s %s (or --no-retry)",
					state.Relation{ID: id}, of.unit, r.Name)
			}
		}

		return nil
	})
}

// describeEffect returns the end of the message about a resolved error: the failed hook runs again or counts as done.
// If the operator chose neither --retry nor --no-retry, it also names the option with the opposite effect. It returns
// "" if no hook had failed, as for a unit that was restored from a backup.
func (c resolvedCmd) describeEffect(outcome resolution) string {
	if outcome.failed.Name == "" {
		return ""
	}

	wasChosen := c.Retry || c.NoRetry
	text := "counts as done"
	switch {
	case outcome.retry && wasChosen:
		text = "runs again"
	case outcome.retry:
		text = "runs again; --no-retry counts it as done"
	case !wasChosen:
		text = "counts as done, since " + state.ResolvedSkips + " is true in this model; --retry runs it again"
	}

	return fmt.Sprintf(": %s of %s %s", outcome.failed.Name, outcome.of.unit, text)
}

// noteErrorsTimeout is short, since the change has already been made and the store may have become
// unreachable.
const noteErrorsTimeout = 2 * time.Second

// noteErrors prints the hook errors that block the command's effect. It considers the units of the given services and
// of related services, and the relations of these units. It leaves out errors that an operator has already answered,
// and units whose agents are down. blocks reports whether an error of the unit called name blocks the effect. relation
// is a relation's id, such as relation-3, or empty for an error of the unit itself. noteErrors ignores its own errors,
// since the command has done its work.
func (o *operator) noteErrors(
	s *state.State,
	services []string,
	blocks func(name string, u status.Unit, relation string) bool,
) {
	ctx, cancel := context.WithTimeout(o.ctx, noteErrorsTimeout)
	defer cancel()

	current, err := state.Read(ctx, s, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now(), Globs: services, Related: true})
	})
	if err != nil {
		return
	}
	units := allUnits(current)

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		u := units[name]
		if u.State == state.UnitDown {
			// Its hooks wait for its agent, not for juju resolved.
			continue
		}

		info := u.Info
		isUnresolved := info != nil && info.Hook != "" && info.Resolved == state.Unresolved
		if isUnresolved && blocks(name, u, "") {
			o.noteError(name, name, info.Hook+": "+info.Message, info.NextRetry)
		}

		for _, endpoint := range slices.Sorted(maps.Keys(u.Relations)) {
			relations := u.Relations[endpoint].Relations
			for _, id := range slices.Sorted(maps.Keys(relations)) {
				r := relations[id]
				isUnresolved := r.State == state.RelationError && r.Resolved == state.Unresolved
				if isUnresolved && blocks(name, u, id) {
					o.noteError(id+" of "+name, name+" "+id, r.Message, r.NextRetry)
				}
			}
		}
	}
}

// noteError prints that subject is in error, with the cause, and how to resolve the error. juju resolved finds the
// error by the arguments in target. nextRetry is the time of the next automatic retry, or zero if there is none.
func (o *operator) noteError(subject, target, cause string, nextRetry time.Time) {
	automatic := ""
	if !nextRetry.IsZero() {
		automatic = ", or an automatic retry that succeeds, the next at " + nextRetry.Local().Format(time.TimeOnly)
	}
	o.note("%s is in error (%s): its hooks wait for juju resolved --retry %s (the hook runs again), or juju resolved --no-retry %[3]s (the hook counts as done)%s",
		subject, cause, target, automatic)
}
