package neco

import (
	"slices"
	"time"

	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type bootserverAddCmd struct {
	lrnArgs
	reasonFlag
}

// Run registers the servers. It prints which servers were already registered, and which have never had a
// worker.
func (c bootserverAddCmd) Run(o *operator) error {
	servers, err := c.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", record.ListServers(servers))
	var known []int
	err = o.commitChanges(func(s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		// After a conflict, this function runs again.
		known = nil
		for _, lrn := range servers {
			if slices.Contains(s.Servers, lrn) {
				known = append(known, lrn)
				continue
			}
			changes = append(changes, updater.Change{Key: keys.BootServer(lrn), Value: struct{}{}})
		}

		return changes, nil
	})
	if err != nil {
		return err
	}

	if len(known) > 0 {
		o.note("already registered: %s", record.ListServers(known))
	}
	s, err := o.loadSnapshot()
	if err != nil {
		return err
	}

	unseen := slices.DeleteFunc(s.Unseen, func(lrn int) bool { return !slices.Contains(servers, lrn) })
	if len(unseen) > 0 {
		o.note("no worker of server %s has ever been seen; no update includes that server until its worker has run",
			record.ListServers(unseen))
	}

	return nil
}
