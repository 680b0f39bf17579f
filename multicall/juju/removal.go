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

// removalFlags are those of all commands that remove several things.
type removalFlags struct {
	DryRun bool   `help:"Only print the changes."`
	Format string `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"Print as plain, yaml or json; default plain."`
}

// promptFlags are those of the commands that ask on a terminal, as Juju 3 does.
type promptFlags struct {
	NoPrompt bool `aliases:"yes" short:"y" help:"Skip the question, which is only asked on a terminal."`
}

// unitRemovalFlags are those of the commands that units leave by.
type unitRemovalFlags struct {
	DestroyStorage bool `help:"Also remove their storage with its content; by default it stays, detached."`
	removalFlags
	promptFlags
}

type removalKind struct {
	name    string // "unit"
	key     string // of the names in JSON and YAML, if it is not the name's plural
	outcome string // what happens to one, by and by
	// check refuses what cannot be removed. If remove is nil, check itself removes, all names
	// in one transaction.
	check  func(tx *state.Tx, name string) error
	remove func(ctx context.Context, name string) error
	// awaitsHooks: units run their hooks before one is gone.
	awaitsHooks bool
	// asks: a terminal is asked first, shown which units go alongside, and these lines.
	asks      bool
	alongside []string
	details   []string
}

// asking returns k with the decision to ask: on a terminal, unless the flags forbid it.
func (p promptFlags) asking(o *operator, k removalKind) removalKind {
	k.asks = !p.NoPrompt && console.IsTerminal(o.streams.In) && console.IsTerminal(o.streams.Err)
	return k
}

// confirm asks whether to carry out a removal that nothing refuses.
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

	if !console.Confirm(o.streams, "Go on") {
		return console.Hint(errors.New("nothing was removed"), "--no-prompt does not ask")
	}
	return nil
}

// removeAll removes all entities of these names, or none. It checks all before it removes any, and asks for
// confirmation if the kind needs one.
func (r removalFlags) removeAll(o *operator, s *state.State, k removalKind, names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	check := func(tx *state.Tx) error {
		var refused []error
		for _, name := range names {
			if err := k.check(tx, name); err != nil {
				refused = append(refused, err)
			}
		}

		return joinErrors(refused)
	}

	var err error
	asks := k.asks && !r.DryRun
	if r.DryRun || k.remove != nil || asks {
		err = s.Rehearse(o.ctx, func(r *state.Rehearsal) error { return r.Update(o.ctx, check) })
	} else {
		err = s.Update(o.ctx, check)
	}
	if err != nil {
		return console.Hint(err, "nothing was changed")
	}

	if asks {
		if err := k.confirm(o, names); err != nil {
			return err
		}
		k.asks = false
		return r.removeAll(o, s, k, names)
	}

	for i, name := range names {
		if r.DryRun || k.remove == nil {
			break
		}
		if err := k.remove(o.ctx, name); err != nil && !errors.Is(err, state.ErrNotFound) {
			return console.Hint(err, "removed before that: "+strings.Join(names[:i], ", "))
		}
	}

	if !r.DryRun {
		o.noteAffected(untilGone, names...)
	}
	if err := r.printRemoved(o, k, names); err != nil || !k.awaitsHooks {
		return err
	}

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
		going := leaves(name) || leaves(u.Principal)
		if going && relation == "" && u.Info.Hook == "install" {
			o.note("%s is removed without hooks: its install has failed", name)
			return false
		}
		return going
	})

	return nil
}

// removeUnits does what removeAll does, for units and for services with all of their units. It also prints
// what happens to their storage and machines.
func (r unitRemovalFlags) removeUnits(o *operator, s *state.State, k removalKind, names []string) error {
	all, err := state.Read(o.ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}

	units, err := state.Read(o.ctx, s, func(v *state.View) ([]state.Unit, error) { return v.Units("") })
	if err != nil {
		return err
	}

	k = r.asking(o, k)
	k.details = slices.Concat(r.describeStorage(all, names), describeMachines(units, names))
	k.alongside = unitsOf(units, names)
	if err := r.removeAll(o, s, k, names); err != nil || k.asks {
		return err
	}

	for _, line := range k.details {
		o.note("%s", line)
	}
	return nil
}

// describeStorage returns a line for each storage of the units or services in names: it stays, or is
// destroyed.
func (r unitRemovalFlags) describeStorage(all []state.Storage, names []string) (lines []string) {
	for _, one := range all {
		service, _, _ := strings.Cut(one.Unit, "/")
		switch {
		case !one.Made || !slices.Contains(names, one.Unit) && !slices.Contains(names, service):
			// These units do not have it, or it was never made.
		case r.DestroyStorage:
			lines = append(lines, fmt.Sprintf("storage %s is removed with it, with its content", one.ID))
		default:
			lines = append(lines, fmt.Sprintf(
				"storage %s stays on machine %s with its content; juju remove-storage %[1]s removes it", one.ID, one.Machine))
		}
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

// describeMachines returns a line about the machines that are left without units. Juju removes such machines,
// and bijou keeps them.
func describeMachines(units []state.Unit, names []string) (lines []string) {
	left := map[string]bool{}
	for _, u := range units {
		goes := slices.ContainsFunc([]string{u.Name, u.Service, u.Principal}, func(name string) bool {
			return slices.Contains(names, name)
		})
		if principal, _, err := charm.ParseUnit(u.Principal); err == nil && slices.Contains(names, principal) {
			goes = true
		}

		was, seen := left[u.Machine]
		if u.Machine != "" && u.Machine != "0" {
			left[u.Machine] = goes && (was || !seen)
		}
	}

	for _, id := range slices.Sorted(maps.Keys(left)) {
		if left[id] {
			lines = append(lines, fmt.Sprintf("machine %s stays, without units; juju remove-machine %[1]s removes it", id))
		}
	}
	return lines
}

// printRemoved prints the entities that the command removes, or would remove.
func (r removalFlags) printRemoved(o *operator, k removalKind, names []string) error {
	if r.Format != "plain" {
		return o.encode(r.Format, map[string]any{cmp.Or(k.key, k.name+"s"): names, "dry-run": r.DryRun})
	}

	to := o.streams.Err
	would := ""
	if r.DryRun {
		to = o.streams.Out
		would = "dry run: "
	}
	for _, name := range names {
		fmt.Fprintf(to, "%s%s %s %s\n", would, k.name, name, k.outcome)
	}
	return nil
}
