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
// records. If a running or stopped update includes one of the servers, Run prints how the update can go on without
// that server.
func (c bootserverRemoveCmd) Run(o *operator) error {
	servers, err := c.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", record.ListServers(servers))
	inRunningUpdate := false
	inStoppedUpdate := false

	err = o.commitChangesIn(func(v *keyspace.View, s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		// After a conflict, this function runs again.
		inRunningUpdate = false
		inStoppedUpdate = false

		for _, lrn := range servers {
			if err := checkRemovable(v, s, lrn); err != nil {
				return nil, err
			}
			changes = append(changes, decide.Unregister(s, lrn)...)

			if r := s.Current; r != nil && slices.Contains(r.Servers, lrn) {
				inRunningUpdate = inRunningUpdate || !r.Ended() && !r.Stop
				inStoppedUpdate = inStoppedUpdate || r.Stop
			}
		}

		// commitChangesIn commits only the first changes in one transaction.
		return registrationsFirst(changes), nil
	})

	switch {
	case err != nil:
		return err
	case inStoppedUpdate:
		o.note("to start the stopped update again without this server: neco recover")
	case inRunningUpdate:
		o.note("the running update still waits for this server; if the server is dead: neco stop, then neco recover")
	}

	return nil
}

// checkRemovable returns an error if the server is not registered and has no records that are left from an
// interrupted removal.
func checkRemovable(v *keyspace.View, s decide.Snapshot, lrn int) error {
	if slices.Contains(s.Servers, lrn) {
		return nil
	}

	hasRecords, err := hasLeftovers(v, s, lrn)
	if err != nil {
		return err
	}
	if !hasRecords {
		return console.Hint(fmt.Errorf("boot server %d is not registered", lrn), "neco bootserver list")
	}
	return nil
}

// hasLeftovers reports whether a server that is not registered still has the records of a dead worker. A removal of
// many servers can leave such records if it is interrupted.
func hasLeftovers(v *keyspace.View, s decide.Snapshot, lrn int) (bool, error) {
	if _, alive := s.Present[lrn]; alive {
		// The records belong to a worker that is running.
		return false, nil
	}
	// The claim is one of the records that a removal deletes together with the registration or later.
	return v.HasUnguarded(keys.Claim(lrn))
}

// registrationsFirst moves the changes of registrations before all other changes, so that no update begins
// while only some of the servers have been removed.
func registrationsFirst(changes []updater.Change) []updater.Change {
	rank := func(c updater.Change) int {
		if strings.HasPrefix(c.Key, keys.BootServers) {
			return 0
		}
		return 1
	}

	slices.SortStableFunc(changes, func(a, b updater.Change) int { return rank(a) - rank(b) })
	return changes
}
