package neco

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type bootserverRemoveCmd struct {
	lrnArgs
	reasonFlag
}

// Run unregisters the servers, all or none. A server that is not registered is removed too if it has left
// records.
func (c bootserverRemoveCmd) Run(o *operator) error {
	all, err := c.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", record.ListServers(all))
	var awaited, stopped bool

	err = o.commitChangesIn(func(v *keyspace.View, s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		awaited = false
		stopped = false

		for _, lrn := range all {
			if !slices.Contains(s.Servers, lrn) {
				left, err := hasLeftovers(v, s, lrn)
				if err != nil {
					return nil, err
				}
				if !left {
					return nil, console.Hint(fmt.Errorf("boot server %d is not registered", lrn),
						"neco bootserver list")
				}
			}

			changes = append(changes, decide.Unregister(s, lrn)...)
			if r := s.Current; r != nil && slices.Contains(r.Servers, lrn) {
				awaited = awaited || !r.Ended() && !r.Stop
				stopped = stopped || r.Stop
			}
		}

		return registrationsFirst(changes), nil
	})

	switch {
	case err != nil:
		return err
	case stopped:
		o.note("the update that was stopped is made again without it by: neco recover")
	case awaited:
		o.note("the update that runs still waits for it; if it is dead: neco stop, and then neco recover")
	}

	return nil
}

// hasLeftovers reports whether a removal of many servers was interrupted before it came to the records of
// this server's dead worker.
func hasLeftovers(v *keyspace.View, s decide.Snapshot, lrn int) (bool, error) {
	if _, alive := s.Present[lrn]; alive {
		return false, nil
	}
	return v.HasUnguarded(keys.Claim(lrn))
}

// registrationsFirst puts the changes of registrations before all others, so that no update begins
// for a part of the servers that are removed.
func registrationsFirst(changes []updater.Change) []updater.Change {
	isLater := func(c updater.Change) int {
		if strings.HasPrefix(c.Key, keys.BootServers) {
			return 0
		}
		return 1
	}

	slices.SortStableFunc(changes, func(a, b updater.Change) int { return isLater(a) - isLater(b) })
	return changes
}
