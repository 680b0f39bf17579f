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

// Run registers the servers. It notes those that were registered already, and those of which no worker was
// ever seen.
func (c bootserverAddCmd) Run(o *operator) error {
	all, err := c.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", record.ListServers(all))
	var known []int
	err = o.commitChanges(func(s decide.Snapshot, _ time.Time) (changes []updater.Change, _ error) {
		known = nil
		for _, lrn := range all {
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
		o.note("registered already: %s", record.ListServers(known))
	}
	s, err := o.loadSnapshot()
	if err != nil {
		return err
	}

	unseen := slices.DeleteFunc(s.Unseen, func(lrn int) bool { return !slices.Contains(all, lrn) })
	if len(unseen) > 0 {
		o.note("no worker of server %s was ever seen; no update begins for it until one was",
			record.ListServers(unseen))
	}

	return nil
}
