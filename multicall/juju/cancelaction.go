package juju

import (
	"errors"
	"strconv"
	"time"

	"bijou/state"
)

type cancelActionCmd struct {
	IDs []int `arg:"" name:"id" help:"The actions' ids."`
	removalFlags
}

// Help shows how it is used.
func (cancelActionCmd) Help() string {
	return `What waits will not begin; what runs is told to end, and killed after 10 seconds, and nothing that it
has set is written. 
Examples:
  juju cancel-action 7
  juju cancel-action 7 8 9`
}

// Run cancels all or none.
func (c cancelActionCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		var ids []string
		for _, id := range c.IDs {
			ids = append(ids, strconv.Itoa(id))
		}
		cancel := func(tx *state.Tx, id string) error {
			n, err := strconv.Atoi(id)
			return errors.Join(err, tx.CancelAction(n, time.Now()))
		}
		return c.removeAll(o, s, removalKind{name: "action", outcome: "does not begin, or is told to end", check: cancel}, ids)
	})
}
