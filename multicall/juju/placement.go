package juju

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

// placementFlags select how many units to add, and their machines.
type placementFlags struct {
	NumUnits      int      `short:"n" default:"1" placeholder:"N" help:"Add N units; default 1."`
	AttachStorage []string `placeholder:"ID,..." help:"Give the new unit the detached storage ID instead of new storage, and place the unit on the machine of the storage."`
	To            string   `placeholder:"MACHINE" help:"Put the units on MACHINE, or with \"new\" each unit on a new machine. Several machines, separated by commas, get one unit each."`
}

// check returns a usage error if the flags contradict each other, or name a zone, a container or an invalid number of
// units.
func (p placementFlags) check() error {
	if len(p.AttachStorage) > 0 && p.NumUnits != 1 {
		return console.Usage(errors.New("--attach-storage is for one unit: leave out -n"))
	}
	for word := range strings.SplitSeq(p.To, ",") {
		if zone, ok := strings.CutPrefix(word, "zone="); ok {
			return console.Hint(console.Usage(fmt.Errorf("cannot put a unit into zone %q: bijou has no zones", zone)),
				"for a machine of its own: --to new")
		}
		if isContainer(word) {
			return console.Hint(console.Usage(fmt.Errorf("cannot put a unit on %q: only models of the provider nspawn have containers", word)),
				"for a machine of its own: --to new; for a model of containers: juju bootstrap nspawn")
		}
	}

	machines := strings.Split(p.To, ",")
	isOneForEach := len(machines) == p.NumUnits && !slices.Contains(machines, "")
	if len(machines) > 1 && !isOneForEach {
		return console.Usage(fmt.Errorf("--to names %d machines for %s: want one machine for all units, or one for each",
			len(machines), formatCount(p.NumUnits, "unit")))
	}

	return checkCount(p.NumUnits, "unit")
}

// noteTogether prints a note if all units go to one machine, since Juju would put only one unit there.
func (p placementFlags) noteTogether(o *operator) {
	isOneMachine := p.To != "" && p.To != state.PlaceNew && !strings.Contains(p.To, ",")
	if p.NumUnits < 2 || !isOneMachine {
		return
	}

	o.note("note: all %d units go to machine %s; to put only one unit there, and each other unit on a new machine: --to %s%s",
		p.NumUnits, p.To, p.To, strings.Repeat(","+state.PlaceNew, p.NumUnits-1))
}

// isContainer reports whether a placement requests one of Juju's containers, such as lxd or lxd:0.
func isContainer(word string) bool {
	kind, _, _ := strings.Cut(word, ":")
	return slices.Contains([]string{"lxd", "lxc", "kvm"}, kind)
}

// maxAtOnce is how many units or machines one command can add, so that a typing error cannot fill the store.
const maxAtOnce = 10_000

// checkCount returns a usage error if one command cannot add n units or machines. thing is "unit" or "machine".
func checkCount(n int, thing string) error {
	switch {
	case n < 1:
		return console.Usage(fmt.Errorf("cannot add %s: want a number from 1", formatCount(n, thing)))
	case n > maxAtOnce:
		return console.Usage(fmt.Errorf("cannot add %s at once: the limit is %d",
			formatCount(n, thing), maxAtOnce))
	}

	return nil
}

// placements returns a placement for each machine of --to. Without --to it returns one placement without a
// machine.
func (p placementFlags) placements() (at []state.Placement) {
	for machine := range strings.SplitSeq(p.To, ",") {
		at = append(at, state.Placement{Machine: machine, Storage: p.AttachStorage})
	}
	return at
}
