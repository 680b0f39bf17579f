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

// Run unregisters all of the servers, or none. It also accepts a server that is not registered but still has
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
		o.note("to start the stopped update again without this server: neco recover")
	case awaited:
		o.note("the running update still waits for this server; if the server is dead: neco stop, then neco recover")
	}

	return nil
}

// hasLeftovers reports whether a removal of many servers was interrupted before it removed the records of this
// server's dead worker.
func hasLeftovers(v *keyspace.View, s decide.Snapshot, lrn int) (bool, error) {
	if _, alive := s.Present[lrn]; alive {
		return false, nil
	}
	return v.HasUnguarded(keys.Claim(lrn))
}

// registrationsFirst moves the changes of registrations before all other changes, so that no update begins
// while only some of the servers have been removed.
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
