package juju

import (
	"errors"
	"time"

	"bijou/state"
)

// cancelActionCmd is `juju cancel-action`.
type cancelActionCmd struct {
	IDs []int `arg:"" name:"id" help:"The actions' ids."`
}

// Help shows how it is used.
func (cancelActionCmd) Help() string {
	return `What waits will not begin; what runs is killed, and nothing that it has set is written.

Examples:
  juju cancel-action 7
  juju cancel-action 7 8 9`
}

// Run cancels each by itself.
func (c cancelActionCmd) Run(o *operator) error {
	return o.open(func(s *state.State) error {
		var errs []error
		for _, id := range c.IDs {
			errs = append(errs, s.Update(o.ctx, func(tx *state.Tx) error { return tx.CancelAction(id, time.Now()) }))
		}
		return errors.Join(errs...)
	})
}
