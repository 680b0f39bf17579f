package juju

import (
	"strconv"
	"time"

	"bijou/state"
	"bijou/state/actions"
)

type cancelTaskCmd struct {
	IDs []int `arg:"" name:"id" help:"The actions' ids."`
	removalFlags
}

// Run cancels all of the given actions, or none.
func (c cancelTaskCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		// removeAll takes names, so the ids become text, and cancel parses them again.
		var ids []string
		for _, id := range c.IDs {
			ids = append(ids, strconv.Itoa(id))
		}

		cancel := func(tx *state.Tx, id string) error {
			n, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			return actions.Cancel(tx, n, time.Now())
		}

		// Since the kind has no remove, check itself cancels the actions, all in one transaction.
		return c.removeAll(o, s,
			removalKind{name: "action", outcome: "is cancelled, or will be ended if it is running", check: cancel}, ids)
	})
}
