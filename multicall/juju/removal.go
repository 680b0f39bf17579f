package juju

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// removalFlags are the flags of all commands that can remove several entities.
type removalFlags struct {
	DryRun bool   `help:"Only print the changes."`
	Format string `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"Print as plain, yaml or json; default plain."`
}

// promptFlags are the flags of commands that prompt on a terminal, as Juju 3 does.
type promptFlags struct {
	NoPrompt bool `aliases:"yes" short:"y" help:"Skip the question, which is only asked on a terminal."`
}

// unitRemovalFlags are the flags of commands that remove units.
type unitRemovalFlags struct {
	DestroyStorage bool `help:"Also remove their storage with its content. By default the storage stays, detached."`
	removalFlags
	promptFlags
}

// removalKind describes how a command removes entities of one kind.
type removalKind struct {
	name    string // "unit"
	key     string // the key of the names in JSON and YAML; empty for name's plural
	outcome string // the end of the sentence about a removed entity
	// check returns an error if the entity cannot be removed. If remove is nil, check also
	// removes it, and one transaction removes all entities.
	check  func(tx *state.Tx, name string) error
	remove func(ctx context.Context, name string) error
	// awaitsHooks is set if units run hooks before an entity is gone.
	awaitsHooks bool
	// asks is set if the operator must confirm the removal. The question shows the units in
	// alongside, and the lines in details.
	asks      bool
	alongside []string
	details   []string
}

// asking returns k, with the field asks set if the command runs on a terminal and the flags allow questions.
func (p promptFlags) asking(o *operator, k removalKind) removalKind {
	k.asks = !p.NoPrompt && console.IsTerminal(o.streams.In) && console.IsTerminal(o.streams.Err)
	return k
}

// confirm asks the operator to confirm a removal that has passed all checks. It returns an error if the operator
// declines.
func (k removalKind) confirm(o *operator, names []string) error {
	for _, name := range names {
		o.note("%s %s %s", k.name, name, k.outcome)
	}
	if len(k.alongside) > 0 {
		o.note("  its units: %s", strings.Join(k.alongside, ", "))
	}
	for _, line := range k.details {
		o.note("  %s", line)
	}

	if !console.Confirm(o.streams, "Continue") {
		return console.Hint(errors.New("nothing was removed"), "to skip the question: --no-prompt")
	}
	return nil
}

// removeAll removes the entities of these names, and prints them. If the check of any entity fails, it removes none.
// It asks for confirmation if the kind requires it. If a later step fails, and entities are removed one after
// another, those before the failure stay removed. With --dry-run it neither asks nor removes anything.
func (r removalFlags) removeAll(o *operator, s *state.State, k removalKind, names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if k.asks && !r.DryRun {
		if err := k.applyAll(o, s, names, onlyRehearse); err != nil {
			return err
		}
		if err := k.confirm(o, names); err != nil {
			return err
		}
	}

	// The state may have changed during the question. If remove is nil, the checks themselves remove the entities,
	// all in this transaction. Otherwise removeEach removes one entity after another.
	isOnlyCheck := r.DryRun || k.remove != nil
	if err := k.applyAll(o, s, names, isOnlyCheck); err != nil {
		return err
	}
	if !r.DryRun {
		if err := k.removeEach(o.ctx, names); err != nil {
			return err
		}
		o.noteAffected(untilGone, names...)
	}

	if err := r.printRemoved(o, k, names); err != nil {
		return err
	}
	if !k.awaitsHooks {
		return nil
	}

	// A unit in error does not run the hooks that the removal waits for.
	o.noteBlockedRemoval(s, names)
	return nil
}

// onlyRehearse makes applyAll discard its transaction.
const onlyRehearse = true

// applyAll calls k.check for all entities in one transaction. If rehearse is true, it discards the transaction. If
// a check fails, it changes nothing, and returns the errors of all checks.
func (k removalKind) applyAll(o *operator, s *state.State, names []string, rehearse bool) error {
	checkAll := func(tx *state.Tx) error {
		var refused []error
		for _, name := range names {
			if err := k.check(tx, name); err != nil {
				refused = append(refused, err)
			}
		}

		return joinErrors(refused)
	}

	var err error
	if rehearse {
		err = s.Rehearse(o.ctx, func(r *state.Rehearsal) error { return r.Update(o.ctx, checkAll) })
	} else {
		err = s.Update(o.ctx, checkAll)
	}
	if err != nil {
		return console.Hint(err, "nothing was changed")
	}

	return nil
}

// removeEach calls k.remove for one entity after the other, until one fails. It ignores entities that are gone. It
// does nothing if k.remove is nil.
func (k removalKind) removeEach(ctx context.Context, names []string) error {
	if k.remove == nil {
		return nil
	}

	for i, name := range names {
		if err := k.remove(ctx, name); err != nil && !errors.Is(err, state.ErrNotFound) {
			if i == 0 {
				return console.Hint(err, "the removal can be incomplete; run the command again")
			}
			return console.Hint(err, "already removed: "+strings.Join(names[:i], ", "))
		}
	}

	return nil
}

// noteBlockedRemoval prints the hook errors that delay the removal. names are units and services. A unit in error
// is concerned if it, its principal, or the service of either is in names. For a failed install hook, which delays
// nothing, noteBlockedRemoval prints that the unit is removed without hooks.
func (o *operator) noteBlockedRemoval(s *state.State, names []string) {
	serviceOf := func(name string) string {
		service, _, _ := strings.Cut(name, "/")
		return service
	}

	var services []string
	for _, name := range names {
		services = append(services, serviceOf(name))
	}
	leaves := func(unit string) bool {
		return slices.Contains(names, unit) || slices.Contains(names, serviceOf(unit))
	}

	o.noteErrors(s, services, func(name string, u status.Unit, relation string) bool {
		isLeaving := leaves(name) || leaves(u.Principal)
		// Info is never nil for an error of the unit itself.
		installFailed := relation == "" && u.Info.Hook == "install"
		if isLeaving && installFailed {
			o.note("%s is removed without hooks: its install hook has failed", name)
			return false
		}
		return isLeaving
	})
}

// removeUnits is like removeAll, for units, or for services with all of their units. It also prints lines about their
// storage and their machines: in the question or, if there is no question, at the end.
func (r unitRemovalFlags) removeUnits(o *operator, s *state.State, k removalKind, names []string) error {
	storages, err := state.Read(o.ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}
	units, err := state.Read(o.ctx, s, func(v *state.View) ([]state.Unit, error) { return v.Units("") })
	if err != nil {
		return err
	}
	machines, err := state.Read(o.ctx, s, (*state.View).Machines)
	if err != nil {
		return err
	}

	// This sets k.asks.
	k = r.asking(o, k)
	k.details = slices.Concat(r.describeStorage(storages, names), describeMachines(machines, units, names))
	k.alongside = unitsOf(units, names)
	if err := r.removeAll(o, s, k, names); err != nil {
		return err
	}
	if k.asks && !r.DryRun {
		// The question has already shown the details.
		return nil
	}

	for _, line := range k.details {
		o.note("%s", line)
	}
	return nil
}

// describeStorage returns a line for each storage of the units or services in names, if the storage can have
// content. The line shows whether the storage stays or is removed.
func (r unitRemovalFlags) describeStorage(storages []state.Storage, names []string) (lines []string) {
	for _, storage := range storages {
		service, _, _ := strings.Cut(storage.Unit, "/")
		isTheirs := slices.Contains(names, storage.Unit) || slices.Contains(names, service)
		// Until Made is set, the storage has no directory, and so no content.
		if !isTheirs || !storage.Made {
			continue
		}

		if r.DestroyStorage {
			lines = append(lines, fmt.Sprintf("storage %s is also removed, with its content", storage.ID))
			continue
		}
		lines = append(lines, fmt.Sprintf(
			"storage %s stays on machine %s with its content; to remove it: juju remove-storage %[1]s",
			storage.ID, storage.Machine))
	}

	return lines
}

// unitsOf returns the names of the units of the services.
func unitsOf(units []state.Unit, services []string) (names []string) {
	for _, u := range units {
		if slices.Contains(services, u.Service) {
			names = append(names, u.Name)
		}
	}
	return names
}

// describeMachines returns a line about each machine on which the removal of the units or services in names
// leaves no units. Juju removes such machines, and bijou keeps those that have started. describeMachines
// leaves out machine 0, which always stays, and machines that have not started, which the removal can also remove.
func describeMachines(machines []state.Machine, units []state.Unit, names []string) (lines []string) {
	hasStarted := map[string]bool{}
	for _, m := range machines {
		hasStarted[m.ID] = m.InstanceID != "" || m.Status == state.MachineRunning
	}

	// For each machine that has units, whether one of them stays.
	keepsUnit := map[string]bool{}
	for _, u := range units {
		if u.Machine == "0" || !hasStarted[u.Machine] {
			continue
		}
		keepsUnit[u.Machine] = keepsUnit[u.Machine] || !isRemovedWith(u, names)
	}

	for _, id := range slices.Sorted(maps.Keys(keepsUnit)) {
		if !keepsUnit[id] {
			lines = append(lines, fmt.Sprintf("machine %s stays, without units; to remove it: juju remove-machine %[1]s", id))
		}
	}
	return lines
}

// isRemovedWith reports whether the removal of the units or services in names removes the unit. This is the case
// if names contain the unit, its service, its principal, or its principal's service.
func isRemovedWith(u state.Unit, names []string) bool {
	for _, name := range []string{u.Name, u.Service, u.Principal} {
		if slices.Contains(names, name) {
			return true
		}
	}

	principalService, _, err := charm.ParseUnit(u.Principal)
	return err == nil && slices.Contains(names, principalService)
}

// printRemoved prints the entities that the command removes, or would remove with --dry-run. Plain text goes to
// stderr, but with --dry-run to stdout.
func (r removalFlags) printRemoved(o *operator, k removalKind, names []string) error {
	if r.Format != "plain" {
		key := cmp.Or(k.key, k.name+"s")
		return o.encode(r.Format, map[string]any{key: names, "dry-run": r.DryRun})
	}

	to := o.streams.Err
	prefix := ""
	if r.DryRun {
		to = o.streams.Out
		prefix = "dry run: "
	}
	for _, name := range names {
		fmt.Fprintf(to, "%s%s %s %s\n", prefix, k.name, name, k.outcome)
	}
	return nil
}
